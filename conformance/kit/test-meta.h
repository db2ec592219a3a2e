/* SPDX-License-Identifier: Apache-2.0 */
/* What the kit's tests share.  They run a small check, often wrong on purpose, in a child against
 * the model; it must get its verdict, its texts and its trace.  MODEL names the model's plugin. */
#ifndef DK_KIT_TEST_META_H
#define DK_KIT_TEST_META_H

#include "conformance/kit/kit.h"
#include "conformance/tap/tap.h"

struct meta {
  const char *model;
  char folder[64];
  struct kit_shared *shared;
};
extern struct meta meta;

/* The expected result of a check.  The texts are parts of the real ones; NULL: anything. */
struct expected {
  const char *name;
  void (*run)(struct dk_check *t);
  enum verdict verdict;
  const char *clause, *message, *trace, *found, *mutant;
  const char *clauses; /* of the check; NULL: some */
  uint32_t processes;
  bool without_plugin, real_time;
};

void meta_begin(void);
/* Checks that nothing is left in the folder.  Returns the program's exit status. */
int meta_end(void);
struct kit_report *report(void);
struct kit_job job_of(const struct check *check, const char *plugin);
void run_job(const struct kit_job *job);
void run_in_child(void (*act)(const struct kit_job *job), const struct kit_job *job);
bool said(enum verdict verdict);
bool stores_are_gone(void);
void tell(void);
void run_all(const struct expected *table, size_t n);
#define RUN_ALL(table) run_all(table, sizeof(table) / sizeof((table)[0]))

#endif
