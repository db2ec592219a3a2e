/* SPDX-License-Identifier: Apache-2.0 */
/* Writes results.jsonl, and beside it traces, outputs and findings of what did not pass. */
#include "runner/report/results.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/contract/contract.h"
#include "core/base/utf8.h"
#include "runner/cli/json-memory.h"
#include "runner/cli/server-options.h"
#include "runner/memory/findings.h"
#include "runner/report/out.h"
#include "runner/report/report-text.h"
#include "runner/report/repro-command.h"
#include "runner/system/file.h"
#include "runner/system/remove.h"

/* As results_header writes it. */
#define HEADER_BEGINS "{\"type\":\"header\""

struct results_file {
  FILE *file;
  int folder;              /* open, so that a change of its name does no harm */
  bool failed;
};

/* The first line of the file is the header of a run. */
static bool
is_of_a_run(int results)
{
  char begin[sizeof(HEADER_BEGINS) - 1];

  return pread(results, begin, sizeof(begin), 0) == (ssize_t)sizeof(begin)
         && memcmp(begin, HEADER_BEGINS, sizeof(begin)) == 0;
}

static bool
is_empty(int results)
{
  struct stat st;

  return fstat(results, &st) == 0 && st.st_size == 0;
}

/* Removes what an earlier run has written, so that it does not lie beside the new results.  Other
 * files are not touched: -1 with EEXIST. */
static int
make_results_room(int folder, int results)
{
  if (is_of_a_run(results))
    return remove_at(folder, "checks", NULL) ? 0 : -1;
  if (is_empty(results) && faccessat(folder, "checks", F_OK, AT_SYMLINK_NOFOLLOW) != 0)
    return 0;
  errno = EEXIST;
  return -1;
}

/* Locks the file: two runs that write it at once would destroy the results of both. */
static int
open_alone(int folder)
{
  struct stat st;
  int fd = openat(folder, "results.jsonl",
                  O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);

  if (fd < 0) {
    errno = errno == ELOOP || errno == EISDIR || errno == ENXIO ? EEXIST : errno;
    return -1;
  }
  int reason = fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ? EEXIST : 0;
  if (reason == 0 && flock(fd, LOCK_EX | LOCK_NB) != 0)
    reason = errno == EWOULDBLOCK ? EBUSY : errno;
  if (reason == 0)
    return fd;
  close(fd);
  errno = reason;
  return -1;
}

/* The file, emptied; NULL with errno, and then the folder was not changed. */
static FILE *
open_results(int folder)
{
  int fd = open_alone(folder);
  bool made = fd >= 0 && make_results_room(folder, fd) == 0 && ftruncate(fd, 0) == 0;
  FILE *file = made ? fdopen(fd, "r+") : NULL;
  int reason = errno;

  if (file || fd < 0)
    return file;
  if (is_empty(fd))
    unlinkat(folder, "results.jsonl", 0);
  close(fd);
  errno = reason;
  return NULL;
}

struct results_file *
results_new(const char *folder)
{
  struct results_file *file = calloc(1, sizeof(*file));

  if (!file)
    return NULL;
  file->folder = -1;
  if (folder_make_path(folder) == 0)
    file->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file->folder >= 0)
    file->file = open_results(file->folder);
  if (file->file)
    return file;
  int reason = errno;
  if (file->folder >= 0)
    close(file->folder);
  free(file);
  errno = reason;
  return NULL;
}

void
results_close(struct results_file *file)
{
  if (!file)
    return;
  fclose(file->file);
  close(file->folder);
  free(file);
}

bool
results_are_written(const struct results_file *file)
{
  return !file || !file->failed;
}

/* Frees the object. */
static void
write_line(struct results_file *file, json_t *object)
{
  if (!object || json_memory_failed() || json_dumpf(object, file->file, JSON_COMPACT) != 0
      || fputc('\n', file->file) == EOF || fflush(file->file) != 0)
    file->failed = true;
  json_decref(object);
}

