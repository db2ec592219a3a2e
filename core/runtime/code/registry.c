/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: two sorted lists.  Owns the names and versions in them.  No lock: it is filled
 * before a runtime is started with it, and only read after that. */
#include "core/runtime/code/registry.h"

#include <stdlib.h>

#include "core/base/utf8.h"

/* The length of an id, and so of a name, that every store accepts (struct dk_limits). */
enum { MAX_NAME = 255 };

struct orchestration {
  char *name, *version_text;
  struct dk_version version;
  dk_orchestration_fn *function;
  uint32_t needs;
};

/* Orchestrations by name, then by version; activities by name. */
struct dk_registry {
  struct orchestration *orchestrations;
  size_t n_orchestrations;
  struct registered_activity *activities;
  size_t n_activities;
};

/* ---- versions -------------------------------------------------------------------------------- */

/* Reads one part of a version, and the dot after it if `dot`. */
static bool
parse_part(dk_str *text, bool dot, uint32_t *ret_part)
{
  uint64_t part = 0;
  size_t n = 0;

  for (; n < text->len && text->ptr[n] >= '0' && text->ptr[n] <= '9'; n++) {
    part = part * 10 + (uint64_t)(text->ptr[n] - '0');
    if (part > UINT32_MAX)
      return false;
  }
  if (n == 0 || (n > 1 && text->ptr[0] == '0'))
    return false;
  if (dot && (n == text->len || text->ptr[n] != '.'))
    return false;
  text->ptr += n + dot;
  text->len -= n + dot;
  *ret_part = (uint32_t)part;
  return true;
}

dk_status
version_parse(dk_str text, struct dk_version *ret_version)
{
  struct dk_version version;

  if (!text.ptr || !parse_part(&text, true, &version.major) ||
      !parse_part(&text, true, &version.minor) || !parse_part(&text, false, &version.patch) ||
      text.len > 0)
    return DK_INVALID;
  *ret_version = version;
  return DK_OK;
}

static int
compare_numbers(uint32_t a, uint32_t b)
{
  return (a > b) - (a < b);
}

