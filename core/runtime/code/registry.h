/* SPDX-License-Identifier: Apache-2.0 */
/* What can be run, by name and version. */
#ifndef DK_RUNTIME_CODE_REGISTRY_H
#define DK_RUNTIME_CODE_REGISTRY_H

#include <durakit/runtime.h>

#include <stdbool.h>

struct registered_activity {
  const char *name;
  dk_activity_fn *function;
  int32_t isolation;
  int64_t grace_ms; /* 0: that of the runtime */
};

/* "1.2.3", each part up to 2^32 - 1 and without leading zeros, so that each version has only one
 * text; else DK_INVALID. */
dk_status version_parse(dk_str text, struct dk_version *ret_version);
int version_compare(struct dk_version a, struct dk_version b);

/* version absent: the newest.  NULL if there is none; *ret_version (may be NULL) is the one found,
 * as text that is valid as long as the registry. */
dk_orchestration_fn *registry_orchestration(const struct dk_registry *registry, dk_str name,
                                            dk_str version, const char **ret_version);
/* Whether an orchestration needs this (one of DK_NEEDS_...), and the first that does. */
bool registry_needs(const struct dk_registry *registry, uint32_t need, const char **ret_name,
                    const char **ret_version);
const struct registered_activity *registry_activity(const struct dk_registry *registry,
                                                    dk_str name);
/* The first activity that must run in a process; NULL: none. */
const struct registered_activity *registry_isolated(const struct dk_registry *registry);

#endif
