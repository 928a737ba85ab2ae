// LD_PRELOAD shim: each sync takes SLOW_SYNC_MS longer, as on a slower disk.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_for_the_disk(void) {
  const char *milliseconds = getenv("SLOW_SYNC_MS");
  if (milliseconds) usleep(1000 * atoi(milliseconds));
}

int fdatasync(int fd) {
  wait_for_the_disk();
  return syscall(SYS_fdatasync, fd);
}

int fsync(int fd) {
  wait_for_the_disk();
  return syscall(SYS_fsync, fd);
}
