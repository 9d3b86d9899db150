#pragma once

#include <mpi.h>

// The MPI library below, reached through a table instead of by linking: the preload library must load into any process, MPI or not,
// and an MPI that Python opened for itself is not in the global scope. Nothing in src/mpi or src/interpose names an MPI function or a
// predefined handle directly (Open MPI's are objects in its library); a build test checks that no such symbol is undefined.
namespace spillway::mpi {

// Every function of MPI that Spillway itself calls.
// clang-format off
#define SPILLWAY_MPI_FUNCTIONS(X) \
  X(Abort) X(Allgather) X(Allgatherv) X(Barrier) X(Comm_create) X(Comm_create_keyval) X(Comm_free) \
  X(Comm_get_attr) X(Comm_group) X(Comm_rank) X(Comm_set_attr) X(Comm_set_errhandler) X(Comm_size) \
  X(Comm_test_inter) X(Errhandler_free) X(Fetch_and_op) X(File_call_errhandler) X(File_create_errhandler) \
  X(File_get_errhandler) X(Finalized) X(Grequest_complete) X(Grequest_start) X(Group_free) X(Group_union) \
  X(Info_create) X(Info_get) X(Info_get_nkeys) X(Info_get_nthkey) X(Info_get_valuelen) X(Info_set) \
  X(Initialized) X(Iprobe) X(Irecv) X(Isend) X(Pack_external) X(Pack_external_size) X(Status_set_cancelled) \
  X(Status_set_elements_x) X(Type_commit) X(Type_create_hindexed) X(Type_create_keyval) X(Type_dup) \
  X(Type_free) X(Type_get_attr) X(Type_get_contents) X(Type_get_envelope) X(Type_get_extent_x) \
  X(Type_set_attr) X(Type_size_x) X(Unpack_external) X(Waitall) X(Win_allocate) X(Win_flush) X(Win_free) \
  X(Win_lock_all) X(Win_unlock_all)
// clang-format on

struct Api {
#define SPILLWAY_MPI_MEMBER(name) decltype(&PMPI_##name) name = nullptr;
  SPILLWAY_MPI_FUNCTIONS(SPILLWAY_MPI_MEMBER)
#undef SPILLWAY_MPI_MEMBER
#if MPI_VERSION >= 4
  // Types made with large counts can only be taken apart by these.
  decltype(&PMPI_Type_get_envelope_c) Type_get_envelope_c = nullptr;
  decltype(&PMPI_Type_get_contents_c) Type_get_contents_c = nullptr;
#endif

  MPI_Comm comm_world{};
  MPI_Comm comm_self{};
  MPI_Comm comm_null{};
  MPI_Datatype byte{};
  MPI_Datatype int64{};
  MPI_Datatype datatype_null{};
  MPI_Errhandler errhandler_null{};
  MPI_Errhandler errors_return{};
  MPI_Errhandler errors_are_fatal{};
  MPI_File file_null{};
  MPI_Group group_empty{};
  MPI_Info info_null{};
  MPI_Op sum{};
  MPI_Op replace{};
  MPI_Op no_op{};
  MPI_Request request_null{};
  // Open MPI: the object behind MPI_FILE_NULL, whose bytes our handles imitate.
  const void* file_null_object = nullptr;
};

// The table of the MPI this process runs; null when there is none, or when it is not the one that this library was built for (then
// one line has said so).
const Api* api_or_null();
// The same where an MPI call of the program has got us here: there is one.
const Api& api();

// The next definition of a function that we interpose: what would have been called without us. Null when the MPI lacks it.
void* next_function(const char* name);

}  // namespace spillway::mpi
