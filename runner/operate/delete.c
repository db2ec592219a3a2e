/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit delete`: instances that ids name, all or none; or those that conditions select and that
 * have ended.
 *
 * The store decides.  What would be deleted, and why some would not, is looked up beside it: for a
 * dry run, for the question at the terminal, and for the message after a refusal.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/grow.h"
#include "runner/cli/message.h"
#include "runner/cli/printer.h"
#include "runner/operate/host.h"
#include "runner/operate/operate.h"
#include "runner/operate/show.h"
#include "runner/operate/signals.h"
#include "runner/operate/targets.h"
#include "runner/operate/tree.h"

enum fate { GOES, MISSING, LIVES, DESCENDANT_LIVES, HAS_PARENT };

struct deleting {
  struct host host;
  struct printer printer;
  struct ids ids;
  struct tree going;           /* of a dry run: what would be deleted */
  struct tree_node *selected;  /* by conditions: those that have ended, to be checked one by one */
  size_t n_selected, room;
  bool no_memory;
  uint64_t n_refused, n_missing;
  struct dk_removed removed;
};

/* ---- what becomes of one --------------------------------------------------------------------- */

/* Whether the parent exists, and stays. */
static dk_status
look_at_parent(struct deleting *d, const char *parent, enum fate *ret_fate)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};

  if (!parent || tree_has(&d->going, parent))
    return DK_OK;
  for (size_t i = 0; i < d->ids.n; i++) {
    if (d->ids.items[i].len == strlen(parent)
        && memcmp(d->ids.items[i].ptr, parent, d->ids.items[i].len) == 0)
      return DK_OK; /* named, too */
  }
  dk_status status = dk_client_status(d->host.client, dk_str_of(parent), &info);
  if (status == DK_OK)
    *ret_fate = HAS_PARENT;
  return status == DK_NOT_FOUND ? DK_OK : status;
}

/* Nodes that would be deleted stay in d->going, where they were added from `first` on; the others
 * are removed from it.  `other` gets the id that prevents the deletion. */
static dk_status
judge_added(struct deleting *d, size_t first, enum fate *ret_fate, struct dk_text *other)
{
  const struct tree_node *living = tree_living(&d->going, first);
  const struct tree_node *root = &d->going.nodes[first];
  dk_status status = DK_OK;

  *ret_fate = GOES;
  if (d->going.n == first) /* it is deleted with one that was checked before */
    return DK_OK;
  if (living && !d->host.options->operating.force)
    *ret_fate = living == root ? LIVES : DESCENDANT_LIVES;
  else
    status = look_at_parent(d, root->parent, ret_fate);
  if (*ret_fate == DESCENDANT_LIVES)
    dk_text_puts(other, living->id);
  if (*ret_fate == HAS_PARENT)
    dk_text_puts(other, root->parent);
  if (*ret_fate != GOES)
    tree_cut(&d->going, first);
  return status;
}

static dk_status
judge_deletion(struct deleting *d, const char *id, enum fate *ret_fate, struct dk_text *other)
{
  size_t first = d->going.n;
  dk_status status = tree_add(&d->going, d->host.client, dk_str_of(id));

  if (status == DK_NOT_FOUND) {
    *ret_fate = MISSING;
    return DK_OK;
  }
  return status == DK_OK ? judge_added(d, first, ret_fate, other) : status;
}

static const char *
fate_word(enum fate fate)
{
  static const char *const words[] = {"would_go", "not_found", "not_over", "descendant_not_over",
                                      "has_parent"};

  return words[fate];
}

static void
tell_fate(struct deleting *d, const char *id, enum fate fate, const struct dk_text *other)
{
  static const char *const words[] = {
    [GOES] = "would be deleted",
    [MISSING] = "not found",
    [LIVES] = "has not ended",
    [DESCENDANT_LIVES] = "has a descendant that has not ended: ",
    [HAS_PARENT] = "can be deleted only together with its parent: ",
  };
  struct dk_text line = DK_TEXT_EMPTY;
  json_t *object = json_object();

  show_string(&line, id);
  dk_text_printf(&line, ": %s", words[fate]);
  show_string(&line, dk_text_str(other));
  if (dk_text_failed(other))
    dk_text_fail(&line);
  dk_text_puts(&line, "\n");
  printer_text(&d->printer, &line);
  show_json_string(object, "instance", id);
  show_json_string(object, "outcome", fate_word(fate));
  if (other->length > 0)
    show_json_string(object, "because_of", dk_text_str(other));
  printer_item(&d->printer, object);
  d->n_refused += fate != GOES;
  d->n_missing += fate == MISSING;
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* The same ids as strings: those of a file end in a newline. */
static char *
string_of(struct deleting *d, size_t i)
{
  char *id = strndup(d->ids.items[i].ptr, d->ids.items[i].len);

  d->no_memory = d->no_memory || !id;
  return id;
}

/* EXIT_VIOLATED: one of them cannot be deleted. */
static int
judge_named(struct deleting *d, bool also_what_goes)
{
  int code = EXIT_PASSED;

  for (size_t i = 0; code == EXIT_PASSED && i < d->ids.n; i++) {
    struct dk_text other = DK_TEXT_EMPTY;
    enum fate fate = GOES;
    char *id = string_of(d, i);
    dk_status status = id ? judge_deletion(d, id, &fate, &other) : DK_NO_MEMORY;

    if (status != DK_OK)
      code = host_failed(&d->host, id, status);
    else if (also_what_goes || fate != GOES)
      tell_fate(d, id, fate, &other);
    dk_text_done(&other);
    free(id);
  }
  if (code != EXIT_PASSED || d->n_refused == 0)
    return code;
  if (d->n_missing > 0)
    targets_ids_hint(&d->host, &d->ids);
  return EXIT_VIOLATED;
}

/* Why the store has refused.  If no instance is found that prevents the deletion, the store's own
 * words: missing rights, a read-only store. */
static int
explain_refusal(struct deleting *d, dk_status refused)
{
  struct dk_text words = DK_TEXT_EMPTY;

  dk_text_puts(&words, dk_client_error(d->host.client));
  int code = judge_named(d, false);
  if (code == EXIT_VIOLATED)
    code = host_refuse(&d->host, EXIT_VIOLATED, "delete", "nothing was deleted",
                       "instances that have ended, with all their descendants",
                       "durakit cancel ID --wait 30s ends an instance; --force deletes it without "
                       "that");
  else if (code == EXIT_PASSED)
    code = host_failed_as(&d->host, "delete", "nothing was deleted", refused, dk_text_str(&words));
  dk_text_done(&words);
  return code;
}

static void
tell_deleted(struct deleting *d)
{
  for (size_t i = 0; i < d->ids.n; i++) {
    struct dk_text line = DK_TEXT_EMPTY;
    json_t *object = json_object();

    show_text(&line, d->ids.items[i]);
    dk_text_puts(&line, ": deleted\n");
    printer_text(&d->printer, &line);
    show_json_text(object, "instance", d->ids.items[i]);
    show_json_string(object, "outcome", "deleted");
    printer_item(&d->printer, object);
  }
}

static int
delete_named(struct deleting *d)
{
  if (d->host.options->operating.dry_run)
    return judge_named(d, true);
  signals_tell(d->host.signals, "still deleting, all in one commit", SIGNALS_A_MINUTE);
  dk_status status =
    dk_client_delete(d->host.client, d->ids.items, d->ids.n,
                     d->host.options->operating.force ? DK_DELETE_FORCE : 0, &d->removed);
  if (status == DK_NOT_FOUND || status == DK_REFUSED)
    return explain_refusal(d, status);
  if (status != DK_OK)
    return host_failed(&d->host, NULL, status);
  tell_deleted(d);
  return EXIT_PASSED;
}

/* ---- conditions ------------------------------------------------------------------------------ */

static int32_t
take_selected(void *context, const struct dk_instance_info *info)
{
  struct deleting *d = context;

  if (info->status == DK_RUNNING || info->status == DK_NOT_STARTED)
    return host_interrupted(&d->host);
  struct tree_node *grown = dk_grown(d->selected, d->n_selected, &d->room, sizeof(*grown));
  d->no_memory = d->no_memory || !grown;
  if (!grown)
    return 1;
  d->selected = grown;
  struct tree_node *node = &d->selected[d->n_selected++];
  *node = (struct tree_node){
    .id = strndup(info->instance.ptr, info->instance.len),
    .parent = info->parent.ptr ? strndup(info->parent.ptr, info->parent.len) : NULL,
    .status = info->status,
  };
  d->no_memory = d->no_memory || !node->id || (info->parent.ptr && !node->parent);
  return d->no_memory || host_interrupted(&d->host);
}

static int
select_all(struct deleting *d, const struct dk_instance_filter *filter)
{
  dk_status status =
    dk_client_list(d->host.client, filter, (dk_str){NULL, 0}, 0, 0, take_selected, d);

  if (d->no_memory) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  return status == DK_OK ? EXIT_PASSED : host_failed(&d->host, NULL, status);
}

/* A dry run: reports each instance that would be deleted. */
static int
judge_selected(struct deleting *d)
{
  for (size_t i = 0; i < d->n_selected; i++) {
    struct dk_text other = DK_TEXT_EMPTY;
    size_t first = d->going.n;
    enum fate fate = GOES;
    dk_status status = DK_OK;

    if (!tree_has(&d->going, d->selected[i].id))
      status = tree_add_known(&d->going, d->host.client, &d->selected[i]);
    if (status == DK_OK)
      status = judge_added(d, first, &fate, &other);
    if (status == DK_OK && fate == GOES)
      tell_fate(d, d->selected[i].id, fate, &other);
    dk_text_done(&other);
    if (status != DK_OK || host_interrupted(&d->host))
      return host_failed(&d->host, d->selected[i].id, status);
  }
  return EXIT_PASSED;
}

static int
delete_compare_ids(const void *a, const void *b)
{
  return strcmp(a, ((const struct tree_node *)b)->id);
}

/* Those whose parent is not among them: a child is deleted with its parent, or stays with it.  A
 * list is in the order of its ids. */
static size_t
count_possible_roots(const struct deleting *d)
{
  size_t n = 0;

  for (size_t i = 0; i < d->n_selected; i++) {
    const char *parent = d->selected[i].parent;
    bool is_child = parent && bsearch(parent, d->selected, d->n_selected, sizeof(*d->selected),
                                      delete_compare_ids);
    n += is_child ? 0 : 1;
  }
  return n;
}

/* Only the store knows how many of them have a parent that stays. */
static int
confirm_deletion(struct deleting *d)
{
  size_t n = count_possible_roots(d);

  return targets_confirm(&d->host,
                         "this deletes at most %zu instance%s that %s ended, with %s descendants. "
                         "Continue?", n, n == 1 ? "" : "s", n == 1 ? "has" : "have",
                         n == 1 ? "its" : "their");
}

static int
delete_selected(struct deleting *d)
{
  const struct operating *operating = &d->host.options->operating;
  const struct dk_instance_filter filter = targets_filter(&operating->chosen);
  signals_tell(d->host.signals, "still searching for the selected instances", SIGNALS_A_MINUTE);
  int code = operating->yes ? EXIT_PASSED : select_all(d, &filter);
  signals_tell(d->host.signals, "", -1);

  if (code == EXIT_PASSED && operating->dry_run)
    return judge_selected(d);
  if (code == EXIT_PASSED && d->n_selected > 0)
    code = confirm_deletion(d);
  if (code != EXIT_PASSED)
    return code;
  signals_tell(d->host.signals, "still deleting, page by page", SIGNALS_A_MINUTE);
  dk_status status = dk_client_delete_matching(d->host.client, &filter, 0, &d->removed);
  return status == DK_OK ? EXIT_PASSED : host_failed(&d->host, NULL, status);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void
print_delete_sums(struct deleting *d, int code)
{
  bool dry = d->host.options->operating.dry_run;
  const struct dk_removed *r = &d->removed;
  json_t *rest = json_object();

  if (dry)
    printer_line(&d->printer, "%zu would be deleted, including descendants", d->going.n);
  else if (code == EXIT_PASSED || r->instances > 0)
    printer_line(&d->printer,
                 "deleted, including descendants: instances %" PRIu64 ", executions %" PRIu64
                 ", events %" PRIu64 ", messages %" PRIu64 ", activities %" PRIu64,
                 r->instances, r->executions, r->events, r->messages, r->activities);
  show_json_bool(rest, "dry_run", dry);
  if (dry)
    show_json_number(rest, "would_go", d->going.n);
  else
    json_object_set_new(rest, "removed", show_json_removed(r));
  show_json_bool(rest, "complete", code <= EXIT_VIOLATED);
  printer_end(&d->printer, rest);
  if (host_interrupted(&d->host))
    message_print("interrupted: what is reported was done; you can repeat the same command");
}

int
operate_delete(const struct options *options)
{
  struct deleting d = {.host = {.options = options},
                       .printer = printer_of(options, "durakit.delete/1", "instances"),
                       .removed = {.struct_size = sizeof(d.removed)}};
  int code = targets_begin(&d.host, &d.ids, options, "delete");

  if (code == EXIT_PASSED) {
    code = targets_are_many(options) ? delete_selected(&d) : delete_named(&d);
    print_delete_sums(&d, code);
  }
  host_close(&d.host);
  targets_ids_done(&d.ids);
  tree_done(&d.going);
  for (size_t i = 0; i < d.n_selected; i++) {
    free(d.selected[i].id);
    free(d.selected[i].parent);
  }
  free(d.selected);
  return printer_done(&d.printer, code);
}
