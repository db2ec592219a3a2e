/* SPDX-License-Identifier: Apache-2.0 */
/* The means to run checks under Valgrind: the command, and the suppressions. */
#ifndef DK_RUNNER_MEMORY_MEMCHECK_H
#define DK_RUNNER_MEMORY_MEMCHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "runner/memory/suppressions.h"

/* The hidden first argument of the command when it is a child under Valgrind. */
#define MEMCHECK_WORD "--memcheck-child"

enum { MEMCHECK_FILES = 10, MEMCHECK_WORDS = 48 };

struct memcheck {
  char valgrind[1024];       /* its path */
  char self[4096];           /* this executable */
  int own_fd;                /* our suppressions, in memory, sealed; 0: none */
  char own[64];              /* their path, for other processes */
  const char *files[MEMCHECK_FILES]; /* of suppressions; the first is ours, for Valgrind; NULL at
                                        the end */
  char author[MEMCHECK_FILES - 2][1024];
  struct suppressions authors; /* the entries of the author's files */
  const char *plugin;        /* for a zygote, if a check needs no plugin; NULL: none */
};

/* Finds the means; false with a reason in words.  Call memcheck_done in both cases. */
bool memcheck_find(struct memcheck *memcheck, char *why, size_t size);
void memcheck_done(struct memcheck *memcheck);

/* Notes the path of an author's file of suppressions, for the results; false: too many, or the path
 * is too long. */
bool memcheck_add_file(struct memcheck *memcheck, const char *path);

/* The words of a command line, in `buffer`'s memory: valgrind ... self MEMCHECK_WORD `way` numbers
 * [plugin].  The XML goes to `folder`. */
struct memcheck_words {
  const char *items[MEMCHECK_WORDS];
  char xml[400], fds[2][16], callers[32], suppressions[400];
};
void memcheck_words(struct memcheck_words *words, const struct memcheck *memcheck,
                    const char *folder, const char *way, const int fds[2], const char *plugin,
                    bool origins);

#endif
