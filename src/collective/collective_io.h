#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "collective/call.h"
#include "collective/landing.h"
#include "collective/plan.h"
#include "collective/view_table.h"
#include "comm/communicator.h"
#include "extent/extent.h"

namespace spillway::collective {

// A rank's own reads and writes without its peers, as independent calls do them.
class LocalIo {
 public:
  virtual ~LocalIo() = default;
  virtual Status write(const Call& call) = 0;
  // Makes sure that write() with this call cannot fail and need not wait; false when that cannot be promised. Ended by write() or
  // release().
  virtual bool hold(const Call& call) = 0;
  virtual void release() = 0;
  // `end` is where the file ends for this call; returns view bytes read, fewer than asked for only at the end.
  virtual Result<std::int64_t> read(const Call& call, std::int64_t end) = 0;
  // One past the last byte as far as this rank can see.
  virtual Result<std::int64_t> file_end() = 0;
  // The hull of what this process holds pending for the file.
  virtual extent::Extent pending_hull() = 0;
  // Gets what this process holds pending inside `range` into the file.
  virtual Status flush(const extent::Extent& range) = 0;
};

// Collective reads and writes over a Communicator. Agreement rule: no rank leaves a call alone, and all return the same code;
// a failure travels as data to the next exchange.
//
// Every method is collective: called by all ranks.  Threads: the rank's own.
class CollectiveIo {
 public:
  struct Parts {
    comm::Communicator& comm;
    LocalIo& local;
    WriteLanding& write_landing;
    ReadLanding& read_landing;
  };
  explicit CollectiveIo(const Parts& parts);

  Status write(const Call& call, const Policy& policy);
  // View bytes read by this rank.
  Result<std::int64_t> read(const Call& call, const Policy& policy);
  // Where the bytes of the last write ended in the file.
  [[nodiscard]] std::int64_t last_end() const { return last_end_; }
  // The view of some rank has changed.
  void view_changed() { views_.invalidate(); }

 private:
  Status gather(const Call& call, const Policy& policy, bool write_may_fail, std::vector<Header>& headers);
  Status write_planned(const Call& call, const std::vector<Header>& headers, const Plan& plan);
  // What other nodes hold pending where this call's bytes will be handled reaches the file first.
  Status settle_between_nodes(const std::vector<Header>& headers, const Plan& plan);
  Status exchange_views(const Call& call);

  Parts parts_;
  std::vector<int> node_of_;
  ViewTable views_;
  std::int64_t last_end_ = 0;
};

}  // namespace spillway::collective
