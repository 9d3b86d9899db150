#include "base/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/json.h"

namespace spillway::base {
Result<std::unique_ptr<Trace>> Trace::open(const std::string& dir, int rank) {
  const std::string path = fmt::format("{}/trace-{}-{}.jsonl", dir, rank, getpid());
  UniqueFd fd = above_stdio(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid()) return Status::from_errno(errno, "trace").on_path(path);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::unique_ptr<Trace> trace(new Trace(std::move(fd)));
  MutexLock lock(trace->mutex_);
  trace->buffer_ =
      fmt::format("{{\"spillway_trace\":1,\"rank\":{},\"pid\":{},\"host\":{},\"clock\":\"monotonic_ns\"}}\n", rank,
                  getpid(), json_quoted(host));
  return trace;
}

void Trace::add(const Event& event) {
  const std::string line = fmt::format("{{\"t0\":{},\"t1\":{},\"what\":\"{}\",\"bytes\":{},\"file\":{}}}\n",
                                       event.begin_ns, event.end_ns, event.what, event.bytes, json_quoted(event.file));
  MutexLock lock(mutex_);
  if (buffer_.size() + line.size() > kBufferBytesMax) {
    ++dropped_;
    return;
  }
  buffer_ += line;
}

void Trace::flush() {
  std::string out;
  {
    MutexLock lock(mutex_);
    out.swap(buffer_);
    if (dropped_ > 0) out += fmt::format("{{\"dropped\":{}}}\n", dropped_);
    dropped_ = 0;
  }
  std::string_view rest = out;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return;  // a trace is no reason to disturb the program
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace spillway::base
