/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest name to one that does not exist. */
#ifndef DK_RUNNER_CLI_SUGGEST_H
#define DK_RUNNER_CLI_SUGGEST_H

/* Begin with {.word = the typed word}, try every name, then take `best`: NULL if none is near. */
struct suggest {
  const char *word;
  const char *best;
  unsigned distance; /* of best; at most a third of the letters, of the beginning of a name */
  unsigned letters;  /* of best, whole: decides which of two beginnings is nearer */
};

void suggest_try(struct suggest *suggest, const char *name);

/* Letters to add, drop, change, or swap with their neighbour; case does not count. */
unsigned suggest_distance(const char *a, const char *b);

#endif
