// LD_PRELOAD shim: keeps, for every file that is synced, a copy as of that sync in POWER_CUT_DIR. Those copies are
// what a machine would find after a power cut that loses all that was not synced.
//   POWER_CUT_DEAF=1      fdatasync, the log's own sync, keeps no copy: as if the server did not call it
//   POWER_CUT_FAIL=FILE   once FILE exists every fdatasync fails with EIO
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

static pthread_mutex_t copying = PTHREAD_MUTEX_INITIALIZER;

static void keep_copy(int fd) {
  const char *directory = getenv("POWER_CUT_DIR");
  struct stat info;
  if (!directory || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return;
  char link[64], path[PATH_MAX], draft[PATH_MAX], kept[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return;
  path[length] = 0;
  const char *name = strrchr(path, '/') + 1;
  snprintf(draft, sizeof draft, "%s/.%s", directory, name);
  snprintf(kept, sizeof kept, "%s/%s", directory, name);

  pthread_mutex_lock(&copying);
  int from = open(path, O_RDONLY), to = open(draft, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  off_t at = 0;
  while (from >= 0 && to >= 0 && at < info.st_size && sendfile(to, from, &at, info.st_size - at) > 0) {
  }
  close(to);
  // Closing a second descriptor of a database would drop the process's locks on it: leave it open.
  if (strstr(name, "-wal")) close(from);
  rename(draft, kept);
  pthread_mutex_unlock(&copying);
}

// A rollback journal that is gone must not come back: journalling file systems keep the order of such changes.
int unlink(const char *path) {
  const char *directory = getenv("POWER_CUT_DIR"), *name = strrchr(path, '/');
  if (directory && name) {
    char kept[PATH_MAX];
    snprintf(kept, sizeof kept, "%s%s", directory, name);
    syscall(SYS_unlinkat, AT_FDCWD, kept, 0);
  }
  return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int fsync(int fd) {
  keep_copy(fd);
  return syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
  const char *failure = getenv("POWER_CUT_FAIL");
  if (failure && access(failure, F_OK) == 0) {
    errno = EIO;
    return -1;
  }
  if (!getenv("POWER_CUT_DEAF")) keep_copy(fd);
  return syscall(SYS_fdatasync, fd);
}
