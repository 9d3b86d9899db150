#pragma once

#include <cstdint>

#include "base/status.h"
#include "view/file_view.h"

namespace spillway::collective {

// One rank's part in a collective read or write.
struct Call {
  const view::FileView* view = nullptr;
  view::ViewRange range;                       // in view space
  const view::MemoryLayout* memory = nullptr;  // stream byte 0 is view byte range.position
  // What already went wrong on this rank (bad arguments, an error latched in the background). It does not keep the rank out of the
  // call: its peers are waiting. It becomes everyone's result.
  Status precondition;
};

enum class Algorithm { two_phase, individual };

// How the user wants it. Rank 0's counts: hints that differ between ranks must not make their ranks run different protocols.
struct Policy {
  bool choose = true;  // else `algorithm` as given
  Algorithm algorithm = Algorithm::two_phase;
  std::int32_t aggregators_max = 0;           // 0: every rank
  std::int32_t aggregators_per_node_max = 0;  // 0: no limit
  std::int64_t alignment = 0;                 // of file domains; 0: chosen
};

}  // namespace spillway::collective
