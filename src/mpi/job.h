#pragma once

#include <string>

namespace spillway::mpi {

// A name for the job that all its processes on this node agree on without talking: given by `spillway run`, else made from what the
// launcher leaves behind (its namespace or step, or the process that started the ranks of this node).
[[nodiscard]] std::string job_name();

// How many processes of the job run on this node, as the launcher says; 0 when it does not.
[[nodiscard]] int local_process_count();

}  // namespace spillway::mpi
