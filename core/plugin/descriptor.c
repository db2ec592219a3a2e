/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a provider's descriptor: checks that it is one, that it is complete, and that its values
 * are valid.  No code after the copy depends on the version: what the provider lacks is NULL or
 * zero.  Owns nothing. */
#include <stdio.h>
#include <string.h>

#include "core/plugin/library.h"
#include "core/plugin/refusal.h"
#include "core/plugin/settings.h"

enum { LARGEST_STRUCT = 64 * 1024, MOST_PARAMS = 256, MOST_EXTENSIONS = 256 };

static const char rebuild[] = "build the provider against this version's durakit/provider.h";

/* ---- is it a descriptor ---------------------------------------------------------------------- */

static int32_t
check_magic(const struct dk_provider *found, const char *path, struct dk_refusal *refusal)
{
  if (found->magic == DK_MAGIC)
    return 0;
  dk_refusal_begin(refusal, DK_LOAD_MAGIC, path,
                   "durakit_provider_2 returned something that is not a descriptor");
  dk_refusal_say(refusal->expected, "magic 0x%08x (DK_MAGIC)", DK_MAGIC);
  dk_refusal_say(refusal->found, "0x%08x", found->magic);
  dk_refusal_say(refusal->next, "write .magic = DK_MAGIC first in struct dk_provider");
  return -1;
}

static int32_t
check_size(uint32_t size, size_t smallest, const char *what, const char *type, const char *path,
           struct dk_refusal *refusal)
{
  if (size >= smallest && size <= LARGEST_STRUCT && size % 8 == 0)
    return 0;
  dk_refusal_begin(refusal, DK_LOAD_SIZE, path, "the size of the %s is invalid", what);
  dk_refusal_say(refusal->expected, "struct_size from %zu to %d, a multiple of 8", smallest,
                 (int)LARGEST_STRUCT);
  dk_refusal_say(refusal->found, "%u", size);
  dk_refusal_say(refusal->next, "write .struct_size = sizeof(struct %s)", type);
  return -1;
}

static int32_t
check_own_size(const struct dk_provider *found, const char *path, struct dk_refusal *refusal)
{
  return check_size(found->struct_size, DK_SIZE_TO(dk_provider, extension), "descriptor",
                    "dk_provider", path, refusal);
}

/* The sizes of the two structs that it points to.  If one is merely too small, the members that it
 * lacks are reported instead. */
static int32_t
check_other_sizes(const struct dk_provider *found, const char *path, struct dk_refusal *refusal)
{
  if (found->ops &&
      check_size(found->ops->struct_size, 8, "operations", "dk_ops", path, refusal) != 0)
    return -1;
  if (!found->limits)
    return 0;
  return check_size(found->limits->struct_size, 8, "limits", "dk_limits", path, refusal);
}

struct stamp_part {
  const char *name;
  unsigned shift, bits;
};

static const struct stamp_part stamp_parts[] = {
  {"size of a pointer", 0, 8},
  {"alignment of uint64_t", 8, 8},
  {"alignment of a pointer", 16, 8},
  {"offset of dk_provider.extension", 24, 12},
  {"offset of dk_ops.read_history", 36, 12},
  {"ABI draft", 48, 16},
};

static int32_t
check_stamp(const struct dk_provider *found, const char *path, struct dk_refusal *refusal)
{
  if (found->stamp == DK_STAMP)
    return 0;
  dk_refusal_begin(refusal, DK_LOAD_STAMP, path,
                   "the provider was compiled with another layout of the ABI");
  for (size_t i = 0; i < sizeof(stamp_parts) / sizeof(stamp_parts[0]); i++) {
    const struct stamp_part *part = &stamp_parts[i];
    uint64_t mask = (UINT64_C(1) << part->bits) - 1;
    uint64_t ours = DK_STAMP >> part->shift & mask;
    uint64_t theirs = found->stamp >> part->shift & mask;
    if (ours != theirs) {
      dk_refusal_add(refusal->expected, "%s %llu", part->name, (unsigned long long)ours);
      dk_refusal_add(refusal->found, "%s %llu", part->name, (unsigned long long)theirs);
    }
  }
  dk_refusal_say(refusal->next, "%s", rebuild);
  return -1;
}

