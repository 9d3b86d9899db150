# spillway_mpi_program(NAME SOURCE... [HEADERS HEADER...]): a program that knows MPI and nothing of Spillway, compiled as
# its user would, with each MPI's own mpicc (mpicxx for C++), to bin/NAME-mpich and bin/NAME-openmpi. Without a prefix for
# an MPI its binary is left out.
function(spillway_mpi_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS")
  set(paths "")
  foreach(source ${arg_UNPARSED_ARGUMENTS} ${arg_HEADERS})
    get_filename_component(path ${source} ABSOLUTE)
    list(APPEND paths ${path})
  endforeach()
  set(sources ${paths})
  list(FILTER sources EXCLUDE REGEX "\\.h$")
  set(wrapper mpicc)
  set(flags -std=c11 -Wpedantic)
  if("${sources}" MATCHES "\\.cc$")
    set(wrapper mpicxx)
    set(flags -std=c++20)
  endif()
  foreach(mpi mpich openmpi)
    string(TOUPPER ${mpi} upper)
    set(root "${SPILLWAY_${upper}_ROOT}")
    if(root)
      set(binary ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name}-${mpi})
      add_custom_command(OUTPUT ${binary}
        COMMAND ${root}/bin/${wrapper} ${flags} -O2 -g -Wall -Wextra -Wshadow -o ${binary} ${sources} -lm
        DEPENDS ${paths} ${root}/bin/${wrapper}
        COMMENT "Building ${name} with ${mpi}" VERBATIM)
      add_custom_target(${name}-${mpi} ALL DEPENDS ${binary})
    endif()
  endforeach()
endfunction()
