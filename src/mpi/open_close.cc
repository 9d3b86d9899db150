// Opening, closing and deleting.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "mpi/api.h"
#include "mpi/calls.h"
#include "mpi/communicator.h"
#include "mpi/error_class.h"
#include "mpi/info.h"
#include "mpi/process.h"

namespace spillway::mpi::calls {
namespace {

// "ufs:/scratch/data" names the file system in ROMIO's way. Only these mean plain files; a colon elsewhere belongs to the name.
std::string plain_path(const char* filename) {
  constexpr std::string_view kPrefixes[] = {"ufs:", "nfs:", "xfs:", "lustre:", "gpfs:", "panfs:"};
  const std::string_view name = filename;
  for (const std::string_view prefix : kPrefixes) {
    if (name.substr(0, prefix.size()) == prefix) return std::string(name.substr(prefix.size()));
  }
  return std::string(name);
}

Status check_amode(int amode) {
  constexpr int kKnown = MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL |
                         MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND;
  const int access = ((amode & MPI_MODE_RDONLY) != 0 ? 1 : 0) + ((amode & MPI_MODE_RDWR) != 0 ? 1 : 0) +
                     ((amode & MPI_MODE_WRONLY) != 0 ? 1 : 0);
  if (access != 1)
    return Status(Code::bad_mode, "exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY must be given");
  if ((amode & ~kKnown) != 0)
    return Status(Code::bad_mode, fmt::format("amode {:#x} has bits that are not known", amode));
  if ((amode & MPI_MODE_RDONLY) != 0 && (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL)) != 0) {
    return Status(Code::bad_mode, "MPI_MODE_CREATE and MPI_MODE_EXCL do not go with MPI_MODE_RDONLY");
  }
  if ((amode & MPI_MODE_RDWR) != 0 && (amode & MPI_MODE_SEQUENTIAL) != 0) {
    return Status(Code::bad_mode, "MPI_MODE_SEQUENTIAL does not go with MPI_MODE_RDWR");
  }
  return {};
}

file::OpenMode mode_of(int amode) {
  file::OpenMode mode;
  mode.access = (amode & MPI_MODE_RDONLY) != 0   ? storage::Access::read_only
                : (amode & MPI_MODE_WRONLY) != 0 ? storage::Access::write_only
                                                 : storage::Access::read_write;
  mode.create = (amode & MPI_MODE_CREATE) != 0;
  mode.exclusive = (amode & MPI_MODE_EXCL) != 0;
  mode.delete_on_close = (amode & MPI_MODE_DELETE_ON_CLOSE) != 0;
  mode.append = (amode & MPI_MODE_APPEND) != 0;
  mode.sequential = (amode & MPI_MODE_SEQUENTIAL) != 0;
  return mode;
}

// Pipes, terminals and devices are left to the MPI's own I/O.
bool is_ordinary(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

// open(2) itself would open it for reading.
Status check_no_directory(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) return {};
  return Status(Code::bad_file_name, "is a directory").on_path(path);
}

// What each rank brings to an open.
struct Request {
  std::int32_t amode = 0;
  Code code = Code::ok;
  bool ordinary = true;
  std::uint64_t block = 0;  // a node's first rank: of its node's handle block; 0: there was no room
};

// What all ranks conclude, the same everywhere.
struct Decision {
  Status status;
  bool ours = true;
};

Decision decide(const comm::Gathered& all, const CommContext& context, const Status& mine) {
  Decision decision;
  const auto first = comm::value_of<Request>(all[0]);
  decision.ours = first.ordinary;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto request = comm::value_of<Request>(all[rank]);
    if (request.code > decision.status.code()) {
      decision.status =
          request.code == mine.code() ? mine : Status(request.code, "another rank's arguments were refused");
    }
    if (request.amode != first.amode && decision.status.code() < Code::not_same) {
      decision.status = Status(Code::not_same, "the ranks gave different access modes");
    }
    const auto& node_of = context.node_of();
    const bool leads =
        std::find(node_of.begin(), node_of.end(), node_of[rank]) - node_of.begin() == static_cast<std::ptrdiff_t>(rank);
    if (leads && request.block == 0) decision.ours = false;
  }
  return decision;
}

Result<std::unique_ptr<file::OpenFile>> open_ours(file::Runtime& runtime, std::shared_ptr<CommContext> context,
                                                  std::uint64_t block, const std::string& path, int amode,
                                                  MPI_Info info) {
  file::Hints hints(runtime.settings(), context->size(), context->rank() == 0);
  apply_info(hints, info);
  auto communicator = std::make_unique<MpiCommunicator>(std::move(context), block);
  Result<std::unique_ptr<comm::SharedCounter>> counter = communicator->make_counter();  // collective
  if (!counter) return counter.status();
  const std::uint64_t commit_word = communicator->commit_word();
  file::OpenFile::Parts parts{runtime, std::move(communicator), commit_word, std::move(counter).value()};
  return file::OpenFile::open(std::move(parts), path, mode_of(amode), hints);
}

