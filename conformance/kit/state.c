/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the process that a plugin must leave as it was (see state.h): the table of what is
 * compared, and the comparison.  Both states are taken when the kit itself has nothing open. */
#include "conformance/kit/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In order of importance: the first difference is reported. */
static const struct compared table[] = {
  {.take = state_take_watched, .differs = state_watched_differs, .costs_time = true},
  {.take = state_take_folders, .clause = "ABI-5",
   .instead = "use whole paths, or openat() with a descriptor of your own"},
  {.take = state_take_limits, .clause = "ABI-5", .is_of_runtime = state_limit_is_of_runtime,
   .instead = "limits hold for all of the host: adapt to them, or start a program with limits of "
              "its own"},
  {.take = state_take_descriptors, .clause = "ABI-6", .removed = "of the host was closed",
   .added = "is still open after close", .is_of_runtime = state_descriptor_is_of_runtime,
   .instead = "do not close a descriptor that you did not open, nor put another in its place",
   .leaving = "close all that the handle has opened"},
  {.take = state_take_flags, .clause = "ABI-6",
   .instead = "use F_SETFL and F_SETFD only on descriptors that you have opened"},
  {.take = state_take_written, .differs = state_written_differs},
  {.take = state_take_streams, .clause = "ABI-6",
   .instead = "leave the host's streams as they are, and log through host->log"},
  {.take = state_take_threads, .differs = state_threads_differ},
  {.differs = state_forks_differ},
  {.take = state_take_handlers, .clause = "ABI-5", .is_of_runtime = state_handler_is_of_runtime,
   .instead = "set no signal handlers: they are the host's, with their flags and masks"},
  {.take = state_take_mask, .clause = "ABI-5",
   .instead = "block signals only while you start a thread, and restore the mask at once"},
  {.take = state_take_signal_stack, .clause = "ABI-5", .is_of_runtime = state_stack_is_of_runtime,
   .instead = "set one only in threads of your own"},
  {.take = state_take_alarms, .clause = "ABI-5",
   .instead = "use host->wait, which takes a time: the signal of this timer would end the host"},
  {.take = state_take_timers, .clause = "ABI-5", .added = "was not deleted",
   .removed = "of the host was deleted", .instead = "delete timers of your own only",
   .leaving = "delete all timers of the handle (timer_delete) in close"},
  {.take = state_take_umask, .clause = "ABI-5",
   .instead = "give open() and mkdir() a mode, or fchmod() what you have made"},
  {.take = state_take_locale, .clause = "ABI-5",
   .instead = "use functions without a locale, or uselocale() and back within the call"},
  {.take = state_take_time_zone, .clause = "ABI-5",
   .instead = "compute with UTC (timegm, gmtime_r), or call tzset() again with the host's TZ"},
  {.take = state_take_environment, .clause = "ABI-5", .removed = "was removed",
   .added = "was added", .hidden = true,
   .instead = "do not change the environment: other threads may read it at the same time"},
  {.take = state_take_groups, .clause = "ABI-5",
   .instead = "give a session or a group to a program that you start, by posix_spawn"},
  {.take = state_take_rights, .clause = "ABI-5",
   .instead = "leave user, groups, capabilities and filters as the host has set them"},
  {.take = state_take_control, .clause = "ABI-5",
   .instead = "leave it as it is, or set it in a program that you start"},
  {.take = state_take_scheduling, .clause = "ABI-5",
   .instead = "change the priority of threads of your own only"},
  {.take = state_take_affinity, .clause = "ABI-5",
   .instead = "bind threads of your own only, never one that calls you"},
  {.take = state_take_names, .clause = "ABI-5",
   .instead = "name threads of your own only: the main thread's name is that of the process"},
  {.take = state_take_command_line, .clause = "ABI-5", .hidden = true,
   .instead = "leave the arguments of the host's main() as they are"},
  {.take = state_take_rounding, .clause = "ABI-5",
   .instead = "restore it before you return; do not link the plugin with -ffast-math, which "
              "changes it when the plugin is loaded"},
  {.take = state_take_locked_memory, .clause = "ABI-5",
   .instead = "lock only pages of your own (mlock), not all of the process (mlockall)"},
  {.take = state_take_namespaces, .clause = "ABI-5", .costs_time = true,
   .instead = "enter namespaces in a program that you start"},
  {.take = state_take_segments, .clause = "ABI-5", .added = "was left behind", .costs_time = true,
   .instead = "remove it (IPC_RMID) in close, or in destroy_store if it belongs to the store",
   .leaving = "remove it (IPC_RMID) in close, or in destroy_store if it belongs to the store"},
  {.take = state_take_temporary, .clause = "ABI-5", .added = "was left behind",
   .instead = "remove temporary files in close at the latest",
   .leaving = "remove temporary files in close at the latest; unlink a file at once if no other "
              "process opens it"},
};

