/* SPDX-License-Identifier: 0BSD */
/* example.h - what the examples have in common: a store is opened, an end is printed, counters are
 * waited for. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <durakit/runtime.h>

/* A provider's plugin and a store of it. */
struct example_store {
  struct dk_library *library;
  struct dk_store *store;
  struct dk_caller *caller;  /* for calls of the store itself; one thread at a time */
};

/* Opens the store that the arguments say: PROVIDER key=value...  Ends the program if that fails.
 * Returns how many arguments it has used, the program's name among them. */
int example_open(struct example_store *s, int argc, char **argv);
/* The runtime has been stopped by then, and the clients are freed. */
void example_close(struct example_store *s);

/* Ends the program, and says why. */
DK_NORETURN void example_refused(const char *what, const struct dk_refusal *refusal);
DK_NORETURN void example_failed(const char *what, dk_status status, const char *why);

/* A line: how the instance ended. */
void example_print_end(const char *instance, const struct dk_instance_info *info);

/* The counters when each activity that has begun is counted as over, in one way or another.  0, and
 * it says so: that was not so within a minute. */
int example_counters_at_end(struct dk_runtime *runtime, struct dk_counters *ret_counters);

/* Milliseconds of a clock that only goes forward. */
int64_t example_ticks_ms(void);

#endif
