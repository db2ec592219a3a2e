/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a provider: the file, its entry function, its descriptor, in this order, each step with its
 * own refusal.  Owns the libraries.
 *
 * Locking.  A load runs under the process's `loading`; the list of libraries and their counts are
 * guarded by its `lock`: see process.c. */
#include <assert.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/plugin/library.h"
#include "core/plugin/process.h"
#include "core/plugin/refusal.h"

/* ---- making and freeing ---------------------------------------------------------------------- */

static void
free_library(struct dk_library *library)
{
  if (!library)
    return;
  dk_turnstile_done(&library->turnstile);
  dk_bells_done(&library->bells);
  if (library->handle)
    dlclose(library->handle);
  free(library->path);
  free(library);
}

static int32_t
refuse_memory(const char *path, struct dk_refusal *refusal)
{
  dk_refusal_begin(refusal, DK_LOAD_NO_MEMORY, path, "there is no memory to load the provider");
  dk_refusal_say(refusal->expected, "%zu bytes", sizeof(struct dk_library));
  dk_refusal_say(refusal->found, "none");
  return -1;
}

static struct dk_library *
new_library(const char *path)
{
  struct dk_library *library = calloc(1, sizeof(*library));

  if (!library)
    return NULL;
  library->path = strdup(path);
  if (!library->path || !dk_turnstile_init(&library->turnstile)) {
    free(library->path);
    free(library);
    return NULL;
  }
  if (!dk_bells_init(&library->bells)) {
    dk_turnstile_done(&library->turnstile);
    free(library->path);
    free(library);
    return NULL;
  }
  library->references = 1;
  return library;
}

/* ---- the entry function ---------------------------------------------------------------------- */

static int32_t
refuse_abi_1(const char *path, struct dk_refusal *refusal)
{
  dk_refusal_begin(refusal, DK_LOAD_ABI_1, path,
                   "this provider implements ABI 1, whose fetch and renew return an "
                   "ExecutionState; ABI 2 has none");
  dk_refusal_say(refusal->expected, "the symbol durakit_provider_2");
  dk_refusal_say(refusal->found, "the symbol durakit_provider_1");
  dk_refusal_say(refusal->next,
                 "see docs/migration-from-abi-1.md: let the commit delete the rows of cancelled "
                 "activities, and let fetch, renew and ack of work depend on the row alone");
  return -1;
}

static int32_t
refuse_no_symbol(const char *path, struct dk_refusal *refusal)
{
  dk_refusal_begin(refusal, DK_LOAD_NO_SYMBOL, path,
                   "the file does not export durakit_provider_2");
  dk_refusal_say(refusal->expected, "the symbol durakit_provider_2, the entry of a provider");
  dk_refusal_say(refusal->found, "a shared object without it");
  dk_refusal_say(refusal->next, "define it with DK_EXPORT, in C++ inside extern \"C\"; nm -D shows "
                                "what a file exports");
  return -1;
}

/* dlsym returns an object pointer for a function; POSIX prescribes this conversion. */
static dk_entry_fn *
entry_of(void *handle)
{
  dk_entry_fn *entry = NULL;
  void *symbol = dlsym(handle, "durakit_provider_2");

  memcpy(&entry, &symbol, sizeof(entry));
  return entry;
}

static int32_t
call_entry(const char *path, dk_entry_fn *entry, const struct dk_provider **ret_found,
           struct dk_refusal *refusal)
{
  const struct dk_provider *found = entry(DK_ABI_MINOR);

  if (!found) {
    dk_refusal_begin(refusal, DK_LOAD_DECLINED, path, "the provider declines this host");
    dk_refusal_say(refusal->expected, "a descriptor for a host of ABI %d.%u", DK_ABI_MAJOR,
                   DK_ABI_MINOR);
    dk_refusal_say(refusal->found, "durakit_provider_2 returned NULL");
    dk_refusal_say(refusal->next, "use a newer Durakit, or an older version of the provider");
    return -1;
  }
  if (entry(DK_ABI_MINOR) != found) {
    dk_refusal_begin(refusal, DK_LOAD_NOT_PURE, path,
                     "a second call of durakit_provider_2 returned something else");
    dk_refusal_say(refusal->expected, "the same pointer every time");
    dk_refusal_say(refusal->found, "another one");
    dk_refusal_say(refusal->next, "return the address of one static const struct dk_provider");
    return -1;
  }
  *ret_found = found;
  return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int32_t
link_file(const char *path, uint32_t flags, void **ret_handle, struct dk_refusal *refusal)
{
  int keep = flags & DK_LIBRARY_UNLOAD ? 0 : RTLD_NODELETE;
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | keep);

  if (!handle) {
    const char *why = dlerror();
    dk_refusal_begin(refusal, DK_LOAD_DLOPEN, path, "the dynamic linker cannot load the file");
    dk_refusal_say(refusal->expected,
                   "a shared object whose libraries and symbols can all be found");
    dk_refusal_say(refusal->found, "%s", why ? why : "no reason was given");
    dk_refusal_say(refusal->next, "ldd -r shows what is missing");
    return -1;
  }
  *ret_handle = handle;
  return 0;
}

/* Loads the file into the library, which closes it. */
static int32_t
load_into(struct dk_library *library, uint32_t flags, struct dk_refusal *refusal)
{
  const struct dk_provider *found;

  if (link_file(library->path, flags, &library->handle, refusal) != 0)
    return -1;
  dk_entry_fn *entry = entry_of(library->handle);
  if (!entry)
    return dlsym(library->handle, "durakit_provider_1") ? refuse_abi_1(library->path, refusal)
                                                        : refuse_no_symbol(library->path, refusal);
  if (call_entry(library->path, entry, &found, refusal) != 0)
    return -1;
  return dk_descriptor_read(found, library->path, flags, library, refusal);
}

