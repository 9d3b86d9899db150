# spillway_mpi_program(NAME SOURCE): a program that knows MPI and nothing of Spillway, compiled as its user would, with
# each MPI's own mpicc (mpicxx for C++), to bin/NAME-mpich and bin/NAME-openmpi. Without a prefix for an MPI its binary
# is left out.
function(spillway_mpi_program name source)
  get_filename_component(path ${source} ABSOLUTE)
  set(wrapper mpicc)
  set(flags -std=c99 -Wpedantic)
  if(source MATCHES "\\.cc$")
    set(wrapper mpicxx)
    set(flags -std=c++20)
  endif()
  foreach(mpi mpich openmpi)
    string(TOUPPER ${mpi} upper)
    set(root "${SPILLWAY_${upper}_ROOT}")
    if(root)
      set(binary ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name}-${mpi})
      add_custom_command(OUTPUT ${binary}
        COMMAND ${root}/bin/${wrapper} ${flags} -O2 -g -Wall -Wextra -Wshadow -o ${binary} ${path} -lm
        DEPENDS ${path} ${root}/bin/${wrapper}
        COMMENT "Building ${name} with ${mpi}" VERBATIM)
      add_custom_target(${name}-${mpi} ALL DEPENDS ${binary})
    endif()
  endforeach()
endfunction()
