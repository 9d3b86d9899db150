#include "base/inside.h"

namespace spillway::base {
namespace {

// initial-exec: reading it allocates nothing, so that it may be read in any place a program may call open() from.
__attribute__((tls_model("initial-exec"))) thread_local int t_depth = 0;

}  // namespace

int& Inside::depth() { return t_depth; }

}  // namespace spillway::base
