#include "collective/view_table.h"

namespace spillway::collective {

Status ViewTable::exchange(comm::Communicator& comm, const view::FileView& mine) {
  std::vector<std::byte> bytes;
  mine.serialize(bytes);
  comm::Gathered all;
  if (Status status = comm.allgatherv(bytes, all); !status) return status;
  std::vector<view::FileView> views;
  views.reserve(all.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    Result<view::FileView> view = view::FileView::parse(all[rank]);
    if (!view) return view.status();  // the same bytes everywhere: every rank fails alike
    views.push_back(std::move(view).value());
  }
  views_ = std::move(views);
  return {};
}

}  // namespace spillway::collective
