// The libc calls by which a program would notice that bytes of a closed file have not arrived yet: each waits for them and then does what
// it always did. Compiled without _FILE_OFFSET_BITS: both the plain and the 64-bit names are defined here.
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <vector>

#include "posix/arrivals.h"

#define SPILLWAY_EXPORT __attribute__((visibility("default")))

namespace {

using spillway::posix::await_all;
using spillway::posix::await_descriptor;
using spillway::posix::await_path;
using spillway::posix::RenameNote;

// The libc's own definition, or that of the next tool in LD_PRELOAD.
template <typename Function>
Function below(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
#define SPILLWAY_BELOW(name) static const auto next = below<decltype(&::name)>(#name)

// The third argument of open(), where it has one.
mode_t mode_argument(int flags, va_list arguments) {
  const bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return has_mode ? va_arg(arguments, mode_t) : 0;
}
#define SPILLWAY_MODE(flags)                           \
  va_list arguments;                                   \
  va_start(arguments, flags);                          \
  const mode_t mode = mode_argument(flags, arguments); \
  va_end(arguments)

// The NULL-terminated arguments of execl() and its kin; the list is left behind the NULL.
std::vector<char*> argument_list(const char* first, va_list& arguments) {
  std::vector<char*> list;
  for (char* argument = const_cast<char*>(first); argument != nullptr; argument = va_arg(arguments, char*))
    list.push_back(argument);
  list.push_back(nullptr);
  return list;
}

}  // namespace

extern "C" {

// --- open ---

SPILLWAY_EXPORT int open(const char* path, int flags, ...) {
  SPILLWAY_BELOW(open);
  SPILLWAY_MODE(flags);
  await_path(AT_FDCWD, path);
  return next(path, flags, mode);
}
SPILLWAY_EXPORT int open64(const char* path, int flags, ...) {
  SPILLWAY_BELOW(open64);
  SPILLWAY_MODE(flags);
  await_path(AT_FDCWD, path);
  return next(path, flags, mode);
}
SPILLWAY_EXPORT int openat(int directory, const char* path, int flags, ...) {
  SPILLWAY_BELOW(openat);
  SPILLWAY_MODE(flags);
  await_path(directory, path);
  return next(directory, path, flags, mode);
}
SPILLWAY_EXPORT int openat64(int directory, const char* path, int flags, ...) {
  SPILLWAY_BELOW(openat64);
  SPILLWAY_MODE(flags);
  await_path(directory, path);
  return next(directory, path, flags, mode);
}
// What the fortified forms of these become when no mode is given.
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
int __openat64_2(int directory, const char* path, int flags);
SPILLWAY_EXPORT int __open_2(const char* path, int flags) {
  SPILLWAY_BELOW(__open_2);
  await_path(AT_FDCWD, path);
  return next(path, flags);
}
SPILLWAY_EXPORT int __open64_2(const char* path, int flags) {
  SPILLWAY_BELOW(__open64_2);
  await_path(AT_FDCWD, path);
  return next(path, flags);
}
SPILLWAY_EXPORT int __openat_2(int directory, const char* path, int flags) {
  SPILLWAY_BELOW(__openat_2);
  await_path(directory, path);
  return next(directory, path, flags);
}
SPILLWAY_EXPORT int __openat64_2(int directory, const char* path, int flags) {
  SPILLWAY_BELOW(__openat64_2);
  await_path(directory, path);
  return next(directory, path, flags);
}
SPILLWAY_EXPORT int creat(const char* path, mode_t mode) {
  SPILLWAY_BELOW(creat);
  await_path(AT_FDCWD, path);
  return next(path, mode);
}
SPILLWAY_EXPORT int creat64(const char* path, mode_t mode) {
  SPILLWAY_BELOW(creat64);
  await_path(AT_FDCWD, path);
  return next(path, mode);
}
SPILLWAY_EXPORT FILE* fopen(const char* path, const char* mode) {
  SPILLWAY_BELOW(fopen);
  await_path(AT_FDCWD, path);
  return next(path, mode);
}
SPILLWAY_EXPORT FILE* fopen64(const char* path, const char* mode) {
  SPILLWAY_BELOW(fopen64);
  await_path(AT_FDCWD, path);
  return next(path, mode);
}
SPILLWAY_EXPORT FILE* freopen(const char* path, const char* mode, FILE* stream) {
  SPILLWAY_BELOW(freopen);
  await_path(AT_FDCWD, path);
  return next(path, mode, stream);
}
SPILLWAY_EXPORT FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  SPILLWAY_BELOW(freopen64);
  await_path(AT_FDCWD, path);
  return next(path, mode, stream);
}

// --- truncate: pending bytes must not come back afterwards ---

SPILLWAY_EXPORT int truncate(const char* path, off_t length) noexcept {
  SPILLWAY_BELOW(truncate);
  await_path(AT_FDCWD, path);
  return next(path, length);
}
SPILLWAY_EXPORT int truncate64(const char* path, off64_t length) noexcept {
  SPILLWAY_BELOW(truncate64);
  await_path(AT_FDCWD, path);
  return next(path, length);
}
SPILLWAY_EXPORT int ftruncate(int descriptor, off_t length) noexcept {
  SPILLWAY_BELOW(ftruncate);
  await_descriptor(descriptor);
  return next(descriptor, length);
}
SPILLWAY_EXPORT int ftruncate64(int descriptor, off64_t length) noexcept {
  SPILLWAY_BELOW(ftruncate64);
  await_descriptor(descriptor);
  return next(descriptor, length);
}

// --- rename: bytes follow the file by themselves; recovery must learn the new name ---

SPILLWAY_EXPORT int rename(const char* from, const char* to) noexcept {
  SPILLWAY_BELOW(rename);
  const RenameNote note(AT_FDCWD, from, AT_FDCWD, to);
  const int result = next(from, to);
  if (result == 0) note.done();
  return result;
}
SPILLWAY_EXPORT int renameat(int from_directory, const char* from, int to_directory, const char* to) noexcept {
  SPILLWAY_BELOW(renameat);
  const RenameNote note(from_directory, from, to_directory, to);
  const int result = next(from_directory, from, to_directory, to);
  if (result == 0) note.done();
  return result;
}
SPILLWAY_EXPORT int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                              unsigned flags) noexcept {
  SPILLWAY_BELOW(renameat2);
  const RenameNote note(from_directory, from, to_directory, to);
  const int result = next(from_directory, from, to_directory, to, flags);
  if (result == 0) note.done();
  return result;
}