enum { ROWS = sizeof(table) / sizeof(table[0]) };

/* ---- entries --------------------------------------------------------------------------------- */

const char *
state_text(struct kit_state *state, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  const char *text = dk_arena_vprintf(&state->arena, format, args);
  va_end(args);
  state->failed = state->failed || text == NULL;
  return text == NULL ? "" : text;
}

/* The list grows as needed: an entry that is left out could hide a difference. */
void
state_add(struct kit_state *state, const char *key, const char *format, ...)
{
  va_list args;

  if (state->n == state->room) {
    size_t room = state->room == 0 ? 256 : state->room * 2;
    void *more = reallocarray(state->entries, room, sizeof(*state->entries));

    state->failed = state->failed || more == NULL;
    if (more == NULL)
      return;
    state->entries = more;
    state->room = room;
  }
  struct state_entry *entry = &state->entries[state->n];
  entry->row = state->row;
  entry->key = dk_arena_strdup(&state->arena, key);
  va_start(args, format);
  entry->value = dk_arena_vprintf(&state->arena, format, args);
  va_end(args);
  if (entry->key == NULL || entry->value == NULL)
    state->failed = true;
  else
    state->n++;
}

const char *
state_file(struct kit_state *state, const char *path, size_t most)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  char *text = fd < 0 ? NULL : dk_arena_alloc(&state->arena, most + 1);
  size_t length = 0;
  ssize_t n = text == NULL ? -1 : 0;

  while (text != NULL && length < most
         && ((n = read(fd, text + length, most - length)) > 0 || (n < 0 && errno == EINTR)))
    length += n > 0 ? (size_t)n : 0;
  if (fd >= 0)
    close(fd);
  if (n < 0)
    return "unknown";
  if (length > 0 && text[length - 1] == '\n')
    length--;
  text[length] = '\0';
  return text;
}

const char *
state_link(struct kit_state *state, const char *path)
{
  char target[1024];
  ssize_t n = readlink(path, target, sizeof(target));

  return n < 0 ? "unknown" : state_text(state, "%.*s", (int)n, target);
}

const char *
state_status(struct kit_state *state, const char *name)
{
  enum { MOST = 16384 };
  size_t length = strlen(name);
  const char *line;

  if (state->status == NULL)
    state->status = state_file(state, "/proc/self/status", MOST);
  for (line = state->status; line != NULL; line = strchr(line, '\n')) {
    line += *line == '\n' ? 1 : 0;
    if (strncmp(line, name, length) == 0)
      break;
  }
  if (line == NULL)
    return "unknown";
  line += length + strspn(line + length, "\t ");
  char *value = dk_arena_copy(&state->arena, line, strcspn(line, "\n"));
  for (char *at = value; at != NULL && (at = strchr(at, '\t')) != NULL; at++)
    *at = ' ';
  state->failed = state->failed || value == NULL;
  return value == NULL ? "" : value;
}

/* ---- the state ------------------------------------------------------------------------------- */

/* Checks of what is left behind compare all there is.  The others omit what costs milliseconds, and
 * what would cost a moment in each of a thousand checks but is seldom changed. */
static bool
compares_all(const struct kit_job *job)
{
  static const char *const clauses[] = {"CALL-8", "ABI-5", "ABI-6"};
  const struct check *check = job->check;
  bool found = false;

  for (size_t i = 0; i < sizeof(clauses) / sizeof(clauses[0]); i++)
    found = found || strstr(check->clauses, clauses[i]) != NULL;
  return found && check->variation == NULL;
}

