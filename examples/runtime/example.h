/* SPDX-License-Identifier: 0BSD */
/* example.h - what the examples share: they open a store, print how an instance ended, and wait for
 * counters. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <durakit/runtime.h>

/* A provider's plugin and a store of it. */
struct example_store {
  struct dk_library *library;
  struct dk_store *store;
  struct dk_caller *caller;  /* for calls of the store itself; one thread at a time */
};

/* Opens the store that the arguments name: PROVIDER key=value...  Ends the program if that fails.
 * Returns how many arguments it has used, including the program's name. */
int example_open(struct example_store *s, int argc, char **argv);
/* Stop the runtime and free the clients before. */
void example_close(struct example_store *s);

/* Ends the program, and says why. */
DK_NORETURN void example_refused(const char *what, const struct dk_refusal *refusal);
DK_NORETURN void example_failed(const char *what, dk_status status, const char *why);

/* A line: how the instance ended. */
void example_print_end(const char *instance, const struct dk_instance_info *info);

/* Waits until the counters show an end for each activity that has begun, and returns them.  0, with
 * a message: they did not within a minute. */
int example_counters_at_end(struct dk_runtime *runtime, struct dk_counters *ret_counters);

/* Milliseconds of a clock that only goes forward. */
int64_t example_ticks_ms(void);

#endif
