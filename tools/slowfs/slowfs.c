// slowfs: a FUSE pass-through file system that behaves like a slow, shared, imperfect file server. Each
// process is mounted on one client node; server.h is the server they share, control.h how it is told what to
// do, README.md the manual. The paths of the backing directory are reached relative to the working directory,
// which main() sets.
#define FUSE_USE_VERSION 312
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <fuse_lowlevel.h>
#include <getopt.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "control.h"
#include "server.h"

// What the client keeps: nothing (direct I/O), pages until the next open (close-to-open), or pages written
// back late.
enum cache { CACHE_NONE, CACHE_CLOSE_TO_OPEN, CACHE_WRITE_BACK };

static enum cache cache;
static double attribute_seconds = 1;
static struct server* server;

// An open file or directory, or one of the two special files.
struct handle {
  enum special { ORDINARY, CONTROL, STATISTICS } special;
  int fd;           // -1 for the special files
  int deferred;     // -errno of a lost write, for the next fsync or close
  uint64_t locker;  // the last owner of a byte-range lock
  struct stream stream;
  char path[];
};

typedef struct fuse_file_info* info;

static struct handle* handle_of(info fi) { return (struct handle*)(uintptr_t)fi->fh; }

static const char* relative(const char* path) { return path[1] ? path + 1 : "."; }

static enum special special_named(const char* path) {
  if (path && !strcmp(path, "/.slowfs-control")) return CONTROL;
  if (path && !strcmp(path, "/.slowfs-stats")) return STATISTICS;
  return ORDINARY;
}

static int is_special(const char* path, info fi) { return special_named(path) || (fi && handle_of(fi)->fd < 0); }

static int result_of(long value) { return value < 0 ? -errno : (int)value; }

static int begin_meta(const char* path) { return server_begin(OP_META, path, NULL, NULL); }

// Does `call`, a system call on names or attributes, as a request on `path`.
#define META(path, call)                        \
  do {                                          \
    const int refused = begin_meta(path);       \
    return refused ? refused : result_of(call); \
  } while (0)

// New entries belong to who made them, not to this process.
static int give_away(const char* path, int result) {
  const struct fuse_context* c = fuse_get_context();
  if (result < 0 || geteuid() != 0 || !(c->uid || c->gid)) return result;
  return lchown(relative(path), c->uid, c->gid);
}

// ---- names and attributes
// -------------------------------------------------------------------------------------

static int slow_getattr(const char* path, struct stat* st, info fi) {
  if (is_special(path, fi)) {
    *st = (struct stat){.st_mode = S_IFREG | 0666, .st_nlink = 1};
    return 0;
  }
  META(path, fi ? fstat(handle_of(fi)->fd, st) : lstat(relative(path), st));
}

static int slow_readlink(const char* path, char* text, size_t size) {
  const ssize_t length = readlink(relative(path), text, size - 1);
  if (length < 0) return -errno;
  text[length] = '\0';
  return 0;
}

static int slow_mknod(const char* path, mode_t mode, dev_t device) {
  META(path, give_away(path, mknod(relative(path), mode, device)));
}
static int slow_mkdir(const char* path, mode_t mode) { META(path, give_away(path, mkdir(relative(path), mode))); }
static int slow_symlink(const char* target, const char* path) {
  META(path, give_away(path, symlink(target, relative(path))));
}
static int slow_unlink(const char* path) { META(path, unlink(relative(path))); }
static int slow_rmdir(const char* path) { META(path, rmdir(relative(path))); }
static int slow_link(const char* from, const char* to) { META(from, link(relative(from), relative(to))); }
static int slow_rename(const char* from, const char* to, unsigned flags) {
  META(from, renameat2(AT_FDCWD, relative(from), AT_FDCWD, relative(to), flags));
}
static int slow_chmod(const char* path, mode_t mode, info fi) {
  META(path, fi ? fchmod(handle_of(fi)->fd, mode) : chmod(relative(path), mode));
}
static int slow_chown(const char* path, uid_t user, gid_t group, info fi) {
  META(path, fi ? fchown(handle_of(fi)->fd, user, group) : lchown(relative(path), user, group));
}
static int slow_utimens(const char* path, const struct timespec times[2], info fi) {
  META(path, fi ? futimens(handle_of(fi)->fd, times) : utimensat(AT_FDCWD, relative(path), times, AT_SYMLINK_NOFOLLOW));
}
static int slow_truncate(const char* path, off_t size, info fi) {
  if (is_special(path, fi)) return 0;
  META(path, fi ? ftruncate(handle_of(fi)->fd, size) : truncate(relative(path), size));
}
static int slow_statfs(const char* path, struct statvfs* st) { META(path, statvfs(".", st)); }
static int slow_fallocate(const char* path, int mode, off_t offset, off_t length, info fi) {
  (void)path;
  META(handle_of(fi)->path, fallocate(handle_of(fi)->fd, mode, offset, length));
}

