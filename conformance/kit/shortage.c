/* SPDX-License-Identifier: Apache-2.0 */
/* See shortage.h.  The state is the process's own, for it stands in for functions of the C library,
 * which have no handle.  Nothing here allocates or takes a lock. */
#include "conformance/kit/shortage.h"

#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <sys/auxv.h>

static struct kit_shortage *_Atomic armed;

/* Where the dynamic linker lies.  It ends the process if it finds no room for a thread's
 * variables. */
static _Atomic uintptr_t linker_begin, linker_end;

static int
note_linker(struct dl_phdr_info *info, size_t size, void *base)
{
  (void)size;
  if (info->dlpi_addr != *(const uintptr_t *)base)
    return 0;
  for (size_t i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD)
      atomic_store(&linker_end,
                   info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
  atomic_store(&linker_begin, info->dlpi_addr);
  return 1;
}

void
kit_shortage_arm(struct kit_shortage *shortage)
{
  uintptr_t base = getauxval(AT_BASE);

  if (shortage != NULL && atomic_load(&linker_end) == 0)
    dl_iterate_phdr(note_linker, &base);
  atomic_store(&armed, shortage);
}

extern const char __executable_start[], etext[]; /* by the linker */

bool
kit_is_own_call(const void *caller)
{
  return (uintptr_t)caller >= (uintptr_t)__executable_start &&
         (uintptr_t)caller < (uintptr_t)etext;
}

/* ---- in place of the C library's ------------------------------------------------------------- */

#if defined __has_feature /* clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define __SANITIZE_ADDRESS__
#endif
#endif
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__

static bool
is_exempt(const void *caller)
{
  uintptr_t at = (uintptr_t)caller;

  return kit_is_own_call(caller) ||
         (at >= atomic_load(&linker_begin) && at < atomic_load(&linker_end));
}

static bool
fails_for(const void *caller)
{
  struct kit_shortage *shortage = atomic_load_explicit(&armed, memory_order_acquire);

  if (shortage == NULL || is_exempt(caller))
    return false;
  uint32_t number = atomic_fetch_add(&shortage->n_calls, 1) + 1;
  return shortage->at > 0 &&
         (number == shortage->at || (shortage->lasts != 0 && number > shortage->at));
}

#define EXPORTED __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
EXPORTED void *malloc(size_t size);
EXPORTED void *calloc(size_t n, size_t size);
EXPORTED void *realloc(void *old, size_t size);
EXPORTED void *reallocarray(void *old, size_t n, size_t size);
EXPORTED void *aligned_alloc(size_t alignment, size_t size);
EXPORTED void *memalign(size_t alignment, size_t size);
EXPORTED int posix_memalign(void **ret_memory, size_t alignment, size_t size);

static void *
out_of_memory(void)
{
  errno = ENOMEM;
  return NULL;
}

void *
malloc(size_t size)
{
  return fails_for(CALLER) ? out_of_memory() : __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
  return fails_for(CALLER) ? out_of_memory() : __libc_calloc(n, size);
}

void *
realloc(void *old, size_t size)
{
  return fails_for(CALLER) ? out_of_memory() : __libc_realloc(old, size);
}

void *
reallocarray(void *old, size_t n, size_t size)
{
  size_t all;

  if (__builtin_mul_overflow(n, size, &all) || fails_for(CALLER))
    return out_of_memory();
  return __libc_realloc(old, all);
}

void *
aligned_alloc(size_t alignment, size_t size)
{
  return fails_for(CALLER) ? out_of_memory() : __libc_memalign(alignment, size);
}

void *
memalign(size_t alignment, size_t size)
{
  return fails_for(CALLER) ? out_of_memory() : __libc_memalign(alignment, size);
}

int
posix_memalign(void **ret_memory, size_t alignment, size_t size)
{
  int reason = errno;
  bool is_power = alignment != 0 && (alignment & (alignment - 1)) == 0;

  if (!is_power || alignment % sizeof(void *) != 0)
    return EINVAL;
  void *memory = fails_for(CALLER) ? NULL : __libc_memalign(alignment, size);
  errno = reason;
  if (memory == NULL)
    return ENOMEM;
  *ret_memory = memory;
  return 0;
}

#endif