struct kit_state *
kit_state_take(struct kit_shared *shared, const struct kit_job *job,
               const struct kit_state *before)
{
  struct kit_state *state = calloc(1, sizeof(*state));

  fflush(stdout); /* a plugin's printf uses the same buffer as ours */
  if (state == NULL)
    return NULL;
  state->shared = shared;
  state->job = job;
  state->before = before;
  dk_arena_init(&state->arena);
  for (size_t i = 0; i < STATE_FOLDERS; i++)
    state->watched[i] = -1;
  for (size_t i = 0; i < ROWS; i++) {
    state->row = &table[i];
    if (table[i].take != NULL && (!table[i].costs_time || compares_all(job)))
      table[i].take(state);
  }
  if (!state->failed)
    return state;
  kit_state_free(state);
  return NULL;
}

void
kit_state_free(struct kit_state *state)
{
  if (state == NULL)
    return;
  for (size_t i = 0; i < STATE_FOLDERS; i++) {
    if (state->watched[i] >= 0)
      close(state->watched[i]);
  }
  free(state->entries);
  dk_arena_done(&state->arena);
  free(state);
}

/* ---- comparing ------------------------------------------------------------------------------- */

bool
state_damage(struct kit_report *report, const char *clause, const char *expected,
             const char *format, ...)
{
  va_list args;

  va_start(args, format);
  vsnprintf(report->message, sizeof(report->message), format, args);
  va_end(args);
  snprintf(report->clause, sizeof(report->clause), "%s", clause);
  snprintf(report->expected, sizeof(report->expected), "%s", expected);
  snprintf(report->found, sizeof(report->found), "%s", report->message);
  return true;
}

/* Finds the entry with this key.  Both states have nearly the same order, so the search begins
 * behind the entry that was found last. */
static const struct state_entry *
find_entry(const struct kit_state *state, const struct state_entry *wanted, size_t *last)
{
  for (size_t i = 0; i < state->n; i++) {
    size_t at = (*last + 1 + i) % state->n;
    const struct state_entry *entry = &state->entries[at];

    if (entry->row == wanted->row && strcmp(entry->key, wanted->key) == 0) {
      *last = at;
      return entry;
    }
  }
  return NULL;
}

static bool
say_changed(const struct state_entry *was, const struct state_entry *is,
            struct kit_report *report)
{
  char expected[sizeof(report->expected)];

  if (was->row->hidden)
    return state_damage(report, was->row->clause, was->row->instead, "%s was changed", was->key);
  snprintf(expected, sizeof(expected), "%.400s, as before the plugin was loaded; %s", was->value,
           was->row->instead);
  return state_damage(report, was->row->clause, expected, "%s is now %.400s; it was %.400s",
                      was->key, is->value, was->value);
}

static bool
say_other(const struct state_entry *entry, const char *words, const char *clause,
          const char *instead, struct kit_report *report)
{
  if (entry->row->hidden)
    return state_damage(report, clause, instead, "%s %s", entry->key, words);
  return state_damage(report, clause, instead, "%s (%.400s) %s", entry->key, entry->value, words);
}

bool
state_brings_runtime(const struct kit_state *before, const struct kit_state *after)
{
  return before->before == NULL && after->shared->runtime_stays;
}

static bool
entries_differ(const struct compared *row, const struct kit_state *before,
               const struct kit_state *after, struct kit_report *report)
{
  bool runtime = row->is_of_runtime != NULL && state_brings_runtime(before, after);
  size_t last = 0;

  for (size_t i = 0; i < before->n; i++) {
    const struct state_entry *was = &before->entries[i];
    const struct state_entry *is = was->row == row ? find_entry(after, was, &last) : was;

    if (is == NULL && row->removed != NULL)
      return say_other(was, row->removed, row->clause, row->instead, report);
    if (is != NULL && strcmp(was->value, is->value) != 0
        && !(runtime && row->is_of_runtime(was, is)))
      return say_changed(was, is, report);
  }
  last = 0;
  for (size_t i = 0; i < after->n && row->added != NULL; i++) {
    const struct state_entry *is = &after->entries[i];

    if (is->row == row && find_entry(before, is, &last) == NULL
        && !(runtime && row->is_of_runtime(NULL, is)))
      return row->leaving != NULL ? say_other(is, row->added, "CALL-8", row->leaving, report)
                                  : say_other(is, row->added, row->clause, row->instead, report);
  }
  return false;
}

bool
kit_state_differs(const struct kit_state *before, const struct kit_state *after,
                  struct kit_report *report)
{
  for (size_t i = 0; i < ROWS; i++) {
    if (table[i].differs != NULL ? table[i].differs(before, after, report)
                                 : entries_differ(&table[i], before, after, report))
      return true;
  }
  return false;
}
