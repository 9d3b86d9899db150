#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "collective/collective_io.h"
#include "comm/communicator.h"
#include "comm/shared_counter.h"
#include "file/hints.h"
#include "file/io_context.h"
#include "file/landings.h"
#include "file/local_io.h"
#include "file/runtime.h"
#include "view/file_view.h"

namespace spillway::file {

struct OpenMode {
  storage::Access access = storage::Access::read_write;
  bool create = false;
  bool exclusive = false;
  bool delete_on_close = false;
  bool append = false;
  bool sequential = false;
  friend bool operator==(const OpenMode&, const OpenMode&) = default;
};

// A file opened by the ranks of a communicator: view, pointers, modes, and what every MPI_File operation does, without MPI's types.
// Offsets and positions are in etypes of the current view (MPI-4.1 §14.3), lengths in bytes.
//
// Calls marked collective are made by every rank, in the same order; whatever happens, every rank returns the same code from them.
// A write returns when its bytes are complete: in the journal, or, when nothing is staged, in the file. An error of the background is
// returned by the next write, sync or close of every rank, and again until the bytes behind it could be written.
//
// Threads: one at a time.  Blocks: collective calls for the other ranks; writes while the buffer is full; sync, and close when it
// drains, for the storage.
class OpenFile {
 public:
  struct Parts {
    Runtime& runtime;
    std::unique_ptr<comm::Communicator> comm;
    std::uint64_t commit_word = 0;  // in the node file: where the communicator's team counts its commits
    std::unique_ptr<comm::SharedCounter> shared_pointer;
  };
  // Collective.  Fails: as open(2) says on the rank where it failed first; the file is then open nowhere.
  static Result<std::unique_ptr<OpenFile>> open(Parts parts, const std::string& path, const OpenMode& mode,
                                                const Hints& hints);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  // Collective. The file is closed for the program whatever is returned; its bytes may still be on their way (deferred close).
  Status close();
  // Not collective. What is pending for the file is dropped, unless it has another name.
  static Status remove(Runtime& runtime, const std::string& path);

  [[nodiscard]] const std::string& path() const { return context_.target->path; }
  [[nodiscard]] const OpenMode& mode() const { return mode_; }
  [[nodiscard]] const view::FileView& view() const { return view_; }
  [[nodiscard]] const Hints& hints() const { return hints_; }
  [[nodiscard]] comm::Communicator& comm() { return *comm_; }
  // Collective.
  Status set_hints(const Hints& hints);
  // Collective. Both file pointers go to 0. `mine` says whether this rank's arguments were in order; nothing changes unless all were.
  Status set_view(const Status& mine, const view::FileView& view);

  // What this rank wants to move: `length` bytes between memory and the view from etype `offset` on.
  struct Transfer {
    std::int64_t offset = 0;
    const view::MemoryLayout* memory = nullptr;
    std::int64_t length = 0;
    Status precondition;  // of the arguments; a failure is returned, by all ranks where the call is collective
  };
  Status write(const Transfer& transfer);
  Status write_all(const Transfer& transfer);               // collective
  Result<std::int64_t> read(const Transfer& transfer);      // bytes; fewer than asked for at the end of the file
  Result<std::int64_t> read_all(const Transfer& transfer);  // collective

  // The individual file pointer.
  [[nodiscard]] std::int64_t position() const { return position_; }
  void set_position(std::int64_t position) { position_ = position; }
  // The shared file pointer: takes `length` bytes from it and returns where they begin.
  Result<std::int64_t> take_shared(std::int64_t length);
  Result<std::int64_t> shared_position() { return take_shared(0); }
  Status set_shared_position(std::int64_t position, const Status& mine);  // collective
  // Collective: each rank's place, in rank order, behind the shared pointer, which moves past all.
  Result<std::int64_t> take_ordered(std::int64_t length, const Status& mine);

  // One past the last byte, what is pending on this node included.
  Result<std::int64_t> size();
  // Where the view ends, in etypes: for seeking.
  Result<std::int64_t> end_position();
  Status set_size(std::int64_t bytes, const Status& mine);     // collective
  Status preallocate(std::int64_t bytes, const Status& mine);  // collective
  Status sync();                                               // collective
  Status set_atomicity(bool atomic, const Status& mine);       // collective
  [[nodiscard]] bool atomicity() const { return atomic_; }

 private:
  // One that is new, or of this process; one that other processes of the node still have.
  Status own_background_error();
  Status background_error();
  [[nodiscard]] Status others_background_error() const;
  [[nodiscard]] Status report(const char* what) const;
  OpenFile(Parts parts, const OpenMode& mode, const Hints& hints);
  Status open_target(const std::string& path);
  Status register_target(const std::string& path);
  void choose_staging();
  [[nodiscard]] Status check(const Transfer& transfer, bool writing) const;
  [[nodiscard]] collective::Call call_for(const Transfer& transfer) const;
  void mark_reported(const Status& status);
  void count_written(std::int64_t bytes, bool staged);
  [[nodiscard]] bool closes_drained() const;
  Status drain_all();
  Status grow_to_end();
  Status finish_close(Status status);
  Status write_locked(const collective::Call& call);
  Result<std::int64_t> read_locked(const collective::Call& call);
  Result<std::int64_t> same_everywhere(std::int64_t value, const Status& mine, const char* what);

  std::unique_ptr<comm::Communicator> comm_;
  std::unique_ptr<comm::SharedCounter> shared_pointer_;
  IoContext context_;
  OpenMode mode_;
  Hints hints_;
  std::int64_t limit_ = 0;
  view::FileView view_;
  std::int64_t position_ = 0;
  bool atomic_ = false;
  bool open_ = false;
  std::uint32_t seen_error_epoch_ = 0;
  FileLocalIo local_;
  StagedLanding staged_landing_;
  DirectLanding direct_landing_;
  ScratchReadLanding read_landing_;
  collective::CollectiveIo staged_io_;
  collective::CollectiveIo direct_io_;
};

}  // namespace spillway::file