static int32_t
check_vendor(const struct dk_provider *found, const char *path, struct dk_refusal *refusal)
{
  if (found->abi_vendor && strcmp(found->abi_vendor, "durakit") == 0)
    return 0;
  dk_refusal_begin(refusal, DK_LOAD_VENDOR, path, "the provider implements another vendor's ABI");
  dk_refusal_say(refusal->expected, "abi_vendor \"durakit\"");
  dk_refusal_say(refusal->found, found->abi_vendor ? "\"%s\"" : "%s",
                 found->abi_vendor ? found->abi_vendor : "none");
  dk_refusal_say(refusal->next, "build it against durakit's own durakit/provider.h");
  return -1;
}

/* ---- is it complete -------------------------------------------------------------------------- */

struct member {
  const char *name;
  size_t offset;
};

static const struct member descriptor_members[] = {
  {"name", offsetof(struct dk_provider, name)},
  {"version", offsetof(struct dk_provider, version)},
  {"limits", offsetof(struct dk_provider, limits)},
  {"ops", offsetof(struct dk_provider, ops)},
  {"open", offsetof(struct dk_provider, open)},
  {"close", offsetof(struct dk_provider, close)},
  {"destroy_store", offsetof(struct dk_provider, destroy_store)},
  {"extension", offsetof(struct dk_provider, extension)},
};

static const struct member operations[DK_REQUIRED_OPERATIONS] = {
  {"enqueue_for_orchestrator", offsetof(struct dk_ops, enqueue_for_orchestrator)},
  {"fetch_orchestration_item", offsetof(struct dk_ops, fetch_orchestration_item)},
  {"ack_orchestration_item", offsetof(struct dk_ops, ack_orchestration_item)},
  {"abandon_orchestration_item", offsetof(struct dk_ops, abandon_orchestration_item)},
  {"renew_orchestration_item_lock", offsetof(struct dk_ops, renew_orchestration_item_lock)},
  {"fetch_work_item", offsetof(struct dk_ops, fetch_work_item)},
  {"ack_work_item", offsetof(struct dk_ops, ack_work_item)},
  {"abandon_work_item", offsetof(struct dk_ops, abandon_work_item)},
  {"renew_work_item_lock", offsetof(struct dk_ops, renew_work_item_lock)},
  {"read_history", offsetof(struct dk_ops, read_history)},
};

/* All these members are pointers, of one size, and NULL has all bits zero. */
static bool
is_present(const void *copied, const struct member *member)
{
  static const char nothing[sizeof(void *)];

  return memcmp((const char *)copied + member->offset, nothing, sizeof(nothing)) != 0;
}

static void
copy_descriptor(const struct dk_provider *found, struct dk_library *library)
{
  size_t size = found->struct_size;

  memcpy(&library->provider, found, size < sizeof(*found) ? size : sizeof(*found));
  if (found->ops) {
    size = found->ops->struct_size;
    memcpy(&library->ops, found->ops, size < sizeof(library->ops) ? size : sizeof(library->ops));
  }
  if (found->limits) {
    size = found->limits->struct_size;
    memcpy(&library->limits, found->limits,
           size < sizeof(library->limits) ? size : sizeof(library->limits));
  }
  library->provider.ops = &library->ops;
  library->provider.limits = &library->limits;
}

static size_t
list_missing_operations(struct dk_library *library)
{
  size_t n = 0;

  for (size_t i = 0; i < DK_REQUIRED_OPERATIONS; i++)
    if (!is_present(&library->ops, &operations[i]))
      library->missing[n++] = operations[i].name;
  library->missing[n] = NULL;
  return n;
}

static size_t
add_missing_members(const struct dk_provider *found, char list[DK_REFUSAL_TEXT])
{
  size_t n = 0;

  for (size_t i = 0; i < sizeof(descriptor_members) / sizeof(descriptor_members[0]); i++)
    if (!is_present(found, &descriptor_members[i])) {
      dk_refusal_add(list, "%s", descriptor_members[i].name);
      n++;
    }
  return n;
}