/* Masks the text, and escapes what is not valid UTF-8, because JSON requires it. */
static json_t *
text_value(const struct run *run, const char *bytes, size_t length)
{
  struct dk_text text = DK_TEXT_EMPTY;
  struct dk_text escaped = DK_TEXT_EMPTY;

  secrets_mask(&run->secrets, &text, bytes, length);
  bool valid = !dk_text_failed(&text) && dk_utf8_valid(dk_text_str(&text), text.length);
  if (!valid)
    dk_text_add_escaped(&escaped, dk_text_str(&text), text.length, DK_ESCAPE_VISIBLE);
  if (dk_text_failed(&text))
    dk_text_fail(&escaped);
  json_t *value = json_memory_of_text(valid ? &text : &escaped);
  dk_text_done(&text);
  dk_text_done(&escaped);
  return value;
}

static void
put_text_value(json_t *object, const struct run *run, const char *key, const char *text)
{
  if (text && *text)
    json_object_set_new(object, key, text_value(run, text, strlen(text)));
}

static void
put_fact(json_t *object, const char *key, struct dk_text *text)
{
  json_object_set_new(object, key, json_memory_of_text(text));
  dk_text_done(text);
}

/* The same for a dk_text, if it is not empty.  Empties it. */
static void
put_text(json_t *object, const struct run *run, const char *key, struct dk_text *text)
{
  if (dk_text_failed(text))
    json_object_set_new(object, key, json_memory_of_text(text));
  else
    put_text_value(object, run, key, dk_text_str(text));
  dk_text_reset(text);
}

static json_t *
settings_of(const struct run *run)
{
  json_t *list = json_array();

  for (size_t i = 0; i < run->options->n_settings; i++) {
    const struct given *given = &run->options->settings[i];
    size_t length = strlen(given->value);
    bool secret = run_is_secret(run, given);
    json_t *setting = json_pack("{s:s}", "key", given->key);
    json_object_set_new(setting, "value",
                        secret ? json_string("***") : text_value(run, given->value, length));
    json_object_set_new(setting, "masked",
                        json_boolean(secret
                                     || secrets_are_in(&run->secrets, given->value, length)));
    put_text_value(setting, run, "env", given->env);
    json_array_append_new(list, setting);
  }
  return list;
}

/* The options for the server, for repro. */
static json_t *
server_of(const struct run *run)
{
  json_t *list = json_array();
  size_t n;
  const struct server_option *options = server_options_all(&n);

  for (size_t i = 0; i < n; i++) {
    const char *value = server_options_given(&run->options->server, &options[i]);
    if (!value)
      continue;
    json_t *given = json_pack("{s:s}", "option", options[i].name);
    json_object_set_new(given, "value", text_value(run, value, strlen(value)));
    json_object_set_new(given, "masked",
                        json_boolean(secrets_are_in(&run->secrets, value, strlen(value))));
    json_array_append_new(list, given);
  }
  return list;
}

static void
put_memcheck(json_t *header, const struct run *run)
{
  json_t *files = json_array();

  for (size_t i = 1; run->memcheck && run->valgrind.files[i]; i++)
    json_array_append_new(files, text_value(run, run->valgrind.files[i],
                                            strlen(run->valgrind.files[i])));
  put_text_value(header, run, "memcheck", run->memcheck ? "run" : run->no_memcheck);
  json_object_set_new(header, "suppressions", files);
}

