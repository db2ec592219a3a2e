/* SPDX-License-Identifier: Apache-2.0 */
/* Instances with all their descendants, as they were when they were read: what a deletion would
 * include. */
#ifndef DK_RUNNER_OPERATE_TREE_H
#define DK_RUNNER_OPERATE_TREE_H

#include <durakit/manage.h>

#include <stdbool.h>

struct tree_node {
  char *id;        /* no id has a NUL */
  char *parent;    /* NULL: none */
  int32_t status;
};
struct tree {
  struct tree_node *nodes;
  size_t n, room;
  void *ids;       /* the nodes by their ids, a tree of search.h */
  bool no_memory;
};

/* Adds the instance (its id ends in a NUL) and its descendants, each once; DK_NOT_FOUND: there is
 * no such instance. */
dk_status tree_add(struct tree *tree, struct dk_client *client, dk_str id);
/* The same for an instance that a list has just returned. */
dk_status tree_add_known(struct tree *tree, struct dk_client *client, const struct tree_node *root);
bool tree_has(const struct tree *tree, const char *id);
/* Removes all nodes from `first` on. */
void tree_cut(struct tree *tree, size_t first);
/* The first node, from `first` on, that has not ended; NULL: all have. */
const struct tree_node *tree_living(const struct tree *tree, size_t first);
void tree_done(struct tree *tree);

#endif