static int32_t
refuse_missing(const struct dk_library *library, size_t n_members, size_t n_operations,
               char list[DK_REFUSAL_TEXT], struct dk_refusal *refusal)
{
  size_t whole = DK_SIZE_TO(dk_ops, read_history);
  size_t n = n_members + n_operations;

  for (size_t i = 0; i < n_operations; i++)
    dk_refusal_add(list, "%s", library->missing[i]);
  dk_refusal_begin(refusal, DK_LOAD_MEMBERS, library->path, "%zu required %s%s %s missing: %s", n,
                   n_members ? "member" : "operation", n == 1 ? "" : "s", n == 1 ? "is" : "are",
                   list);
  if (n_members)
    dk_refusal_add(refusal->expected, "all required members of struct dk_provider");
  if (n_operations)
    dk_refusal_add(refusal->expected, "all ten required members of struct dk_ops");
  dk_refusal_say(refusal->expected + strlen(refusal->expected), " (durakit/provider.h)");
  if (n_operations && library->ops.struct_size < whole)
    dk_refusal_say(refusal->found, "struct_size %u of %zu: built against an older header?",
                   library->ops.struct_size, whole);
  else
    dk_refusal_say(refusal->found, "NULL");
  if (n_members)
    dk_refusal_say(refusal->next, "fill them in; durakit/provider.h describes each of them");
  else
    dk_refusal_say(refusal->next, "durakit check --next %s names the first one to write",
                   library->path);
  return -1;
}

int32_t
dk_descriptor_refuse_incomplete(const struct dk_library *library, struct dk_refusal *refusal)
{
  char list[DK_REFUSAL_TEXT] = "";
  size_t n = 0;

  while (library->missing[n])
    n++;
  return refuse_missing(library, 0, n, list, refusal);
}

/* Reports all of them in one message. */
static int32_t
check_members(const struct dk_provider *found, uint32_t flags, struct dk_library *library,
              struct dk_refusal *refusal)
{
  char list[DK_REFUSAL_TEXT] = "";
  size_t n_members = add_missing_members(found, list);
  size_t n_operations = found->ops ? list_missing_operations(library) : 0;
  bool may_be_incomplete = flags & DK_LIBRARY_INCOMPLETE;

  if (n_members == 0 && (n_operations == 0 || may_be_incomplete))
    return 0;
  return refuse_missing(library, n_members, may_be_incomplete ? 0 : n_operations, list, refusal);
}

/* ---- are its values valid -------------------------------------------------------------------- */

static int32_t
refuse_value(struct dk_refusal *refusal, const char *path, const char *member)
{
  dk_refusal_begin(refusal, DK_LOAD_DESCRIPTOR, path, "the value of %s is invalid", member);
  dk_refusal_say(refusal->next, "see struct dk_provider in durakit/provider.h");
  return -1;
}

static int32_t
check_number(int64_t value, int64_t least, int64_t most, const char *member, const char *expected,
             const char *path, struct dk_refusal *refusal)
{
  if (value >= least && value <= most)
    return 0;
  refuse_value(refusal, path, member);
  dk_refusal_say(refusal->expected, "%s", expected);
  dk_refusal_say(refusal->found, "%lld", (long long)value);
  return -1;
}

