# What needs an mpi.h: one preload library per MPI ABI, built from the same sources, linked to no MPI.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(_table ${CMAKE_SOURCE_DIR}/src/interpose/mpi_functions.txt)
set(_generator ${CMAKE_SOURCE_DIR}/src/interpose/generate_mpi.py)
set(_generated ${CMAKE_BINARY_DIR}/generated/mpi_symbols.cc)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated)
add_custom_command(OUTPUT ${_generated} COMMAND ${Python3_EXECUTABLE} ${_generator} ${_table} ${_generated}
  DEPENDS ${_table} ${_generator} VERBATIM)
add_custom_target(spillway_mpi_symbols DEPENDS ${_generated})

file(GLOB _sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/mpi/*.cc ${CMAKE_SOURCE_DIR}/src/interpose/*.cc)
list(FILTER _sources EXCLUDE REGEX "_test\\.cc$")
# Defines both open and open64, and must not have the one renamed to the other.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/interpose/libc_symbols.cc PROPERTIES
  COMPILE_OPTIONS "-U_FILE_OFFSET_BITS;-U_FORTIFY_SOURCE;-Wno-pedantic" SKIP_UNITY_BUILD_INCLUSION ON)
set_source_files_properties(${_generated} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# spillway_preload(NAME PREFIX): libspillway-NAME.so for the MPI whose headers lie in PREFIX/include.
function(spillway_preload name prefix)
  if(NOT EXISTS ${prefix}/include/mpi.h)
    message(STATUS "No libspillway-${name}.so: no ${prefix}/include/mpi.h")
    return()
  endif()
  set(target spillway-${name})
  add_library(${target} SHARED ${_sources} ${_generated})
  add_dependencies(${target} spillway_mpi_symbols)
  target_include_directories(${target} SYSTEM PRIVATE ${prefix}/include)
  target_link_libraries(${target} PRIVATE spillway_file spillway_posix spillway_flags ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/interpose/exports.map)
  # Nothing of ours, and nothing of the C++ runtime, may be seen by, or depend on, the host program.
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL
    -Wl,--version-script=${CMAKE_SOURCE_DIR}/src/interpose/exports.map -Wl,-z,defs)
endfunction()

if(SPILLWAY_MPICH_ROOT)
  spillway_preload(mpich ${SPILLWAY_MPICH_ROOT})
endif()
if(SPILLWAY_OPENMPI_ROOT)
  spillway_preload(openmpi ${SPILLWAY_OPENMPI_ROOT})
endif()
