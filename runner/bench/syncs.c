/* SPDX-License-Identifier: Apache-2.0 */
/* Counts how often a plugin, or one of its libraries, syncs to the disk.  The command exports these
 * names, and the dynamic linker finds them before the C library's; they do the same. */
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runner/bench/bench.h"

static _Atomic uint64_t syncs;

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int fsync(int fd);
EXPORTED int fdatasync(int fd);
EXPORTED int msync(void *address, size_t length, int flags);

int
fsync(int fd)
{
  atomic_fetch_add_explicit(&syncs, 1, memory_order_relaxed);
  return (int)syscall(SYS_fsync, fd);
}

int
fdatasync(int fd)
{
  atomic_fetch_add_explicit(&syncs, 1, memory_order_relaxed);
  return (int)syscall(SYS_fdatasync, fd);
}

int
msync(void *address, size_t length, int flags)
{
  if (flags & MS_SYNC)
    atomic_fetch_add_explicit(&syncs, 1, memory_order_relaxed);
  return (int)syscall(SYS_msync, address, length, flags);
}

uint64_t
syncs_so_far(void)
{
  return atomic_load_explicit(&syncs, memory_order_relaxed);
}
