#pragma once

#include <span>

#include "base/status.h"
#include "collective/call.h"
#include "collective/landing.h"
#include "collective/plan.h"
#include "collective/view_table.h"
#include "comm/communicator.h"

// Two-phase I/O: the file range of a call is cut into one domain per aggregator; in rounds, each aggregator makes room for the next
// part of its domain, the ranks put their pieces there, and the aggregator passes it on. Ranks of the aggregator's node place their
// bytes themselves, once, in file layout; other nodes send one message per pair and round.
namespace spillway::collective {

struct TwoPhase {
  comm::Communicator& comm;
  const Call& call;
  std::span<const Header> headers;
  const Plan& plan;
  const ViewTable& views;
};

// Collective. Every rank returns the same code.
Status write_two_phase(const TwoPhase& parts, WriteLanding& landing);
// Collective. The headers' ranges end at the end of the file; all of them are filled.
Status read_two_phase(const TwoPhase& parts, ReadLanding& landing);

}  // namespace spillway::collective
