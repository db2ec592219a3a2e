/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that run one check again. */
#ifndef DK_RUNNER_REPORT_REPRO_COMMAND_H
#define DK_RUNNER_REPORT_REPRO_COMMAND_H

#include "core/base/text.h"
#include "runner/run/run.h"

/* The whole command, with all options that these checks need, quoted for a shell, masked. */
void repro_command(struct dk_text *text, const struct run *run, const char *only, bool memcheck);
/* The command for one result. */
void repro_of(struct dk_text *text, const struct run *run, const struct result *result);
/* Quotes one word for a shell. */
void repro_quote(struct dk_text *text, const char *word);

#endif