// --- other programs: whatever they are going to read must have arrived; exec also ends this process's background thread ---

SPILLWAY_EXPORT int system(const char* command) {
  SPILLWAY_BELOW(system);
  await_all();
  return next(command);
}
SPILLWAY_EXPORT FILE* popen(const char* command, const char* type) {
  SPILLWAY_BELOW(popen);
  await_all();
  return next(command, type);
}
SPILLWAY_EXPORT int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                                const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]) {
  SPILLWAY_BELOW(posix_spawn);
  await_all();
  return next(pid, path, actions, attributes, argv, envp);
}
SPILLWAY_EXPORT int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                                 const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]) {
  SPILLWAY_BELOW(posix_spawnp);
  await_all();
  return next(pid, file, actions, attributes, argv, envp);
}
SPILLWAY_EXPORT int execve(const char* path, char* const argv[], char* const envp[]) noexcept {
  SPILLWAY_BELOW(execve);
  await_all();
  return next(path, argv, envp);
}
SPILLWAY_EXPORT int execv(const char* path, char* const argv[]) noexcept {
  SPILLWAY_BELOW(execv);
  await_all();
  return next(path, argv);
}
SPILLWAY_EXPORT int execvp(const char* file, char* const argv[]) noexcept {
  SPILLWAY_BELOW(execvp);
  await_all();
  return next(file, argv);
}
SPILLWAY_EXPORT int execvpe(const char* file, char* const argv[], char* const envp[]) noexcept {
  SPILLWAY_BELOW(execvpe);
  await_all();
  return next(file, argv, envp);
}
SPILLWAY_EXPORT int fexecve(int descriptor, char* const argv[], char* const envp[]) noexcept {
  SPILLWAY_BELOW(fexecve);
  await_all();
  return next(descriptor, argv, envp);
}
SPILLWAY_EXPORT int execl(const char* path, const char* argument, ...) noexcept {
  va_list arguments;
  va_start(arguments, argument);
  const std::vector<char*> argv = argument_list(argument, arguments);
  va_end(arguments);
  return execv(path, argv.data());
}
SPILLWAY_EXPORT int execlp(const char* file, const char* argument, ...) noexcept {
  va_list arguments;
  va_start(arguments, argument);
  const std::vector<char*> argv = argument_list(argument, arguments);
  va_end(arguments);
  return execvp(file, argv.data());
}
SPILLWAY_EXPORT int execle(const char* path, const char* argument, ...) noexcept {
  va_list arguments;
  va_start(arguments, argument);
  const std::vector<char*> argv = argument_list(argument, arguments);
  char* const* envp = va_arg(arguments, char* const*);
  va_end(arguments);
  return execve(path, argv.data(), envp);
}

}  // extern "C"
