/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of text about a run that all views and files share.  Secrets in them are not masked. */
#ifndef DK_RUNNER_REPORT_REPORT_TEXT_H
#define DK_RUNNER_REPORT_REPORT_TEXT_H

#include "core/base/text.h"
#include "runner/run/run.h"

extern const char report_kit_version[];
extern const char report_abi[];              /* "2.4 draft 1" */
void report_manifest(struct dk_text *text);  /* "0x..." */
void report_seed(struct dk_text *text, const struct run *run);
void report_kit(struct dk_text *text);       /* "durakit 0.1.0, ABI ..., contract ..." */
void report_provider(struct dk_text *text, const struct run *run);
void report_clauses(struct dk_text *text);   /* how many clauses of the contract are judged */
void report_settings(struct dk_text *text, const struct run *run);
const char *report_mode(const struct run *run); /* "native", "native and memcheck", "memcheck" */
void report_run(struct dk_text *text, const struct run *run);
/* How the two calls of a race were answered, and how often. */
/* Of a race: "allowed"; "interesting", if a call may be made again or its outcome is unknown; or
 * "forbidden", those of the round in which the check failed. */
const char *report_kind_of_answers(const struct result *result, unsigned number);
void report_answers(struct dk_text *text, const struct result *result, unsigned number);
/* That memory was not checked although --no-memcheck was not given, and why; else empty. */
void report_not_tested(struct dk_text *text, const struct run *run);
/* Which run of a twin check it was; empty if there was only one. */
void report_region(struct dk_text *text, const struct kit_report *report);
/* The next step, where the clause does not show it; empty: none. */
void report_next(struct dk_text *text, const struct run *run, const struct result *result);
/* What usually breaks the clause; NULL: the cause is unknown, as with a time-out. */
const char *report_usually(const struct result *result);
void report_reruns(struct dk_text *text, const struct result *result);
void report_leftovers(struct dk_text *text, const struct run *run, const struct outcome *outcome);
/* "suppression used: libc: ... (3)"; or that it is unused, and why. */
struct suppressed;
void report_suppression(struct dk_text *text, const struct suppressed *entry);
/* The n-th finding of memcheck as one line, of `most` lines at most; false: there is none. */
struct findings;
bool report_finding(struct dk_text *text, const struct findings *findings, unsigned n,
                    unsigned most);
/* The path of Valgrind's own output; empty if it is not kept. */
void report_xml(struct dk_text *text, const struct run *run, const struct result *result);
void report_more_trace(struct dk_text *text, const struct run *run, const struct result *result,
                       unsigned left_out);
/* What is tested of a server behind the store, and what is not, because the user gave no command
 * for it; empty if the provider declares no server. */
void report_server(struct dk_text *text, const struct run *run);

#endif
