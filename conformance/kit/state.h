/* SPDX-License-Identifier: Apache-2.0 */
/* The process at one moment, as entries: a key in words ("the umask") and a value as text.
 *
 * state.c has the table of what is compared, and compares; state-files.c, state-process.c and
 * state-signals.c take the entries, forks.c watches.  To compare one more thing: a function that
 * adds its entries, and a row of the table.
 */
#ifndef DK_KIT_STATE_H
#define DK_KIT_STATE_H

#include "conformance/kit/kit.h"

enum { STATE_FOLDERS = 3 }; /* that programs share, in which new names are noticed */

struct state_entry;

/* A row of the table.  An entry whose value has changed breaks `clause`.  So does an entry that was
 * removed or added, if the row has words for that; they continue "KEY (VALUE)". */
struct compared {
  void (*take)(struct kit_state *state);
  /* Instead of the comparison by entries; NULL: by entries. */
  bool (*differs)(const struct kit_state *before, const struct kit_state *after,
                  struct kit_report *report);
  const char *clause;
  const char *instead;         /* what a provider does instead */
  const char *removed, *added; /* NULL: does not count */
  const char *leaving;         /* what is added breaks CALL-8, and this is what a provider does
                                  instead; NULL: it breaks `clause` */
  bool hidden;                 /* the value is the checksum of a possible secret: it is not shown */
  bool costs_time;             /* only checks of what is left behind compare it */
  /* NULL: never.  True: a runtime that the provider declares (DK_RUNTIME_STAYS) may make this
   * change; `was` NULL: the entry was added. */
  bool (*is_of_runtime)(const struct state_entry *was, const struct state_entry *is);
};

struct state_entry {
  const struct compared *row;
  const char *key, *value;
};

struct kit_state {
  const struct kit_job *job;
  const struct kit_shared *shared;
  const struct kit_state *before;  /* NULL: this one comes first */
  struct dk_arena arena;           /* of the texts */
  struct state_entry *entries;
  size_t n, room;
  bool failed;                     /* no memory for an entry */
  const struct compared *row;      /* that is being taken */
  const char *status;              /* /proc/self/status; NULL: not read yet */
  uint32_t threads;
  off_t written;                   /* to standard output; -1: it is not a file */
  int watched[STATE_FOLDERS];      /* -1: not watched */
};

__attribute__((format(printf, 3, 4))) void
state_add(struct kit_state *state, const char *key, const char *format, ...);
__attribute__((format(printf, 2, 3))) const char *
state_text(struct kit_state *state, const char *format, ...); /* lives as long as the state */
/* The first bytes of a file, at most `most`, without the newline at its end; "unknown" if it cannot
 * be read. */
const char *state_file(struct kit_state *state, const char *path, size_t most);
const char *state_link(struct kit_state *state, const char *path);
/* From the first state to another one, the provider's runtime may come.  After that it stays as it
 * is: two later states are compared like those of any other provider. */
bool state_brings_runtime(const struct kit_state *before, const struct kit_state *after);
/* "Uid:" -> "0 0 0 0": of /proc/self/status. */
const char *state_status(struct kit_state *state, const char *name);

/* Fills the report; true. */
__attribute__((format(printf, 4, 5))) bool
state_damage(struct kit_report *report, const char *clause, const char *expected,
             const char *format, ...);

/* Functions of the table.  state-files.c: */
void state_take_descriptors(struct kit_state *state);
void state_take_flags(struct kit_state *state);
void state_take_streams(struct kit_state *state);
void state_take_written(struct kit_state *state);
bool state_written_differs(const struct kit_state *before, const struct kit_state *after,
                           struct kit_report *report);
void state_take_folders(struct kit_state *state);
void state_take_temporary(struct kit_state *state);
void state_take_watched(struct kit_state *state);
bool state_watched_differs(const struct kit_state *before, const struct kit_state *after,
                           struct kit_report *report);
void state_take_segments(struct kit_state *state);

/* state-signals.c: */
void state_take_handlers(struct kit_state *state);
void state_take_mask(struct kit_state *state);
bool state_handler_is_of_runtime(const struct state_entry *was, const struct state_entry *is);
void state_take_signal_stack(struct kit_state *state);
bool state_stack_is_of_runtime(const struct state_entry *was, const struct state_entry *is);
void state_take_alarms(struct kit_state *state);
void state_take_timers(struct kit_state *state);

bool state_descriptor_is_of_runtime(const struct state_entry *was, const struct state_entry *is);

/* state-process.c: */
bool state_limit_is_of_runtime(const struct state_entry *was, const struct state_entry *is);
void state_take_limits(struct kit_state *state);
void state_take_threads(struct kit_state *state);
bool state_threads_differ(const struct kit_state *before, const struct kit_state *after,
                          struct kit_report *report);
void state_take_umask(struct kit_state *state);
void state_take_locale(struct kit_state *state);
void state_take_time_zone(struct kit_state *state);
void state_take_environment(struct kit_state *state);
void state_take_groups(struct kit_state *state);
void state_take_rights(struct kit_state *state);
void state_take_control(struct kit_state *state);
void state_take_scheduling(struct kit_state *state);
void state_take_affinity(struct kit_state *state);
void state_take_names(struct kit_state *state);
void state_take_command_line(struct kit_state *state);
void state_take_rounding(struct kit_state *state);
void state_take_locked_memory(struct kit_state *state);
void state_take_namespaces(struct kit_state *state);

/* forks.c: */
bool state_forks_differ(const struct kit_state *before, const struct kit_state *after,
                        struct kit_report *report);

#endif
