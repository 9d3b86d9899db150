#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "view/file_view.h"

namespace spillway::collective {

// The file views of all ranks, as compact as the datatypes they were made from. Exchanged once per change of view, at the first
// collective access that needs it, because set_view is collective: every rank knows when the table is stale.
class ViewTable {
 public:
  // Collective with every rank's set_view.
  void invalidate() { views_.clear(); }
  [[nodiscard]] bool valid() const { return !views_.empty(); }
  // Collective.
  Status exchange(comm::Communicator& comm, const view::FileView& mine);
  [[nodiscard]] const view::FileView& operator[](int rank) const { return views_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<view::FileView> views_;
};

}  // namespace spillway::collective