void
results_header(struct results_file *file, const struct run *run, const char *canaries)
{
  struct dk_text seed = DK_TEXT_EMPTY;
  struct dk_text manifest = DK_TEXT_EMPTY;
  json_t *plugin = json_object();

  put_text_value(plugin, run, "path", run->plugin);
  put_text_value(plugin, run, "name", run->probe->name);
  put_text_value(plugin, run, "version", run->probe->version);
  put_text_value(plugin, run, "built_with", run->probe->built_with);
  put_text_value(plugin, run, "trouble", run->trouble);
  json_t *header = json_pack(
    "{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:i, s:i, s:I, s:b, s:s}", "type",
    "header", "format", 1, "command", options_command_name(run->options->command), "kit",
    report_kit_version, "abi", report_abi, "contract", DK_CONTRACT_VERSION, "profile",
    options_profile_name(run->options->profile),
    "mode", report_mode(run), "run", run->options->run_id, "timeout_scale",
    run->options->timeout_scale,
    "classify", (int)run->options->classify, "jobs",
    (int)(run->options->jobs ? run->options->jobs : 1), "required", (json_int_t)run->n_results,
    "next", run->options->next, "canaries", canaries);
  report_seed(&seed, run);
  report_manifest(&manifest);
  put_fact(header, "seed", &seed);
  put_fact(header, "manifest", &manifest);
  json_object_set_new(header, "plugin", plugin);
  put_memcheck(header, run);
  json_object_set_new(header, "settings", settings_of(run));
  json_object_set_new(header, "server", server_of(run));
  write_line(file, header);
}

/* ---- one check ------------------------------------------------------------------------------- */

static json_t *
trace_of(const struct run *run, const struct kit_report *report)
{
  json_t *list = json_array();
  const struct kit_trace_line *line;
  unsigned left_out;

  for (unsigned n = 0; (line = out_trace(report, KIT_TRACE_LINES, n, &left_out)) != NULL; n++) {
    json_t *entry = json_pack("{s:I}", "at", (json_int_t)line->at);
    put_text_value(entry, run, "text", line->text);
    json_array_append_new(list, entry);
  }
  return list;
}

static json_t *
stack_of(const struct run *run, const struct stack *stack)
{
  json_t *list = json_array();

  for (unsigned i = 0; i < stack->n; i++) {
    struct dk_text text = DK_TEXT_EMPTY;
    finding_frame_text(&text, &stack->frames[i]);
    json_array_append_new(list, dk_text_failed(&text)
                                  ? json_memory_of_text(&text)
                                  : text_value(run, dk_text_str(&text), text.length));
    dk_text_done(&text);
  }
  return list;
}

static json_t *
findings_of(const struct run *run, const struct findings *findings)
{
  static const char *const whose[] = {
    [OWNER_UNKNOWN] = "unknown", [OWNER_PROVIDER] = "provider", [OWNER_KIT] = "kit"};
  json_t *list = json_array();

  for (size_t i = 0; i < findings->n; i++) {
    const struct finding *finding = &findings->items[i];
    if (!finding->counts)
      continue;
    json_t *object = json_pack("{s:s, s:s}", "owner", whose[finding->owner], "clause",
                               finding_clause(finding));
    put_text_value(object, run, "kind", finding->kind);
    put_text_value(object, run, "what", finding->what);
    json_object_set_new(object, "stack", stack_of(run, &finding->stacks[0]));
    for (unsigned s = 1; s < finding->n_stacks; s++) {
      put_text_value(object, run, s == 1 ? "memory" : "more", finding->stacks[s].what);
      json_object_set_new(object, s == 1 ? "memory_stack" : "more_stack",
                          stack_of(run, &finding->stacks[s]));
    }
    json_array_append_new(list, object);
  }
  return list;
}

