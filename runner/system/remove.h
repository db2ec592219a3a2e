/* SPDX-License-Identifier: Apache-2.0 */
/* Removes folders with all in them: by descriptor, so that nobody who moves a part of the way leads
 * it elsewhere; through no link; and never on another file system or mount than it began on. */
#ifndef DK_RUNNER_SYSTEM_REMOVE_H
#define DK_RUNNER_SYSTEM_REMOVE_H

#include <stdbool.h>

/* What could not be removed. */
struct remains {
  char name[256], why[96]; /* of the first */
  unsigned n;
};

/* What is in the open folder, which stays; false if something is left.  `left` may be NULL. */
bool remove_inside(int folder, struct remains *left);
/* What has this name, a file or a folder with all in it; true also if nothing has. */
bool remove_entry(int folder, const char *name, struct remains *left);
/* The same of a folder only. */
bool remove_at(int parent, const char *name, struct remains *left);

#endif
