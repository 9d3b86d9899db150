#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace spillway::base {

// What kind of thing went wrong. One list for the whole project; foreign error sets (errno, MPI error classes)
// are translated at their own border, each in one table (status.cc; src/mpi/error_class.cc).
// The order matters: when the ranks of a collective failed differently, agree() returns the largest code.
enum class Code : std::uint8_t {
  ok = 0,
  would_block,    // flow control, never a failure: try again after progress
  bad_argument,   // the caller's argument is outside what the interface accepts
  bad_count,      // the same of a number of elements
  unsupported,    // legal, but neither this file nor this mode can do it
  not_same,       // the ranks of a collective call gave different arguments
  bad_file_name,  // too long, a directory in the way, ...
  no_such_file,
  file_exists,
  access_denied,
  read_only,
  file_in_use,
  bad_mode,  // access mode (amode) is contradictory
  bad_type,  // datatype cannot be used here
  bad_datarep,
  no_memory,
  quota,
  no_space,
  corrupt,    // a journal or message that does not check
  peer_lost,  // another process of the job died or does not answer
  io,         // every other failure of the storage
  internal,   // our bug
};

[[nodiscard]] std::string_view name_of(Code code);
[[nodiscard]] Code code_of_errno(int errno_value);

// The outcome of an operation: ok, or a code with the errno, file offset and path it concerns where they are known.
// Threads: a value; each thread its own.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string what) : code_(code), what_(std::move(what)) {}

  // From a failed system call: "WHAT: strerror". Call it before anything else can change errno.
  static Status from_errno(int errno_value, std::string_view what);

  [[nodiscard]] bool ok() const { return code_ == Code::ok; }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] Code code() const { return code_; }
  [[nodiscard]] int errno_value() const { return errno_; }
  [[nodiscard]] std::int64_t offset() const { return offset_; }
  [[nodiscard]] const std::string& what() const { return what_; }

  // Adds where it happened; keeps what is already known.
  Status& at_offset(std::int64_t offset);
  Status& on_path(std::string_view path);

  // "no_space: write of 4194304 bytes: No space left on device (offset 8388608, /scratch/out)"
  [[nodiscard]] std::string to_string() const;

 private:
  Code code_ = Code::ok;
  int errno_ = 0;
  std::int64_t offset_ = -1;
  std::string what_;
};

// A value or the Status that explains its absence. value() on a failed Result is our bug and asserts.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : state_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] Status status() const { return ok() ? Status() : std::get<Status>(state_); }
  [[nodiscard]] T& value() & { return std::get<T>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<T>(state_); }
  [[nodiscard]] T&& value() && { return std::get<T>(std::move(state_)); }
  T* operator->() { return &value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace spillway::base

namespace spillway {
using base::Code;
using base::Result;
using base::Status;
}  // namespace spillway
