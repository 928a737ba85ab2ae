// LD_PRELOAD shim: a disk that loses or refuses writes, or is slow.
//   POWER_CUT_DIR=DIR      keeps in DIR what a power cut would leave: each sync of a file copies what was written to it
//                          until then to the file of that name in DIR
//   POWER_CUT_DEAF=1       syncs copy nothing, as if the server called none
//   POWER_CUT_FAIL=FILE    once FILE exists every fdatasync fails with EIO
//   POWER_CUT_REFUSE=FILE  while FILE exists every write fails with the error number in FILE
//   POWER_CUT_SLOW=MS      each sync takes between half of MS and MS
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Written since the last sync. A file is written and synced through different descriptors.
struct change {
  ino_t inode;
  off_t from, to;
};
static struct change changes[64];
static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER, copying = PTHREAD_MUTEX_INITIALIZER;

static struct change *change_of(ino_t inode) {
  for (int n = 0; n < 64; n++) {
    if (changes[n].inode == inode) return &changes[n];
    if (changes[n].inode != 0) continue;
    changes[n] = (struct change){inode, LLONG_MAX, 0};
    return &changes[n];
  }
  abort();
}

static void note_change(int fd, off_t from, off_t to) {
  struct stat info;
  if (!getenv("POWER_CUT_DIR") || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return;
  pthread_mutex_lock(&noting);
  struct change *change = change_of(info.st_ino);
  if (from < change->from) change->from = from;
  if (to > change->to) change->to = to;
  pthread_mutex_unlock(&noting);
}

static struct change take_change(ino_t inode) {
  pthread_mutex_lock(&noting);
  struct change *change = change_of(inode), taken = *change;
  *change = (struct change){inode, LLONG_MAX, 0};
  pthread_mutex_unlock(&noting);
  return taken;
}

static void keep_copy(int fd) {
  const char *directory = getenv("POWER_CUT_DIR");
  struct stat info;
  if (!directory || getenv("POWER_CUT_DEAF") || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return;
  char link[64], path[PATH_MAX], kept[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return;
  path[length] = 0;
  const char *name = strrchr(path, '/') + 1;
  snprintf(kept, sizeof kept, "%s/%s", directory, name);

  pthread_mutex_lock(&copying);
  struct change change = take_change(info.st_ino);
  int from = open(path, O_RDONLY), to = open(kept, O_WRONLY | O_CREAT, 0600);
  off_t at = change.from;
  lseek(to, at, SEEK_SET);
  while (at < change.to && sendfile(to, from, &at, change.to - at) > 0) {
  }
  fstat(fd, &info); // the file may have grown meanwhile
  syscall(SYS_ftruncate, to, info.st_size);
  close(to);
  // Closing a second descriptor of a database would drop the process's locks on it: leave it open.
  if (strstr(name, "-wal")) close(from);
  pthread_mutex_unlock(&copying);
}

// A deleted rollback journal must not come back: journalling file systems keep the order of such changes.
int unlink(const char *path) {
  const char *directory = getenv("POWER_CUT_DIR"), *name = strrchr(path, '/');
  struct stat info;
  if (directory && name) {
    char kept[PATH_MAX];
    snprintf(kept, sizeof kept, "%s%s", directory, name);
    syscall(SYS_unlinkat, AT_FDCWD, kept, 0);
    if (stat(path, &info) == 0) take_change(info.st_ino);
  }
  return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

static void take_time(void) {
  const char *milliseconds = getenv("POWER_CUT_SLOW");
  int half = milliseconds ? 500 * atoi(milliseconds) : 0;
  if (half) usleep(half + rand() % half);
}

int fsync(int fd) {
  take_time();
  keep_copy(fd);
  return syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
  const char *failure = getenv("POWER_CUT_FAIL");
  if (failure && access(failure, F_OK) == 0) {
    errno = EIO;
    return -1;
  }
  take_time();
  keep_copy(fd);
  return syscall(SYS_fdatasync, fd);
}

static int is_refused(void) {
  const char *refusal = getenv("POWER_CUT_REFUSE");
  FILE *file = refusal ? fopen(refusal, "r") : 0;
  if (!file) return 0;
  if (fscanf(file, "%d", &errno) != 1) errno = ENOSPC;
  fclose(file);
  return 1;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
  if (is_refused()) return -1;
  ssize_t written = syscall(SYS_pwrite64, fd, bytes, count, at);
  note_change(fd, at, at + count);
  return written;
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) __attribute__((alias("pwrite")));

int ftruncate(int fd, off_t size) { return is_refused() ? -1 : syscall(SYS_ftruncate, fd, size); }
int ftruncate64(int fd, off_t size) __attribute__((alias("ftruncate")));

int fallocate(int fd, int mode, off_t at, off_t size) {
  return is_refused() ? -1 : syscall(SYS_fallocate, fd, mode, at, size);
}
int fallocate64(int fd, int mode, off_t at, off_t size) __attribute__((alias("fallocate")));

int posix_fallocate(int fd, off_t at, off_t size) {
  return is_refused() ? errno : syscall(SYS_fallocate, fd, 0, at, size) == 0 ? 0 : errno;
}
int posix_fallocate64(int fd, off_t at, off_t size) __attribute__((alias("posix_fallocate")));
