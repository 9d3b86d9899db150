#pragma once

#include <vector>

#include "collective/collective_io.h"
#include "file/io_context.h"

namespace spillway::file {

// One rank's own reads and writes: independent calls, and the ranks of an `individual` collective call.
class FileLocalIo final : public collective::LocalIo {
 public:
  explicit FileLocalIo(IoContext& context) : context_(context) {}

  // As part of a collective call: staged when collective writes are.
  Status write(const collective::Call& call) override;
  bool hold(const collective::Call& call) override;
  void release() override;
  Result<std::int64_t> read(const collective::Call& call, std::int64_t end) override;
  Result<std::int64_t> file_end() override;
  extent::Extent pending_hull() override;
  Status flush(const extent::Extent& range) override;

  // As an independent call: staged only where everyone who could look is on this node.
  Status write_independent(const collective::Call& call);

 private:
  Status write_staged(const collective::Call& call);
  Status write_direct(const collective::Call& call);

  IoContext& context_;
  journal::Journal::Hold hold_;
};

}  // namespace spillway::file
