/* SPDX-License-Identifier: Apache-2.0 */
/* What every test of a provider of ours needs that has a host.  Misfortune bails out. */
#ifndef DK_PROVIDERS_TESTING_WORDS_H
#define DK_PROVIDERS_TESTING_WORDS_H

#include <durakit/host.h>

/* The plugin that this variable of the environment names. */
struct dk_library *load_plugin(const char *variable);
struct dk_caller *new_caller(void);
/* For dk_host_options: a violation is a failed point. */
void note_violation(void *context, const char *operation, const char *clause, const char *what);

struct dk_bytes text(const char *string);

#endif