static void
put_story(json_t *object, const struct run *run, const struct result *result)
{
  const struct outcome *outcome = result->outcome;
  const struct kit_report *report = outcome->report;
  struct dk_text text = DK_TEXT_EMPTY;

  put_text_value(object, run, "message", report->message);
  put_text_value(object, run, "expected", report->expected);
  put_text_value(object, run, "found", report->found);
  put_text_value(object, run, "where", report->where);
  put_text_value(object, run, "phase", phase_name((enum phase)report->phase));
  put_text_value(object, run, "operation", report->operation);
  put_text_value(object, run, "ended", outcome->ended);
  put_text_value(object, run, "orphans", outcome->orphans);
  json_object_set_new(object, "pass", json_integer(report->pass));
  json_object_set_new(object, "trace_lines", json_integer(report->n_trace));
  json_object_set_new(object, "trace", trace_of(run, report));
  if (outcome->findings) {
    json_object_set_new(object, "findings", findings_of(run, outcome->findings));
    put_text_value(object, run, "stopped", outcome->findings->stopped);
    if (outcome->findings->stopped[0])
      json_object_set_new(object, "stopped_at", stack_of(run, &outcome->findings->stopped_at));
  }
  if (outcome->output_size > 0)
    json_object_set_new(object, "output", text_value(run, outcome->output, outcome->output_size));
  report_leftovers(&text, run, outcome);
  put_text(object, run, "left_over", &text);
  repro_of(&text, run, result);
  put_text(object, run, "repro", &text);
  dk_text_done(&text);
}

static void
put_answers(json_t *object, const struct result *result)
{
  const struct kit_report *report = result->outcome->report;
  json_t *list = json_array();

  for (unsigned i = 0; i < report->n_answers; i++) {
    const struct kit_answers *answers = &report->answers[i];
    json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i}", "what", answers->what, "kind",
                                          report_kind_of_answers(result, i), "times",
                                          (int)answers->times, "at_once", (int)answers->at_once));
  }
  json_object_set_new(object, "answers", list);
}

static void
put_counts(json_t *object, const struct result *result)
{
  const struct outcome *outcome = result->outcome;
  const struct kit_report *report = outcome->report;

  json_object_set_new(object, "seconds", json_real((double)outcome->wall_ns / 1e9));
  json_object_set_new(object, "operations", json_integer(report->operations));
  json_object_set_new(object, "regions", json_integer(report->regions));
  json_object_set_new(object, "virtual_ms", json_integer(report->virtual_ms));
  if (result->check->flags & IS_RACE) {
    json_object_set_new(object, "rounds", json_integer(report->rounds));
    json_object_set_new(object, "overlaps", json_integer(report->overlaps));
    put_answers(object, result);
  }
  if (result->reruns > 0) {
    json_object_set_new(object, "reruns", json_integer(result->reruns));
    json_object_set_new(object, "failed_reruns", json_integer(result->failed_reruns));
  }
}

/* Closes the descriptor; -1: the folder cannot be made. */
static int
results_enter(int folder, const char *name)
{
  int inner = folder >= 0 ? file_enter_folder(folder, name, 0777) : -1;

  if (folder >= 0)
    close(folder);
  return inner;
}

/* The folder checks/ID, one folder for each part of ID.  Follows no link, because the plugin knows
 * the path. */
static int
enter_folder_of(const struct results_file *file, const struct result *result)
{
  char id[sizeof(result->id)];
  char *rest = NULL;
  int folder = file_enter_folder(file->folder, "checks", 0777);

  memcpy(id, result->id, sizeof(id));
  for (char *part = strtok_r(id, "/", &rest); part; part = strtok_r(NULL, "/", &rest))
    folder = results_enter(folder, part);
  return folder;
}

/* Opens checks/ID/NAME; NULL: it cannot be made. */
static FILE *
open_beside(struct results_file *file, const struct result *result, const char *name)
{
  int folder = enter_folder_of(file, result);
  int fd = folder >= 0 ? file_make(folder, name, 0666) : -1;
  FILE *beside = fd >= 0 ? fdopen(fd, "w") : NULL;

  if (fd >= 0 && !beside)
    close(fd);
  if (folder >= 0)
    close(folder);
  if (!beside)
    file->failed = true;
  return beside;
}

