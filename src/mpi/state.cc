// What a handle knows and the program asks or sets: no user bytes move here.
#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <string>

#include "mpi/api.h"
#include "mpi/calls.h"
#include "mpi/info.h"

namespace spillway::mpi::calls {
namespace {

// Runs body(file) under the handle's lock.
template <typename Body>
int locked(FileHandle& handle, Body&& body) {
  Status status;
  {
    base::MutexLock lock(handle.mutex);
    status = body(*handle.file);
  }
  return finish_call(handle, status);
}

// The same for a call that yields a number.
template <typename Out, typename Body>
int locked_value(FileHandle& handle, Out* out, Body&& body) {
  return locked(handle, [&](file::OpenFile& file) {
    Result<std::int64_t> value = body(file);
    if (value.ok()) *out = static_cast<Out>(*value);
    return value.status();
  });
}

Result<Datarep> parse_datarep(const char* name) {
  const std::string text = name != nullptr ? name : "";
  if (text == "native") return Datarep::native;
  if (text == "internal") return Datarep::internal;
  if (text == "external32") return Datarep::external32;
  return Status(Code::bad_datarep,
                fmt::format("data representation '{}'; accepted: native, internal, external32", text));
}

const char* datarep_name(Datarep datarep) {
  switch (datarep) {
    case Datarep::native:
      return "native";
    case Datarep::internal:
      return "internal";
    case Datarep::external32:
      return "external32";
  }
  return "native";
}

// external32 describes the file with the sizes of that format; only where they are those of memory is that the same layout.
Status check_external_sizes(MPI_Datatype etype, const Datatype& decoded) {
  MPI_Aint external = 0;
  if (api().Pack_external_size("external32", 1, etype, &external) != MPI_SUCCESS || external != decoded.bytes) {
    return Status(Code::bad_datarep, "external32 is supported for etypes that take as many bytes there as in memory");
  }
  return {};
}

struct NewView {
  view::FileView view;
  Datarep datarep = Datarep::native;
};

Result<NewView> make_view(file::OpenFile& file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                          const char* datarep) {
  const bool current = displacement == MPI_DISPLACEMENT_CURRENT;
  if (current != file.mode().sequential) {
    return Status(Code::bad_argument, current
                                          ? "MPI_DISPLACEMENT_CURRENT needs MPI_MODE_SEQUENTIAL"
                                          : "a file opened with MPI_MODE_SEQUENTIAL needs MPI_DISPLACEMENT_CURRENT");
  }
  std::int64_t begin = displacement;
  if (current) {
    Result<std::int64_t> position = file.shared_position();
    if (!position) return position.status();
    begin = file.view().file_offset(*position * file.view().etype_bytes());
  }
  Result<Datarep> representation = parse_datarep(datarep);
  if (!representation) return representation.status();
  Result<std::shared_ptr<const Datatype>> element = decode(etype);
  if (!element) return element.status();
  Result<std::shared_ptr<const Datatype>> tile = decode(filetype);
  if (!tile) return tile.status();
  if (*representation == Datarep::external32) {
    if (Status status = check_external_sizes(etype, **element); !status) return status;
  }
  const bool writable = file.mode().access != storage::Access::read_only;
  Result<view::FileView> view =
      view::FileView::make(begin, (*element)->bytes, (*tile)->pattern, (*tile)->extent, writable);
  if (!view) return view.status();
  return NewView{std::move(view).value(), *representation};
}

// The program may free its types; what get_view answers must live on.
MPI_Datatype kept_type(MPI_Datatype type) {
  Result<std::shared_ptr<const Datatype>> decoded = decode(type);
  if (!decoded.ok() || (*decoded)->predefined) return type;
  MPI_Datatype copy = api().datatype_null;
  api().Type_dup(type, &copy);
  return copy;
}

void replace_type(MPI_Datatype& kept, MPI_Datatype type) {
  Result<std::shared_ptr<const Datatype>> decoded = decode(kept);
  if (decoded.ok() && !(*decoded)->predefined) api().Type_free(&kept);
  kept = kept_type(type);
}

}  // namespace

// --- size ---

int set_size(FileHandle& handle, MPI_Offset size) {
  return locked(handle, [&](file::OpenFile& file) { return file.set_size(size, {}); });
}
int preallocate(FileHandle& handle, MPI_Offset size) {
  return locked(handle, [&](file::OpenFile& file) { return file.preallocate(size, {}); });
}
int get_size(FileHandle& handle, MPI_Offset* size) {
  return locked_value(handle, size, [](file::OpenFile& file) { return file.size(); });
}

// --- what it was opened with ---

int get_group(FileHandle& handle, MPI_Group* group) {
  // A group of its own for the program to free.
  const int error = api().Group_union(handle.group, api().group_empty, group);
  return error;
}
int get_amode(FileHandle& handle, int* amode) {
  *amode = handle.amode;
  return MPI_SUCCESS;
}
int set_info(FileHandle& handle, MPI_Info info) {
  return locked(handle, [&](file::OpenFile& file) {
    file::Hints hints = file.hints();
    apply_info(hints, info);
    return file.set_hints(hints);
  });
}
int get_info(FileHandle& handle, MPI_Info* info_used) {
  base::MutexLock lock(handle.mutex);
  return make_info(handle.file->hints(), info_used);
}

// --- views and pointers ---

int set_view(FileHandle& handle, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep,
             MPI_Info info) {
  return locked(handle, [&](file::OpenFile& file) {
    Result<NewView> made = make_view(file, disp, etype, filetype, datarep);
    if (Status status = file.set_view(made.status(), made.ok() ? made->view : file.view()); !status) return status;
    handle.datarep = made->datarep;
    replace_type(handle.etype, etype);
    replace_type(handle.filetype, filetype);
    file::Hints hints = file.hints();
    apply_info(hints, info);
    return file.set_hints(hints);
  });
}
int get_view(FileHandle& handle, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype, char* datarep) {
  return locked(handle, [&](file::OpenFile& file) {
    *disp = file.view().displacement();
    *etype = kept_type(handle.etype);
    *filetype = kept_type(handle.filetype);
    std::strcpy(datarep, datarep_name(handle.datarep));
    return Status();
  });
}
int get_byte_offset(FileHandle& handle, MPI_Offset offset, MPI_Offset* disp) {
  return locked_value(handle, disp, [&](file::OpenFile& file) -> Result<std::int64_t> {
    if (offset < 0) return Status(Code::bad_argument, fmt::format("offset {} is negative", offset));
    return file.view().file_offset(offset * file.view().etype_bytes());
  });
}

namespace {

Result<std::int64_t> seek_target(file::OpenFile& file, MPI_Offset offset, int whence,
                                 const std::function<Result<std::int64_t>()>& current) {
  Result<std::int64_t> base = std::int64_t{0};
  switch (whence) {
    case MPI_SEEK_SET:
      break;
    case MPI_SEEK_CUR:
      base = current();
      break;
    case MPI_SEEK_END:
      base = file.end_position();
      break;
    default:
      return Status(Code::bad_argument,
                    fmt::format("whence {}; accepted: MPI_SEEK_SET, MPI_SEEK_CUR, MPI_SEEK_END", whence));
  }
  if (!base) return base;
  const std::int64_t target = *base + offset;
  if (target < 0)
    return Status(Code::bad_argument, fmt::format("a seek to {} would be before the begin of the view", target));
  return target;
}

Status no_sequential(const file::OpenFile& file) {
  if (!file.mode().sequential) return {};
  return Status(Code::unsupported, "the file was opened with MPI_MODE_SEQUENTIAL");
}

}  // namespace

int seek(FileHandle& handle, MPI_Offset offset, int whence) {
  return locked(handle, [&](file::OpenFile& file) {
    if (Status status = no_sequential(file); !status) return status;
    Result<std::int64_t> target =
        seek_target(file, offset, whence, [&] { return Result<std::int64_t>(file.position()); });
    if (target.ok()) file.set_position(*target);
    return target.status();
  });
}
int get_position(FileHandle& handle, MPI_Offset* offset) {
  return locked_value(handle, offset, [](file::OpenFile& file) -> Result<std::int64_t> {
    if (Status status = no_sequential(file); !status) return status;
    return file.position();
  });
}
int seek_shared(FileHandle& handle, MPI_Offset offset, int whence) {
  return locked(handle, [&](file::OpenFile& file) {
    Status mine = no_sequential(file);
    Result<std::int64_t> target = seek_target(file, offset, whence, [&] { return file.shared_position(); });
    if (mine.ok()) mine = target.status();
    return file.set_shared_position(target.ok() ? *target : 0, mine);
  });
}
int get_position_shared(FileHandle& handle, MPI_Offset* offset) {
  return locked_value(handle, offset, [](file::OpenFile& file) -> Result<std::int64_t> {
    if (Status status = no_sequential(file); !status) return status;
    return file.shared_position();
  });
}

// --- consistency ---

int set_atomicity(FileHandle& handle, int flag) {
  return locked(handle, [&](file::OpenFile& file) { return file.set_atomicity(flag != 0, {}); });
}
int get_atomicity(FileHandle& handle, int* flag) {
  *flag = handle.file->atomicity() ? 1 : 0;
  return MPI_SUCCESS;
}
int sync(FileHandle& handle) {
  return locked(handle, [](file::OpenFile& file) { return file.sync(); });
}

int type_extent(FileHandle& handle, MPI_Datatype datatype, std::int64_t* extent) {
  return locked_value(handle, extent, [&](file::OpenFile&) -> Result<std::int64_t> {
    Result<std::shared_ptr<const Datatype>> decoded = decode(datatype);
    if (!decoded) return decoded.status();
    return (*decoded)->extent;
  });
}

// --- error handlers ---

int set_errhandler(FileHandle& handle, MPI_Errhandler errhandler) {
  base::MutexLock lock(handle.mutex);
  release_handler(handle.handler);
  handle.handler = use_handler(errhandler);
  return MPI_SUCCESS;
}
int get_errhandler(FileHandle& handle, MPI_Errhandler* errhandler) {
  *errhandler = get_handler(handle.handler);
  return MPI_SUCCESS;
}
int call_errhandler(FileHandle& handle, int errorcode) {
  (void)invoke(handle.handler, to_mpi(&handle), errorcode);
  return MPI_SUCCESS;
}

}  // namespace spillway::mpi::calls