int
version_compare(struct dk_version a, struct dk_version b)
{
  if (a.major != b.major)
    return compare_numbers(a.major, b.major);
  if (a.minor != b.minor)
    return compare_numbers(a.minor, b.minor);
  return compare_numbers(a.patch, b.patch);
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool
is_name(const char *name)
{
  return name && dk_text_id_valid(name, strlen(name), MAX_NAME);
}

/* Compares the name with a text that need not end in a NUL. */
static int
compare_name(const char *name, dk_str text)
{
  size_t length = strlen(name);
  int order = memcmp(name, text.ptr, length < text.len ? length : text.len);

  return order != 0 ? order : (length > text.len) - (length < text.len);
}

/* Makes room for one more at `at` in a list of n elements; NULL: no memory, and nothing changed. */
static void *
insert(void **list, size_t n, size_t at, size_t size)
{
  char *grown = reallocarray(*list, n + 1, size);

  if (!grown)
    return NULL;
  memmove(grown + (at + 1) * size, grown + at * size, (n - at) * size);
  memset(grown + at * size, 0, size);
  *list = grown;
  return grown + at * size;
}

/* ---- orchestrations -------------------------------------------------------------------------- */

static int
compare_orchestration(const struct orchestration *a, dk_str name, struct dk_version version)
{
  int order = compare_name(a->name, name);

  return order != 0 ? order : version_compare(a->version, version);
}

/* The index of the first that is not less than this name and version. */
static size_t
place_of(const struct dk_registry *registry, dk_str name, struct dk_version version)
{
  size_t first = 0, end = registry->n_orchestrations;

  while (first < end) {
    size_t middle = first + (end - first) / 2;
    if (compare_orchestration(&registry->orchestrations[middle], name, version) < 0)
      first = middle + 1;
    else
      end = middle;
  }
  return first;
}

/* The one of this version; with NULL, the newest. */
static const struct orchestration *
find_orchestration(const struct dk_registry *registry, dk_str name,
                   const struct dk_version *version)
{
  const struct dk_version newest = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
  size_t at = place_of(registry, name, version ? *version : newest);
  const struct orchestration *all = registry->orchestrations;

  if (at < registry->n_orchestrations &&
      compare_orchestration(&all[at], name, version ? *version : newest) == 0)
    return &all[at];
  if (!version && at > 0 && compare_name(all[at - 1].name, name) == 0)
    return &all[at - 1];
  return NULL;
}

static dk_status
add_orchestration(struct dk_registry *registry, const struct orchestration *added)
{
  size_t at = place_of(registry, dk_str_of(added->name), added->version);
  void *list = registry->orchestrations;
  struct orchestration *place = NULL;
  char *name = strdup(added->name), *version = strdup(added->version_text);

  if (name && version)
    place = insert(&list, registry->n_orchestrations, at, sizeof(*place));
  if (!place) {
    free(name);
    free(version);
    return DK_NO_MEMORY;
  }
  *place = *added;
  place->name = name;
  place->version_text = version;
  registry->orchestrations = list;
  registry->n_orchestrations++;
  return DK_OK;
}

dk_orchestration_fn *
registry_orchestration(const struct dk_registry *registry, dk_str name, dk_str version,
                       const char **ret_version)
{
  const struct orchestration *found = NULL;
  struct dk_version wanted;

  if (!name.ptr)
    return NULL;
  if (!version.ptr)
    found = find_orchestration(registry, name, NULL);
  else if (version_parse(version, &wanted) == DK_OK)
    found = find_orchestration(registry, name, &wanted);
  if (!found)
    return NULL;
  if (ret_version)
    *ret_version = found->version_text;
  return found->function;
}

bool
registry_needs(const struct dk_registry *registry, uint32_t need, const char **ret_name,
               const char **ret_version)
{
  for (size_t i = 0; i < registry->n_orchestrations; i++)
    if (registry->orchestrations[i].needs & need) {
      *ret_name = registry->orchestrations[i].name;
      *ret_version = registry->orchestrations[i].version_text;
      return true;
    }
  return false;
}

/* Reads the caller's struct.  False: it is invalid. */
static bool
read_needs(const struct dk_orchestration_traits *traits, struct orchestration *added)
{
  const uint32_t known = DK_NEEDS_KV | DK_NEEDS_STATUS | DK_NEEDS_SESSIONS;

  if (!traits)
    return true;
  if (!DK_HAS_FIELD(dk_orchestration_traits, traits, needs))
    return false; /* struct_size was not set */
  added->needs = traits->needs;
  return (traits->needs & ~known) == 0;
}

/* ---- activities ------------------------------------------------------------------------------ */

static size_t
place_of_activity(const struct dk_registry *registry, dk_str name)
{
  size_t first = 0, end = registry->n_activities;

  while (first < end) {
    size_t middle = first + (end - first) / 2;
    if (compare_name(registry->activities[middle].name, name) < 0)
      first = middle + 1;
    else
      end = middle;
  }
  return first;
}

const struct registered_activity *
registry_activity(const struct dk_registry *registry, dk_str name)
{
  if (!name.ptr)
    return NULL;
  size_t at = place_of_activity(registry, name);
  if (at == registry->n_activities || compare_name(registry->activities[at].name, name) != 0)
    return NULL;
  return &registry->activities[at];
}

const struct registered_activity *
registry_isolated(const struct dk_registry *registry)
{
  for (size_t i = 0; i < registry->n_activities; i++)
    if (registry->activities[i].isolation == DK_IN_PROCESS)
      return &registry->activities[i];
  return NULL;
}

static dk_status
add_activity(struct dk_registry *registry, const struct registered_activity *added)
{
  size_t at = place_of_activity(registry, dk_str_of(added->name));
  void *list = registry->activities;
  struct registered_activity *place = NULL;
  char *name = strdup(added->name);

  if (name)
    place = insert(&list, registry->n_activities, at, sizeof(*place));
  if (!place) {
    free(name);
    return DK_NO_MEMORY;
  }
  *place = *added;
  place->name = name;
  registry->activities = list;
  registry->n_activities++;
  return DK_OK;
}

/* Reads the caller's struct; an older one is shorter.  False: it is invalid. */
static bool
read_traits(const struct dk_activity_traits *traits, struct registered_activity *added)
{
  if (!traits)
    return true;
  if (!DK_HAS_FIELD(dk_activity_traits, traits, isolation))
    return false; /* struct_size was not set */
  added->isolation = traits->isolation;
  if (DK_HAS_FIELD(dk_activity_traits, traits, grace_ms))
    added->grace_ms = traits->grace_ms;
  return (added->isolation == DK_IN_THREAD || added->isolation == DK_IN_PROCESS) &&
         added->grace_ms >= 0;
}

/* ---- the public part ------------------------------------------------------------------------- */

struct dk_registry *
dk_registry_new(void)
{
  return calloc(1, sizeof(struct dk_registry));
}

void
dk_registry_free(struct dk_registry *registry)
{
  if (!registry)
    return;
  for (size_t i = 0; i < registry->n_orchestrations; i++) {
    free(registry->orchestrations[i].name);
    free(registry->orchestrations[i].version_text);
  }
  for (size_t i = 0; i < registry->n_activities; i++)
    free((char *)registry->activities[i].name); /* made by add_activity */
  free(registry->orchestrations);
  free(registry->activities);
  free(registry);
}

dk_status
dk_register_orchestration(struct dk_registry *registry, const char *name, const char *version,
                          dk_orchestration_fn *function)
{
  return dk_register_orchestration_with(registry, name, version, function, NULL);
}

dk_status
dk_register_orchestration_with(struct dk_registry *registry, const char *name,
                               const char *version, dk_orchestration_fn *function,
                               const struct dk_orchestration_traits *traits)
{
  char first[] = "1.0.0";
  struct orchestration added = {.name = (char *)name,
                                .version_text = version ? (char *)version : first,
                                .function = function};

  if (!registry || !is_name(name) || !function || !read_needs(traits, &added) ||
      version_parse(dk_str_of(added.version_text), &added.version) != DK_OK)
    return DK_INVALID;
  if (find_orchestration(registry, dk_str_of(name), &added.version))
    return DK_DUPLICATE;
  return add_orchestration(registry, &added);
}

dk_status
dk_register_activity(struct dk_registry *registry, const char *name, dk_activity_fn *function,
                     const struct dk_activity_traits *traits)
{
  struct registered_activity added = {.name = name, .function = function};

  if (!registry || !is_name(name) || !function || !read_traits(traits, &added))
    return DK_INVALID;
  if (registry_activity(registry, dk_str_of(name)))
    return DK_DUPLICATE;
  return add_activity(registry, &added);
}