static int slow_readdir(const char* path, void* entries, fuse_fill_dir_t fill, off_t offset, info fi,
                        enum fuse_readdir_flags flags) {
  (void)path, (void)offset, (void)flags;
  const int refused = begin_meta(handle_of(fi)->path);
  if (refused) return refused;
  DIR* directory = fdopendir(openat(handle_of(fi)->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return -errno;
  for (const struct dirent* entry; (entry = readdir(directory));) fill(entries, entry->d_name, NULL, 0, 0);
  return result_of(closedir(directory));
}

// ---- open files
// -----------------------------------------------------------------------------------------------

static int slow_create(const char* path, mode_t mode, info fi) {
  const enum special special = special_named(path);
  int flags = (fi->flags & ~(O_DIRECT | O_APPEND | O_NOFOLLOW)) | O_CLOEXEC;
  // Under write-back the kernel reads what is around a partial page.
  if (cache == CACHE_WRITE_BACK && (flags & O_ACCMODE) == O_WRONLY) flags = (flags & ~O_ACCMODE) | O_RDWR;
  const int refused = special ? 0 : server_begin(OP_OPEN, path, NULL, NULL);
  if (refused) return refused;

  struct handle* h = calloc(1, sizeof *h + strlen(path) + 1);
  if (!h) return -ENOMEM;
  h->fd = special ? -1 : open(relative(path), flags, mode);
  if (!special && (h->fd < 0 || ((flags & O_CREAT) && give_away(path, 0)))) {
    const int error = -errno;
    if (h->fd >= 0) close(h->fd);
    free(h);
    return error;
  }
  h->special = special;
  strcpy(h->path, path);
  stream_open(&h->stream, !special && (fi->flags & O_ACCMODE) != O_RDONLY);
  fi->fh = (uintptr_t)h;
  fi->direct_io = special || cache == CACHE_NONE;
  return 0;
}

// A name the kernel knows and the backing directory lacks: another node removed it, look it up again.
static int slow_open(const char* path, info fi) {
  const int result = slow_create(path, 0, fi);
  return result == -ENOENT ? -ESTALE : result;
}

static int slow_release(const char* path, info fi) {
  struct handle* h = handle_of(fi);
  (void)path;
  stream_close(&h->stream);
  if (h->fd >= 0) close(h->fd);
  free(h);
  return 0;
}

// The bytes of one request, on the backing file. Returns what was done, or -errno.
static ssize_t move_bytes(enum operation direction, const struct handle* h, char* data, size_t bytes, off_t offset) {
  size_t done = 0;
  if (direction == OP_READ) {
    const ssize_t n = pread(h->fd, data, bytes, offset);
    return n < 0 ? -errno : n;
  }
  while (done < bytes) {
    const ssize_t n = pwrite(h->fd, data + done, bytes - done, offset + (off_t)done);
    if (n < 0 && !done) return -errno;
    if (n <= 0) break;
    done += (size_t)n;
  }
  return (ssize_t)done;
}

static int transfer(enum operation direction, struct handle* h, char* data, size_t bytes, off_t offset) {
  enum fault_kind fault = FAULT_NONE;
  int lost = 0;
  const int refused = server_begin(direction, h->path, &fault, &lost);
  if (refused) return refused;
  const nanoseconds start = now();
  if (fault == FAULT_SHORT && bytes > 1) bytes /= 2;
  size_t kept = bytes;
  if (direction == OP_WRITE) kept = server_kept(h->path, offset, bytes);
  if (fault == FAULT_DEFER) {
    __atomic_store_n(&h->deferred, -lost, __ATOMIC_RELAXED);
    kept = 0;
  }
  server_in_flight(direction, 1);
  const ssize_t moved = move_bytes(direction, h, data, kept, offset);
  // What the server drops, it claims to have.
  const ssize_t claimed = moved == (ssize_t)kept && direction == OP_WRITE ? (ssize_t)bytes : moved;
  if (claimed >= 0) server_finish(direction, &h->stream, (size_t)claimed, start);
  server_in_flight(direction, -1);
  return (int)claimed;
}

static int slow_read(const char* path, char* data, size_t bytes, off_t offset, info fi) {
  (void)path;
  if (handle_of(fi)->special == CONTROL) return 0;
  if (handle_of(fi)->special == ORDINARY) return transfer(OP_READ, handle_of(fi), data, bytes, offset);
  char text[STATISTICS_BYTES_MAX];
  const size_t length = control_statistics(server, text, sizeof text);
  const size_t at = (size_t)offset < length ? (size_t)offset : length;
  if (bytes > length - at) bytes = length - at;
  memcpy(data, text + at, bytes);
  return (int)bytes;
}

static int slow_write(const char* path, const char* data, size_t bytes, off_t offset, info fi) {
  (void)path;
  if (handle_of(fi)->special == ORDINARY) return transfer(OP_WRITE, handle_of(fi), (char*)data, bytes, offset);
  const int result = handle_of(fi)->special == CONTROL ? control_run(server, data, bytes) : -EACCES;
  return result ? result : (int)bytes;
}

// Every close() of a descriptor.
static int slow_flush(const char* path, info fi) {
  struct handle* h = handle_of(fi);
  (void)path;
  if (h->special) return 0;
  const int refused = server_begin(OP_CLOSE, h->path, NULL, NULL);
  return refused ? refused : __atomic_exchange_n(&h->deferred, 0, __ATOMIC_RELAXED);
}

static int slow_fsync(const char* path, int data_only, info fi) {
  struct handle* h = handle_of(fi);
  (void)path;
  if (h->special) return 0;
  const int refused = server_begin(OP_FSYNC, h->path, NULL, NULL);
  const int deferred = refused ? refused : __atomic_exchange_n(&h->deferred, 0, __ATOMIC_RELAXED);
  if (deferred) return deferred;
  return result_of(data_only ? fdatasync(h->fd) : fsync(h->fd));
}

static off_t slow_lseek(const char* path, off_t offset, int whence, info fi) {
  (void)path;
  const off_t at = lseek(handle_of(fi)->fd, offset, whence);
  return at < 0 ? -errno : at;
}

// Locks of open file descriptions, so that the other nodes see them.
static int slow_lock(const char* path, info fi, int command, struct flock* lock) {
  struct handle* h = handle_of(fi);
  (void)path;
  if (lock->l_type == F_UNLCK && h->locker != fi->lock_owner) return 0;  // a forked child closes its copy
  h->locker = fi->lock_owner;
  lock->l_pid = 0;
  return result_of(fcntl(h->fd,
                         command == F_GETLK   ? F_OFD_GETLK
                         : command == F_SETLK ? F_OFD_SETLK
                                              : F_OFD_SETLKW,
                         lock));
}

static int slow_flock(const char* path, info fi, int operation) {
  (void)path;
  return result_of(flock(handle_of(fi)->fd, operation));
}

static void* slow_init(struct fuse_conn_info* connection, struct fuse_config* config) {
  connection->want &= ~(unsigned)(FUSE_CAP_READDIRPLUS | FUSE_CAP_WRITEBACK_CACHE);
  if (cache == CACHE_WRITE_BACK) connection->want |= FUSE_CAP_WRITEBACK_CACHE;
  connection->max_background = 128;
  config->nullpath_ok = config->use_ino = 1;
  config->attr_timeout = config->entry_timeout = attribute_seconds;
  return NULL;
}

static const struct fuse_operations operations = {
    .init = slow_init,
    .getattr = slow_getattr,
    .readlink = slow_readlink,
    .mknod = slow_mknod,
    .mkdir = slow_mkdir,
    .symlink = slow_symlink,
    .unlink = slow_unlink,
    .rmdir = slow_rmdir,
    .link = slow_link,
    .rename = slow_rename,
    .chmod = slow_chmod,
    .chown = slow_chown,
    .utimens = slow_utimens,
    .truncate = slow_truncate,
    .statfs = slow_statfs,
    .opendir = slow_open,
    .readdir = slow_readdir,
    .releasedir = slow_release,
    .open = slow_open,
    .create = slow_create,
    .read = slow_read,
    .write = slow_write,
    .flush = slow_flush,
    .release = slow_release,
    .fsync = slow_fsync,
    .fallocate = slow_fallocate,
    .lseek = slow_lseek,
    .lock = slow_lock,
    .flock = slow_flock,
};

// ---- requests in parallel
// -------------------------------------------------------------------------------------

// Without FOPEN_PARALLEL_DIRECT_WRITES the kernel sends the writes of one node to one file one after the
// other, and libfuse before 3.15 cannot ask for it. So the bit is set in the replies to OPEN and CREATE on
// their way out; a thread answers the request it read last.
static _Thread_local uint32_t request_opcode;

static ssize_t read_request(int fd, void* request, size_t size, void* unused) {
  const ssize_t n = read(fd, request, size);
  (void)unused;
  if (n >= (ssize_t)sizeof(struct fuse_in_header)) request_opcode = ((struct fuse_in_header*)request)->opcode;
  return n;
}

static ssize_t write_reply(int fd, struct iovec* parts, int count, void* unused) {
  const size_t at = request_opcode == FUSE_CREATE ? sizeof(struct fuse_entry_out) : 0;
  const int opens = request_opcode == FUSE_OPEN || request_opcode == FUSE_CREATE;
  (void)unused;
  if (opens && count == 2 && parts[1].iov_len == at + sizeof(struct fuse_open_out)) {
    struct fuse_open_out* reply = (struct fuse_open_out*)((char*)parts[1].iov_base + at);
    if (reply->open_flags & FOPEN_DIRECT_IO) reply->open_flags |= FOPEN_PARALLEL_DIRECT_WRITES;
  }
  return writev(fd, parts, count);
}

// ---- the program
// ----------------------------------------------------------------------------------------------

struct arguments {
  int foreground, with_parent, commands;
  const char *state, *backing, *mount_point;
  char* command[32];
};

static const char usage[] =
    "usage: slowfs [option]... BACKING MOUNTPOINT\n"
    "  -f, --foreground          do not become a daemon\n"
    "  -p, --with-parent         unmount and end when the process that started this one ends; implies -f\n"
    "  -s, --state FILE          share the server with every slowfs that names this file (a server of its "
    "own)\n"
    "  -m, --cache none|cto|wb   the client's cache: none, close-to-open, write-back (none)\n"
    "  -t, --attributes SECONDS  how long the client keeps attributes and names (1)\n"
    "  -l, --link BYTES/S        limit of this node's own link, each direction (0: no limit)\n"
    "  -c, --command COMMAND     run a control command before mounting; may be repeated\n"
    "control commands, also one a line to MOUNTPOINT/.slowfs-control; counters are in "
    "MOUNTPOINT/.slowfs-stats:\n";

static void refuse_option(const char* option, const char* value, const char* accepted) {
  errx(2, "%s %s: must be %s", option, value, accepted);
}

static double parse_number(const char* option, const char* text) {
  char* end = NULL;
  const double value = strtod(text, &end);
  if (end == text || *end || value < 0) refuse_option(option, text, "a number, not negative");
  return value;
}

static struct arguments parse(int argc, char** argv) {
  static const struct option names[] = {
      {"foreground", 0, 0, 'f'}, {"with-parent", 0, 0, 'p'}, {"state", 1, 0, 's'},
      {"cache", 1, 0, 'm'},      {"attributes", 1, 0, 't'},  {"link", 1, 0, 'l'},
      {"command", 1, 0, 'c'},    {"help", 0, 0, 'h'},        {0, 0, 0, 0},
  };
  struct arguments a = {0};
  for (int option; (option = getopt_long(argc, argv, "fps:m:t:l:c:h", names, NULL)) != -1;) switch (option) {
      case 'f':
        a.foreground = 1;
        break;
      case 'p':
        a.foreground = a.with_parent = 1;
        break;
      case 's':
        a.state = optarg;
        break;
      case 't':
        attribute_seconds = parse_number("--attributes", optarg);
        break;
      case 'l':
        server_limit_node(parse_number("--link", optarg));
        break;
      case 'm':
        if (strcmp(optarg, "none") && strcmp(optarg, "cto") && strcmp(optarg, "wb"))
          refuse_option("--cache", optarg, "none, cto or wb");
        cache = !strcmp(optarg, "wb") ? CACHE_WRITE_BACK : !strcmp(optarg, "cto") ? CACHE_CLOSE_TO_OPEN : CACHE_NONE;
        break;
      case 'c':
        if (a.commands == sizeof a.command / sizeof *a.command) errx(2, "--command: more than 32");
        a.command[a.commands++] = optarg;
        break;
      case 'h':
        printf("%s%s", usage, control_help);
        exit(0);
      default:
        fprintf(stderr, "%s%s", usage, control_help);
        exit(2);
    }
  if (argc - optind != 2) {
    fprintf(stderr, "slowfs: BACKING and MOUNTPOINT are needed\n%s%s", usage, control_help);
    exit(2);
  }
  a.backing = argv[optind];
  a.mount_point = argv[optind + 1];
  return a;
}

// Mounts itself when root, through fusermount3 otherwise; then other users cannot look in.
static struct fuse* mount_at(const char* mount_point) {
  char* options[] = {"slowfs", "-o", "default_permissions,fsname=slowfs,subtype=slowfs", "-o", "allow_other"};
  struct fuse_args args = FUSE_ARGS_INIT(geteuid() == 0 ? 5 : 3, options);
  const struct fuse_custom_io io = {.writev = write_reply, .read = read_request};
  struct fuse* fuse = fuse_new(&args, &operations, sizeof operations, NULL);
  fuse_opt_free_args(&args);
  if (!fuse) errx(1, "libfuse refuses its options");
  if (fuse_mount(fuse, mount_point)) errx(1, "cannot mount on %s: is /dev/fuse there, and fusermount3?", mount_point);
  struct fuse_session* session = fuse_get_session(fuse);
  if (fuse_session_custom_io(session, &io, fuse_session_fd(session))) errx(1, "libfuse refuses the parallel writes");
  return fuse;
}

int main(int argc, char** argv) {
  const pid_t parent = getppid();
  const struct arguments a = parse(argc, argv);
  const int backing = open(a.backing, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (backing < 0) err(1, "%s", a.backing);
  server = server_attach(a.state);
  for (int i = 0; i < a.commands; i++)
    if (control_run(server, a.command[i], strlen(a.command[i])))
      errx(2, "--command '%s': unknown, or a bad value; the commands are\n%s", a.command[i], control_help);

  // Absolute: the working directory is about to be the backing directory.
  char* const mount_point = realpath(a.mount_point, NULL);
  if (!mount_point) err(1, "%s", a.mount_point);
  struct fuse* fuse = mount_at(mount_point);
  fuse_set_signal_handlers(fuse_get_session(fuse));
  int result = fuse_daemonize(a.foreground);
  if (a.with_parent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) result = SIGTERM;  // it ended before the signal was asked for
  }
  if (!result && fchdir(backing)) result = -errno;
  if (!result) {
    struct fuse_loop_config* loop = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(loop, 256);
    umask(0);
    result = fuse_loop_mt(fuse, loop);
    fuse_loop_cfg_destroy(loop);
  }
  fuse_unmount(fuse);
  fuse_remove_signal_handlers(fuse_get_session(fuse));
  fuse_destroy(fuse);
  free(mount_point);
  return result < 0;  // positive: the signal that asked it to end
}