static int32_t
check_numbers(const struct dk_provider *p, const char *path, struct dk_refusal *refusal)
{
  const struct {
    int64_t value, least, most;
    const char *member, *expected;
  } rows[] = {
    {p->thread_model, 1000, 3999, "thread_model",
     "DK_ONE_AT_A_TIME (1000), DK_ONE_PER_HANDLE (2000) or DK_PARALLEL (3000)"},
    {p->clocks & (DK_CLOCK_HOST | DK_CLOCK_STORE), 1, 3, "clocks",
     "DK_CLOCK_HOST (1), DK_CLOCK_STORE (2) or both (3)"},
    {p->durable, 0, 2, "durable", "0 (not), 1 (survives a kill) or 2 (survives a power cut)"},
    {p->shared, 0, 3, "shared", "0 (one handle), 1 (one process), 2 (one host) or 3 (many hosts)"},
    {p->unload, 0, p->runtime & DK_RUNTIME_STAYS ? 0 : 1, "unload",
     p->runtime & DK_RUNTIME_STAYS ? "0, because it declares DK_RUNTIME_STAYS" : "0 or 1"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    if (check_number(rows[i].value, rows[i].least, rows[i].most, rows[i].member, rows[i].expected,
                     path, refusal) != 0)
      return -1;
  return 0;
}

static int32_t
check_limits(const struct dk_limits *limits, const char *path, struct dk_refusal *refusal)
{
  const struct {
    uint64_t value, least;
    const char *member;
  } rows[] = {
    {limits->struct_size, DK_SIZE_TO(dk_limits, max_commit_items), "limits.struct_size"},
    {limits->max_id, 255, "limits.max_id"},
    {limits->max_payload, 64 * 1024, "limits.max_payload"},
    {limits->max_commit_bytes, 1024 * 1024, "limits.max_commit_bytes"},
    {limits->max_commit_items, 100, "limits.max_commit_items"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    if (rows[i].value < rows[i].least) {
      refuse_value(refusal, path, rows[i].member);
      dk_refusal_say(refusal->expected, "at least %llu", (unsigned long long)rows[i].least);
      dk_refusal_say(refusal->found, "%llu", (unsigned long long)rows[i].value);
      return -1;
    }
  return 0;
}

static bool
is_key(const char *text)
{
  size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");

  return length > 0 && text[length] == '\0';
}

static bool
is_repeated_key(const struct dk_param *params, size_t i)
{
  for (size_t j = 0; j < i; j++)
    if (strcmp(params[j].key, params[i].key) == 0)
      return true;
  return false;
}

/* What is wrong with a parameter, as text; NULL: nothing. */
static const char *
fault_of_param(const struct dk_param *params, size_t i)
{
  const struct dk_param *param = &params[i];
  uint32_t known = DK_PARAM_REQUIRED | DK_PARAM_SECRET | DK_PARAM_STORE;

  if (!is_key(param->key))
    return "its key has characters other than a-z, 0-9, _ and -";
  if (is_repeated_key(params, i))
    return "another parameter has the same key";
  if (!param->type || !dk_setting_type_form(param->type))
    return "its type is not one of string, path, integer, boolean, duration, address";
  if (param->flags & ~known)
    return "it has a flag that this host does not know";
  if (param->fallback &&
      !dk_setting_fits(param->type, (struct dk_bytes){param->fallback, strlen(param->fallback)}))
    return "its fallback is not of its type";
  return NULL;
}

static int32_t
check_params(const struct dk_param *params, const char *path, struct dk_refusal *refusal)
{
  for (size_t i = 0; params && params[i].key; i++) {
    const char *fault = i < MOST_PARAMS ? fault_of_param(params, i)
                                        : "the list has no end: the last one must have a NULL key";
    if (fault) {
      refuse_value(refusal, path, "params");
      dk_refusal_say(refusal->expected,
                     "well-formed parameters, and at the end one with a NULL key");
      dk_refusal_say(refusal->found, "parameter %zu ('%.64s'): %s", i + 1, params[i].key, fault);
      return -1;
    }
  }
  return 0;
}

/* "name/revision" */
static bool
is_extension_id(const char *id)
{
  const char *slash = strrchr(id, '/');

  return slash && slash > id && slash[1] != '\0' &&
         slash[1 + strspn(slash + 1, "0123456789")] == '\0';
}

static int32_t
check_extensions(const char *const *extensions, const char *path, struct dk_refusal *refusal)
{
  for (size_t i = 0; extensions && extensions[i]; i++)
    if (i >= MOST_EXTENSIONS || !is_extension_id(extensions[i])) {
      refuse_value(refusal, path, "extensions");
      dk_refusal_say(refusal->expected, "ids such as \"durakit.kv/1\", and NULL at the end");
      dk_refusal_say(refusal->found, "'%.64s'", extensions[i]);
      return -1;
    }
  return 0;
}

int32_t
dk_descriptor_read(const struct dk_provider *found, const char *path, uint32_t flags,
                   struct dk_library *library, struct dk_refusal *refusal)
{
  if (check_magic(found, path, refusal) != 0 || check_own_size(found, path, refusal) != 0 ||
      check_stamp(found, path, refusal) != 0 || check_vendor(found, path, refusal) != 0 ||
      check_other_sizes(found, path, refusal) != 0)
    return -1;

  copy_descriptor(found, library);
  const struct dk_provider *copied = &library->provider;
  if (check_members(found, flags, library, refusal) != 0 ||
      check_numbers(copied, path, refusal) != 0 ||
      check_limits(&library->limits, path, refusal) != 0 ||
      check_params(copied->params, path, refusal) != 0 ||
      check_extensions(copied->extensions, path, refusal) != 0)
    return -1;
  return 0;
}
