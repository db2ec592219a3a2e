/* SPDX-License-Identifier: Apache-2.0 */
/* Valgrind's suppressions: our own, which are part of the command and are passed to Valgrind, and
 * those of an author, which are not: as soon as the names match, Valgrind would hide a finding of
 * the provider's.  They are applied here, where the owner of a finding is known. */
#ifndef DK_RUNNER_MEMORY_SUPPRESSIONS_H
#define DK_RUNNER_MEMORY_SUPPRESSIONS_H

#include <stdbool.h>
#include <stddef.h>

struct finding;

/* The text of all files of runner/memory/suppressions. */
extern const char suppressions_own[];

enum { SUPPRESSION_FRAMES = 24 }; /* as many as Valgrind takes */

/* One entry of an author's. */
struct suppression {
  char name[128];
  char kind[16];             /* "Addr4" */
  char extra[160];           /* of Param "write(buf)", of FishyValue "malloc(size)" */
  unsigned leaks;            /* of Leak, by the bits of suppression_leak_bit */
  const char *frames[SUPPRESSION_FRAMES]; /* from strdup: "fun:...", "obj:...", "src:...", "..." */
  unsigned n_frames;
};

struct suppressions {
  struct suppression *items;
  size_t n;
};

void suppressions_done(struct suppressions *entries);

/* Matches by names alone, without regard to the owner. */
bool suppression_fits(const struct suppression *entry, const struct finding *finding);
/* True: Memcheck has such a kind. */
bool suppression_is_kind(const char *kind);
/* "definite" of match-leak-kinds, or "Leak_DefinitelyLost" of the XML; 0: neither. */
unsigned suppression_leak_bit(const char *name);
/* Valgrind's patterns: * for any letters, ? for one letter, and nothing else. */
bool suppression_glob(const char *pattern, const char *text);

#endif