/* Takes a reference. */
static struct dk_library *
find_loaded(const struct dk_file_identity *file)
{
  struct dk_process *process = dk_process();
  struct dk_library *library;

  dk_lock(&process->lock);
  for (library = process->libraries; library; library = library->next)
    if (library->handle && library->device == file->device && library->inode == file->inode) {
      library->references++;
      break;
    }
  dk_unlock(&process->lock);
  return library;
}

static void
add_to_list(struct dk_library *library)
{
  struct dk_process *process = dk_process();

  dk_lock(&process->lock);
  library->next = process->libraries;
  process->libraries = library;
  dk_unlock(&process->lock);
}

static int32_t
load_new(const char *path, const struct dk_file_identity *file, uint32_t flags,
         struct dk_library **ret_library, struct dk_refusal *refusal)
{
  struct dk_library *library = new_library(path);

  assert(dk_lock_is_held(&dk_process()->loading));
  if (!library)
    return refuse_memory(path, refusal);
  library->device = file->device;
  library->inode = file->inode;
  if (load_into(library, flags, refusal) != 0) {
    free_library(library);
    return -1;
  }
  add_to_list(library);
  *ret_library = library;
  return 0;
}

/* A library that was loaded as incomplete must not be shared with a caller that needs it
 * complete. */
static int32_t
share(struct dk_library *library, uint32_t flags, struct dk_library **ret_library,
      struct dk_refusal *refusal)
{
  if (library->missing[0] && !(flags & DK_LIBRARY_INCOMPLETE)) {
    dk_descriptor_refuse_incomplete(library, refusal);
    dk_library_drop(library);
    return -1;
  }
  *ret_library = library;
  return 0;
}

static int32_t
refuse_path(const char *path, struct dk_refusal *refusal)
{
  bool empty = !path || !*path;

  dk_refusal_begin(refusal, empty ? DK_LOAD_NO_PATH : DK_LOAD_RELATIVE, empty ? "" : path,
                   empty ? "no file is named" : "the path is not absolute");
  dk_refusal_say(refusal->expected, "the absolute path of a provider's shared object");
  dk_refusal_say(refusal->found, "%s", empty ? "an empty path" : path);
  dk_refusal_say(refusal->next, "resolve the path first (realpath): the origin of a plugin must "
                                "not depend on the current folder");
  return -1;
}

int32_t
dk_library_open(const char *path, uint32_t flags, struct dk_library **ret_library,
                struct dk_refusal *ret_refusal)
{
  struct dk_refusal ignored, *refusal = ret_refusal ? ret_refusal : &ignored;
  struct dk_file_identity file;
  struct dk_library *loaded;
  int32_t result;

  if (!path || path[0] != '/')
    return refuse_path(path, refusal);
  if (dk_file_check(path, &file, refusal) != 0)
    return -1;
  dk_lock(&dk_process()->loading);
  loaded = find_loaded(&file);
  result = loaded ? share(loaded, flags, ret_library, refusal)
                  : load_new(path, &file, flags, ret_library, refusal);
  dk_unlock(&dk_process()->loading);
  return result;
}

int32_t
dk_library_from_descriptor(const struct dk_provider *descriptor, uint32_t flags,
                           struct dk_library **ret_library, struct dk_refusal *ret_refusal)
{
  struct dk_library *library = new_library("(built in)");

  if (!library)
    return refuse_memory("(built in)", ret_refusal);
  if (dk_descriptor_read(descriptor, library->path, flags, library, ret_refusal) != 0) {
    free_library(library);
    return -1;
  }
  add_to_list(library);
  *ret_library = library;
  return 0;
}

/* ---- use ------------------------------------------------------------------------------------- */

void
dk_library_keep(struct dk_library *library)
{
  struct dk_process *process = dk_process();

  dk_lock(&process->lock);
  library->references++;
  dk_unlock(&process->lock);
}

static void
remove_from_list(struct dk_process *process, const struct dk_library *library)
{
  assert(dk_lock_is_held(&process->lock) && library->references == 0);
  for (struct dk_library **at = &process->libraries; *at; at = &(*at)->next)
    if (*at == library) {
      *at = library->next;
      return;
    }
}

void
dk_library_drop(struct dk_library *library)
{
  struct dk_process *process = dk_process();

  dk_lock(&process->lock);
  assert(library->references > 0);
  bool unused = --library->references == 0;
  if (unused)
    remove_from_list(process, library);
  dk_unlock(&process->lock);
  if (unused)
    free_library(library);
}

void
dk_library_close(struct dk_library *library)
{
  if (library)
    dk_library_drop(library);
}

const struct dk_provider *
dk_library_provider(const struct dk_library *library)
{
  return &library->provider;
}

const char *const *
dk_library_missing(const struct dk_library *library)
{
  return library->missing;
}

bool
dk_library_declares(const struct dk_library *library, const char *extension)
{
  const char *const *at = library->provider.extensions;

  for (; at && *at; at++)
    if (strcmp(*at, extension) == 0)
      return true;
  return false;
}

int32_t
dk_library_thread_model(const struct dk_library *library)
{
  return library->provider.thread_model / 1000 * 1000;
}
