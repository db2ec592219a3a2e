/* SPDX-License-Identifier: Apache-2.0 */
/* Removes folders with all their contents: by descriptor, so that moving a part of the path does
 * not lead it elsewhere; through no link; and never on another file system or mount than the
 * first. */
#ifndef DK_RUNNER_SYSTEM_REMOVE_H
#define DK_RUNNER_SYSTEM_REMOVE_H

#include <stdbool.h>

/* What could not be removed. */
struct remains {
  char name[256], why[96]; /* of the first */
  unsigned n;
};

/* Removes the contents of the open folder, which stays; false: something is left.  `left` may be
 * NULL. */
bool remove_inside(int folder, struct remains *left);
/* Removes what has this name, a file or a folder with all its contents; true even if nothing has
 * it. */
bool remove_entry(int folder, const char *name, struct remains *left);
/* The same, but only for a folder. */
bool remove_at(int parent, const char *name, struct remains *left);

#endif