/* Writes the bytes into a file of their own beside the results, masked. */
static void
write_masked(struct results_file *file, const struct run *run, const struct result *result,
             const char *name, const char *bytes, size_t size)
{
  struct dk_text masked = DK_TEXT_EMPTY;
  FILE *beside = size > 0 ? open_beside(file, result, name) : NULL;

  secrets_mask(&run->secrets, &masked, bytes, size);
  if (beside
      && (dk_text_failed(&masked)
          || fwrite(dk_text_str(&masked), 1, masked.length, beside) != masked.length))
    file->failed = true;
  if (beside && fclose(beside) != 0)
    file->failed = true;
  dk_text_done(&masked);
}

static void
write_beside(struct results_file *file, const struct run *run, const struct result *result)
{
  const struct findings *findings = result->outcome->findings;
  const struct kit_trace_line *line;
  unsigned left_out;
  FILE *trace = open_beside(file, result, "trace.txt");

  for (unsigned n = 0;
       trace && (line = out_trace(result->outcome->report, KIT_TRACE_LINES, n, &left_out)); n++) {
    char *masked = out_masked(run->out, run, line->text);
    file->failed = file->failed || !masked;
    fprintf(trace, "%6" PRId64 " ms  %s\n", line->at, masked ? masked : "out of memory");
    free(masked);
  }
  if (trace && fclose(trace) != 0)
    file->failed = true;
  if (findings && findings->xml)
    write_masked(file, run, result, "memcheck.xml", findings->xml, findings->xml_size);
  write_masked(file, run, result, "output", result->outcome->output, result->outcome->output_size);
}

void
results_add(struct results_file *file, const struct run *run, const struct result *result)
{
  const struct dk_clause *clause = run_result_clause(result);
  json_t *object =
    json_pack("{s:s, s:i, s:s, s:s, s:s, s:s}", "type", "check", "n", (int)result->number, "check",
              result->id, "mode", result->mode == MODE_MEMCHECK ? "memcheck" : "native",
              "verdict", verdict_name(result->verdict), "clauses",
              result->check->clauses);

  if (!file) {
    json_decref(object);
    return;
  }
  if (clause)
    json_object_set_new(object, "clause", json_string(clause->id));
  put_text_value(object, run, "reason", result->reason);
  if (result->outcome)
    put_counts(object, result);
  if (result->outcome && result->verdict != VERDICT_PASS && result->verdict != VERDICT_SKIP) {
    put_story(object, run, result);
    write_beside(file, run, result);
  }
  write_line(file, object);
}

/* How often each suppression has hidden something; `fits_provider`: how many of the provider's
 * findings an author's suppression would have hidden. */
static json_t *
suppressions_of(const struct run *run)
{
  json_t *list = json_array();

  for (size_t i = 0; i < run->n_suppressed; i++) {
    const struct suppressed *entry = &run->suppressed[i];
    json_t *object = json_pack("{s:I, s:b}", "used", (json_int_t)entry->count, "author",
                               entry->author);
    put_text_value(object, run, "name", entry->name);
    if (entry->provider > 0)
      json_object_set_new(object, "fits_provider", json_integer(entry->provider));
    if (entry->nobody > 0)
      json_object_set_new(object, "fits_no_library", json_integer(entry->nobody));
    json_array_append_new(list, object);
  }
  return list;
}

void
results_footer(struct results_file *file, const struct run *run, const struct totals *totals)
{
  json_t *counts = json_object();

  if (!file) {
    json_decref(counts);
    return;
  }
  for (int i = VERDICT_PASS; i < VERDICTS; i++) {
    if (totals->counts[i] > 0)
      json_object_set_new(counts, verdict_name((enum verdict)i), json_integer(totals->counts[i]));
  }
  write_line(file, json_pack("{s:s, s:s, s:i, s:f, s:o, s:o}", "type", "footer", "result",
                             totals->word, "exit", totals->exit_code, "seconds", totals->seconds,
                             "counts", counts, "suppressions", suppressions_of(run)));
}
