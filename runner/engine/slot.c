/* SPDX-License-Identifier: Apache-2.0 */
/* The files and folder of a task, and its outcome as it is collected from them. */
#include "runner/engine/slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/engine/judge.h"
#include "runner/memory/findings.h"
#include "runner/system/clock.h"
#include "runner/system/file.h"

bool
slot_init(struct slot *slot, const struct folder *folder, unsigned number)
{
  *slot = (struct slot){
    .output = -1, .errors = -1, .file = kit_shared_file(), .seals = {.fd = -1}};
  if (slot->file >= 0)
    slot->shared = kit_shared_map(slot->file);
  zygote_init(&slot->zygote, folder->fd, number);
  return slot->shared != NULL;
}

void
slot_done(struct slot *slot)
{
  zygote_done(&slot->zygote);
  seals_end(&slot->seals);
  slot_close_output(slot);
  outcome_free(slot->outcome);
  outcome_free(slot->pending);
  kit_shared_free(slot->shared);
  if (slot->file >= 0)
    close(slot->file);
}

int
slot_open_file(const struct slot *slot, const char *ending)
{
  char name[sizeof(slot->name) + 8];

  snprintf(name, sizeof(name), "%s.%s", slot->name, ending);
  return file_make(slot->parent, name, 0600);
}

void
slot_close_output(struct slot *slot)
{
  if (slot->output >= 0)
    close(slot->output);
  if (slot->errors >= 0)
    close(slot->errors);
  slot->output = slot->errors = -1;
}

static void
remove_file(const struct slot *slot, const char *ending)
{
  char name[sizeof(slot->name) + 8];

  snprintf(name, sizeof(name), "%s.%s", slot->name, ending);
  unlinkat(slot->parent, name, 0);
}

/* What cannot be removed is reported at the end of the run, with the run's folder. */
void
slot_remove_folder(struct slot *slot)
{
  slot_close_output(slot);
  remove_file(slot, "out");
  remove_file(slot, "err");
  remove_at(slot->parent, slot->name, NULL);
}

bool
slot_makes_stores(const struct task *task)
{
  return (task->kind == TASK_CHECK || task->kind == TASK_PROBE_OPEN) && task->job.plugin
         && !task->store_in_folder;
}

static uint64_t
size_of(int fd)
{
  struct stat st;

  return fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* Appends the beginning of a file to the output. */
static void
read_output(struct outcome *outcome, int fd, size_t most)
{
  ssize_t n = most > 0 ? pread(fd, outcome->output + outcome->output_size, most, 0) : 0;

  if (n > 0)
    outcome->output_size += (size_t)n;
}

uint64_t
slot_stdout_bytes(const struct slot *slot)
{
  return size_of(slot->output);
}

uint64_t
slot_output_bytes(const struct slot *slot)
{
  return size_of(slot->output) + size_of(slot->errors);
}

static void
collect_output(struct outcome *outcome, const struct slot *slot)
{
  uint64_t out = size_of(slot->output);
  uint64_t err = size_of(slot->errors);
  size_t half = OUTPUT_KEPT / 2;

  outcome->output_total = out + err;
  read_output(outcome, slot->output, out > half && err > half ? half : OUTPUT_KEPT);
  /* A cut text ends with a line of its own: secrets.c says why that matters. */
  if (outcome->output_size < out && outcome->output_size > 0)
    outcome->output[outcome->output_size - 1] = '\n';
  read_output(outcome, slot->errors, OUTPUT_KEPT - outcome->output_size);
  if (outcome->output_size > 0)
    return;
  free(outcome->output); /* results are kept until the run ends */
  outcome->output = NULL;
}

/* Findings from linking the plugin in the zygote are reported by memory/cycle, once for all
 * checks. */
static void
collect_findings(struct outcome *outcome, const struct slot *slot,
                 const struct memcheck *memcheck)
{
  const struct zygote *zygote = &slot->zygote;
  struct parties parties = {slot->task.job.plugin, memcheck->self, &memcheck->authors};
  char name[32];

  outcome->cold = zygote->cold || slot->task.origins;
  outcome->findings = findings_read(&parties, &slot->seals, zygote->folder, slot->pid,
                                    (const pid_t[2]){zygote->pid, zygote->linker});
  if (!outcome->findings || zygote->linker <= 0 || slot->task.job.check != &kit_memory_cycle)
    return;
  snprintf(name, sizeof(name), "%ld.xml", (long)zygote->linker);
  findings_add_file(outcome->findings, zygote->folder, name);
}

static bool
probes(const struct task *task)
{
  return task->kind != TASK_CHECK && task->kind != TASK_DESTROY;
}

bool
slot_reserve(struct slot *slot)
{
  struct outcome *outcome = calloc(1, sizeof(*outcome));

  outcome_free(slot->outcome);
  slot->outcome = outcome;
  if (!outcome)
    return false;
  outcome->report = malloc(sizeof(*outcome->report));
  outcome->output = malloc(OUTPUT_KEPT);
  outcome->probe = probes(&slot->task) ? malloc(sizeof(*outcome->probe)) : NULL;
  return outcome->report && outcome->output && (outcome->probe || !probes(&slot->task));
}

struct outcome *
slot_collect(struct slot *slot, const struct memcheck *memcheck)
{
  struct outcome *outcome = slot->outcome;

  slot->outcome = NULL;
  outcome->tag = slot->task.tag;
  outcome->wall_ns = clock_ns() - slot->started_ns;
  *outcome->report = *kit_report_of(slot->shared);
  judge_tame(outcome->report);
  if (outcome->probe) {
    memcpy(outcome->probe, kit_probe_of(slot->shared), sizeof(*outcome->probe));
    judge_tame_probe(outcome->probe);
  }
  collect_output(outcome, slot);
  if (slot->task.memcheck)
    collect_findings(outcome, slot, memcheck);
  return outcome;
}

/* The shared map may contain anything; only this run's own stores may be removed. */
static bool
is_ours(const struct slot *slot, const char *suffix)
{
  char prefix[32];

  snprintf(prefix, sizeof(prefix), "dk%.12s-%u-", slot->job.run, slot->job.number);
  return strncmp(suffix, prefix, strlen(prefix)) == 0;
}

void
slot_list_stores(struct slot *slot, const struct kit_report *report)
{
  slot->n_stores = 0;
  if (!slot_makes_stores(&slot->task))
    return;
  for (uint32_t i = 0; i < report->n_stores; i++) {
    if (!report->store_gone[i] && is_ours(slot, report->stores[i]))
      memcpy(slot->stores[slot->n_stores++], report->stores[i], sizeof(*slot->stores));
  }
}

void
slot_list_unsure(const struct slot *slot, struct outcome *outcome)
{
  const struct kit_report *report = outcome->report;

  if (!slot_makes_stores(&slot->task))
    return;
  for (uint32_t i = 0; i < report->n_stores; i++) {
    if (report->store_making[i] && is_ours(slot, report->stores[i]))
      memcpy(outcome->unsure[outcome->n_unsure++], report->stores[i], sizeof(*outcome->unsure));
  }
}

void
slot_forget_gone(struct slot *slot, const struct outcome *removal)
{
  size_t left = 0;

  for (size_t i = 0; i < slot->n_stores; i++) {
    if (!outcome_removed(removal, slot->stores[i]))
      memmove(slot->stores[left++], slot->stores[i], sizeof(*slot->stores));
  }
  slot->n_stores = left;
}
