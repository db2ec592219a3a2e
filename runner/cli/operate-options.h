/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the commands that operate a store, beside the settings of the provider. */
#ifndef DK_RUNNER_CLI_OPERATE_OPTIONS_H
#define DK_RUNNER_CLI_OPERATE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which instances, as it was given.  NULL, 0: not given.  Times are milliseconds since 1970. */
struct chosen {
  const char *name, *version, *parent;
  uint32_t statuses;                        /* bits 1u << DK_RUNNING, ... */
  int64_t created_from, created_before, completed_from, completed_before;
  bool roots;
  bool all;                                 /* --all: no other condition */
};

enum { PATIENCE_MS = 30 * 1000 }; /* if none is given */

struct operating {
  const char *provider;
  struct chosen chosen;
  const char *ids_from;                     /* FILE, or "-" */
  const char *reason, *by;
  const char *payload;                      /* --input, --data: text, @FILE or "-" */
  const char *after;
  uint64_t limit;                           /* 0: all */
  uint64_t execution, from;                 /* 0: the latest; the first */
  uint64_t expect;                          /* UINT64_MAX: any number */
  uint32_t keep;                            /* 0: not given */
  int64_t patience_ms;                      /* with one call of the store */
  int64_t wait_ms;                          /* --wait, --timeout; -1: not given */
  bool create, dry_run, yes, force, jsonl, prometheus;
  const char **metrics;                     /* files */
  size_t n_metrics;
};

struct option_row;
struct options;
/* The values before the first option is taken. */
void operate_options_defaults(struct operating *operating);
void operate_options_done(struct operating *operating);
const struct option_row *operate_options(size_t *ret_n);
/* Which options can be combined.  EXIT_PASSED, or EXIT_USAGE after a message. */
int operate_options_check(const struct options *options);
/* A condition was given, so that the command is for many instances. */
bool operate_options_are_for_many(const struct chosen *chosen);

#endif
