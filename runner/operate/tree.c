/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a family breadth first; an instance that is in it already is not read again, so that a ring
 * ends. */
#include "runner/operate/tree.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/grow.h"
#include "runner/operate/targets.h"

enum {
  STARTED = 1 << DK_RUNNING | 1 << DK_COMPLETED | 1 << DK_FAILED | 1 << DK_CONTINUED_AS_NEW
            | 1 << DK_CANCELLED
};

static int
by_bytes(const void *a, const void *b)
{
  return strcmp(a, b);
}

bool
tree_has(const struct tree *tree, const char *id)
{
  return tfind(id, &tree->ids, by_bytes) != NULL;
}

static bool
make_room_in_tree(struct tree *tree)
{
  struct tree_node *grown = dk_grown(tree->nodes, tree->n, &tree->room, sizeof(*grown));

  if (grown)
    tree->nodes = grown;
  return grown != NULL;
}

static void
node_done(struct tree_node *node)
{
  free(node->id);
  free(node->parent);
}

/* Takes the node, unless the tree has it already. */
static void
put_node(struct tree *tree, struct tree_node node, bool is_whole)
{
  bool is_new = is_whole && !tree_has(tree, node.id);

  if (!is_whole || (is_new && (!make_room_in_tree(tree) || !tsearch(node.id, &tree->ids,
                                                                    by_bytes)))) {
    tree->no_memory = true;
    is_new = false;
  }
  if (is_new)
    tree->nodes[tree->n++] = node;
  else
    node_done(&node);
}

/* Its texts are copied: the client reads the next ones into the same place. */
static int32_t
take_node(void *context, const struct dk_instance_info *info)
{
  struct tree *tree = context;
  struct tree_node node = {.id = strndup(info->instance.ptr, info->instance.len),
                           .parent = info->parent.ptr ? strndup(info->parent.ptr, info->parent.len)
                                                      : NULL,
                           .status = info->status};

  put_node(tree, node, node.id && (node.parent || !info->parent.ptr));
  return tree->no_memory;
}

/* The descendants of all nodes from `first` on.  As long as a child has not started, the store does
 * not know its parent, and no deletion includes it. */
static dk_status
add_children(struct tree *tree, struct dk_client *client, size_t first)
{
  dk_status status = DK_OK;

  for (size_t i = first; status == DK_OK && i < tree->n; i++) {
    const struct chosen children = {.parent = tree->nodes[i].id, .statuses = STARTED};
    const struct dk_instance_filter filter = targets_filter(&children);
    status = dk_client_list(client, &filter, (dk_str){NULL, 0}, 0, 0, take_node, tree);
  }
  return tree->no_memory ? DK_NO_MEMORY : status;
}

dk_status
tree_add(struct tree *tree, struct dk_client *client, dk_str id)
{
  const struct dk_instance_filter itself = {
    .struct_size = sizeof(itself), .flags = DK_FILTER_IDS, .ids = &id, .n_ids = 1};
  size_t first = tree->n;

  if (tree_has(tree, id.ptr))
    return DK_OK;
  dk_status status = dk_client_list(client, &itself, (dk_str){NULL, 0}, 0, 0, take_node, tree);
  if (tree->no_memory || status != DK_OK)
    return tree->no_memory ? DK_NO_MEMORY : status;
  return tree->n == first ? DK_NOT_FOUND : add_children(tree, client, first);
}

dk_status
tree_add_known(struct tree *tree, struct dk_client *client, const struct tree_node *root)
{
  struct tree_node copy = {.id = strdup(root->id),
                           .parent = root->parent ? strdup(root->parent) : NULL,
                           .status = root->status};
  size_t first = tree->n;

  put_node(tree, copy, copy.id && (copy.parent || !root->parent));
  return add_children(tree, client, first);
}

const struct tree_node *
tree_living(const struct tree *tree, size_t first)
{
  for (size_t i = first; i < tree->n; i++) {
    if (tree->nodes[i].status == DK_RUNNING || tree->nodes[i].status == DK_NOT_STARTED)
      return &tree->nodes[i];
  }
  return NULL;
}

void
tree_cut(struct tree *tree, size_t first)
{
  while (tree->n > first) {
    struct tree_node *last = &tree->nodes[--tree->n];
    tdelete(last->id, &tree->ids, by_bytes);
    node_done(last);
  }
}

void
tree_done(struct tree *tree)
{
  tree_cut(tree, 0);
  free(tree->nodes);
  *tree = (struct tree){.nodes = NULL};
}