void fill_handle(FileHandle& handle, MPI_Comm comm, int amode) {
  api().Comm_group(comm, &handle.group);
  handle.amode = amode;
  handle.etype = handle.filetype = api().byte;
  handle.handler = inherited_handler();
}

}  // namespace

int open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh, decltype(&PMPI_File_open) next) {
  const std::string path = filename != nullptr ? plain_path(filename) : "";
  Process& process = Process::instance();
  const auto forward = [&] { return next(comm, filename, amode, info, fh); };
  if (path.empty() || !process.manages(path) || api_or_null() == nullptr || comm == api().comm_null) return forward();
  int is_inter = 0;
  if (api().Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || is_inter != 0)
    return forward();  // an error, and MPI's to name

  file::Runtime* runtime = process.runtime();
  int mpi_error = MPI_SUCCESS;
  std::shared_ptr<CommContext> context =
      CommContext::get(comm, runtime != nullptr ? process.node() : nullptr,
                       runtime != nullptr ? runtime->journal().process() : 0, &mpi_error);
  if (context == nullptr) return mpi_error != MPI_SUCCESS ? mpi_error : forward();

  const int members = static_cast<int>(context->node_ranks().size());
  Status mine = check_amode(amode);
  if (mine.ok() && context->rank() == 0) mine = check_no_directory(path);
  Request request{amode, mine.code(), context->rank() != 0 || is_ordinary(path), 0};
  if (context->member() == 0) {
    Result<std::uint64_t> block = context->node().allocate_block(HandleBlock::bytes(members));
    if (!block.ok()) process.say_why_not(block.status().what());
    if (block.ok()) {
      request.block = *block;
      static_cast<HandleBlock*>(context->node().block(*block))
          ->users.store(static_cast<std::uint32_t>(members), std::memory_order_relaxed);
    }
  }
  comm::Gathered all;
  if (Status status = context->allgatherv(comm::bytes_of(request), all); !status) return invoke_on_null(status);
  const Decision decision = decide(all, *context, mine);
  if (!decision.ours || !decision.status.ok()) {
    if (request.block != 0) context->node().free_block(request.block, HandleBlock::bytes(members));
    return decision.ours ? invoke_on_null(decision.status) : forward();
  }

  const int rank = context->rank();
  const std::uint64_t block =
      comm::value_of<Request>(all[static_cast<std::size_t>(context->node_ranks().front())]).block;
  Result<std::unique_ptr<file::OpenFile>> file = open_ours(*runtime, std::move(context), block, path, amode, info);
  if (file.status().code() == Code::no_memory) {  // on every rank: there is no room for one more file
    if (rank == 0) process.say_why_not(file.status().what());
    // Made by us a moment ago, if it had to be new.
    return next(comm, filename, amode & ~MPI_MODE_EXCL, info, fh);
  }
  if (!file) {
    *fh = api().file_null;
    return invoke_on_null(file.status());
  }
  auto handle = std::make_unique<FileHandle>();
  handle->file = std::move(file).value();
  fill_handle(*handle, comm, amode);
  register_handle(std::move(handle), fh);
  return MPI_SUCCESS;
}

int close(FileHandle& handle, MPI_File* fh) {
  Status status;
  {
    base::MutexLock lock(handle.mutex);
    status = handle.file->close();
  }
  const int error = finish_call(handle, status);
  std::unique_ptr<FileHandle> owned = take_handle(*fh);
  *fh = api().file_null;
  release_handler(owned->handler);
  api().Group_free(&owned->group);
  for (MPI_Datatype* type : {&owned->etype, &owned->filetype}) {
    Result<std::shared_ptr<const Datatype>> decoded = decode(*type);
    if (decoded.ok() && !(*decoded)->predefined) api().Type_free(type);
  }
  return error;
}

int remove(const char* filename, MPI_Info info, decltype(&PMPI_File_delete) next) {
  file::Runtime* runtime = Process::instance().runtime_if_started();
  const std::string path = filename != nullptr ? plain_path(filename) : "";
  if (runtime == nullptr || path.empty() || !Process::instance().manages(path)) return next(filename, info);
  const Status status = file::OpenFile::remove(*runtime, path);
  return status.ok() ? MPI_SUCCESS : invoke_on_null(status);
}

}  // namespace spillway::mpi::calls
