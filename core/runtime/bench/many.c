/* SPDX-License-Identifier: Apache-2.0 */
/* Large stores, by durakit.admin/1: what a page of a list costs at the end of 1,000,000 instances
 * against the beginning, and how much the pruning of 100,000 executions slows orchestrations: see
 * bench.h.  Both stores are filled through the ABI, by FILLERS callers. */
#include "core/runtime/bench/bench.h"

#include <durakit/admin.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  FILLERS = 16,
  SEED = 10000,        /* messages in one commit */
  PAGE = 500,
  PRUNED = 1000,       /* instances, each with... */
  EXECUTIONS = 101,    /* ... with this many executions, of which one remains */
  PRUNE_PAGE = 50,
  PER_SECOND = 100,
  A_RATE_MS = 1000,    /* at least, for a rate that is so low */
  LEASE_MS = 60 * 1000
};

/* ---- filling --------------------------------------------------------------------------------- */

struct filling {
  struct scene *scene;
  unsigned instances, executions;
  atomic_uint over; /* instances that have all their executions */
};

static void
want(dk_status status, struct dk_caller *caller, const char *what)
{
  if (status != DK_OK)
    die("%s: %s", what, dk_caller_failure(caller)->text);
}

static struct dk_turn *
a_turn(struct dk_store *store, struct dk_caller *caller)
{
  const struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE_MS,
                                        .owner = dk_str_of("filler")};
  struct dk_turn *turn;
  dk_status status = dk_store_fetch_orchestration_item(store, caller, &request, &turn);

  if (status != DK_NOTHING)
    want(status, caller, "filling: fetch");
  return status == DK_OK ? turn : NULL;
}

/* One event, and unless it is the last execution a message for the next one. */
static bool
commit(const struct filling *f, struct dk_caller *caller, const struct dk_turn *turn)
{
  const struct dk_turn_head *head = &turn->head;
  const struct dk_event event = {1, dk_str_of("{}")};
  const struct dk_item next = {.struct_size = sizeof next, .instance = head->instance,
                               .payload = dk_str_of("{}")};
  const struct dk_item *items[] = {&next};
  uint64_t execution = head->known ? head->execution_id + 1 : 1;
  bool is_last = execution == f->executions;
  const struct dk_turn_result result = {
    .struct_size = sizeof result, .execution_id = execution,
    .status = is_last ? DK_COMPLETED : DK_CONTINUED_AS_NEW,
    .events = &event, .n_events = 1,
    .orchestrator_items = items, .n_orchestrator_items = is_last ? 0 : 1,
    .name = dk_str_of("filled"), .version = dk_str_of("1.0.0"), .owner = dk_str_of("filler")};

  want(dk_store_ack_orchestration_item(f->scene->store, caller, head->lock_token, &result, NULL),
       caller, "filling: commit");
  return is_last;
}

static void *
fill_some(void *context)
{
  struct filling *f = context;
  struct dk_caller *caller = dk_caller_new(NULL, 0);

  while (caller && atomic_load(&f->over) < f->instances) {
    dk_caller_reset(caller);
    const struct dk_turn *turn = a_turn(f->scene->store, caller);
    if (!turn)
      pause_a_moment();
    else if (commit(f, caller, turn))
      atomic_fetch_add(&f->over, 1);
  }
  dk_caller_free(caller);
  return NULL;
}

/* The first messages of `n` instances, by one empty commit; none that came before may wait. */
static void
seed(struct scene *s, unsigned from, unsigned n)
{
  static char names[SEED][24];
  static struct dk_item items[SEED];
  static const struct dk_item *pointers[SEED];
  const struct dk_item sower = {.struct_size = sizeof sower, .instance = dk_str_of("~sower"),
                                .payload = dk_str_of("{}")};
  const struct dk_turn_result result = {.struct_size = sizeof result,
                                        .orchestrator_items = pointers,
                                        .n_orchestrator_items = n};

  for (unsigned i = 0; i < n; i++) {
    snprintf(names[i], sizeof names[i], "filled-%08u", from + i);
    items[i] = (struct dk_item){.struct_size = sizeof *items, .instance = dk_str_of(names[i]),
                                .payload = dk_str_of("{}")};
    pointers[i] = &items[i];
  }
  dk_caller_reset(s->caller);
  want(dk_store_enqueue_for_orchestrator(s->store, s->caller, &sower), s->caller, "filling");
  const struct dk_turn *turn = a_turn(s->store, s->caller);
  if (!turn || strcmp(turn->head.instance.ptr, "~sower") != 0)
    die("filling: the store has not returned the requested turn");
  want(dk_store_ack_orchestration_item(s->store, s->caller, turn->head.lock_token, &result, NULL),
       s->caller, "filling");
}

/* SEED instances at a time, so that many callers work on them together. */
static void
fill(struct scene *scene, unsigned instances, unsigned executions)
{
  struct filling f = {.scene = scene, .executions = executions};
  pthread_t fillers[FILLERS];
  int64_t from = ticks_ns();

  while (f.instances < instances) {
    unsigned n = instances - f.instances < SEED ? instances - f.instances : SEED;
    seed(scene, f.instances, n);
    f.instances += n;
    for (int i = 0; i < FILLERS; i++)
      if (pthread_create(&fillers[i], NULL, fill_some, &f) != 0)
        die("no thread");
    for (int i = 0; i < FILLERS; i++)
      pthread_join(fillers[i], NULL);
  }
  printf("          %u instances with %u executions each made in %.0f s\n", instances, executions,
         (double)(ticks_ns() - from) / 1e9);
}

static bool
has_admin(struct scene *scene)
{
  if (dk_store_extension(scene->store, DK_ADMIN))
    return true;
  puts("          skipped: the provider does not offer " DK_ADMIN);
  return false;
}

/* ---- pages of a list ------------------------------------------------------------------------- */

static double
page_ns(struct scene *s, char *after, size_t size, unsigned *ret_n)
{
  const struct dk_list_instances request = {.struct_size = sizeof request, .max_instances = PAGE,
                                            .after = dk_str_of(*after ? after : NULL)};
  struct dk_instances *page;
  int64_t from = ticks_ns();

  dk_caller_reset(s->caller);
  want(dk_store_list_instances(s->store, s->caller, &request, &page), s->caller, "a page");
  double took = (double)(ticks_ns() - from);
  *ret_n = (unsigned)page->n_items;
  if (page->n_items > 0)
    snprintf(after, size, "%s", page->items[page->n_items - 1].instance.ptr);
  return took;
}

static void
tell_pages(struct bench *bench, double *took, size_t n)
{
  size_t tenth = n / 10;

  if (tenth < 2)
    die("%zu pages are too few to compare: give more instances (-n)", n);
  double first = median_of(took, tenth), last = median_of(took + n - tenth, tenth);

  printf("pages     %zu pages of %d: %.2f ms at the beginning, %.2f ms at the end: %.2f"
         " (at most 1.25)", n, PAGE, first / 1e6, last / 1e6, last / first);
  judge(bench, last <= 1.25 * first);
}

void
bench_pages(struct bench *bench)
{
  struct scene scene = scene_open(bench, "pages");
  size_t most = bench->instances / PAGE + 2, n_pages = 0;
  double *took = calloc(most, sizeof *took);
  unsigned seen = 0, n = PAGE;
  char after[64] = "";

  if (!took)
    die("no memory");
  if (has_admin(&scene)) {
    fill(&scene, bench->instances, 1);
    while (n == PAGE && n_pages < most) {
      took[n_pages++] = page_ns(&scene, after, sizeof after, &n);
      seen += n;
    }
    if (seen != bench->instances)
      die("%u instances were listed of %u", seen, bench->instances);
    tell_pages(bench, took, n_pages - 1);
  }
  free(took);
  scene_start(&scene);
  scene_close(&scene);
}

/* ---- pruning beside orchestrations ----------------------------------------------------------- */

static atomic_bool stops;
static atomic_uint started;

/* Starts PER_SECOND instances, without waiting for them. */
static void *
start_steadily(void *context)
{
  struct scene *s = context;
  struct dk_client *client = dk_client_new(s->store, NULL);
  int64_t from = ticks_ns();
  char name[32];

  while (client && !atomic_load(&stops)) {
    unsigned due = (unsigned)((ticks_ns() - from) * PER_SECOND / 1000000000);
    if (atomic_load(&started) >= due) {
      pause_a_moment();
      continue;
    }
    snprintf(name, sizeof name, "five-%u", MOST_NUMBERS + atomic_fetch_add(&started, 1));
    if (dk_client_start(client, dk_str_of(name), "five", dk_str_of("0"), NULL) != DK_OK)
      die("%s is not started: %s", name, dk_client_error(client));
  }
  dk_client_free(client);
  return NULL;
}

static double
prune_all(struct scene *s)
{
  const struct dk_instance_filter filter = {.struct_size = sizeof filter,
                                            .name = dk_str_of("filled")};
  struct dk_prune request = {.struct_size = sizeof request, .filter = &filter, .keep = 1,
                             .max_instances = PRUNE_PAGE};
  struct dk_caller *caller = dk_caller_new(NULL, 0);
  struct dk_removed removed = {.instances = 0};
  int64_t from = ticks_ns();
  uint64_t gone = 0;
  char after[64];

  do {
    dk_caller_reset(caller);
    want(dk_store_prune_executions(s->store, caller, &request, &removed), caller, "prune");
    gone += removed.executions;
    snprintf(after, sizeof after, "%s", removed.next.ptr ? removed.next.ptr : "");
    request.after = dk_str_of(after);
  } while (removed.next.ptr);
  dk_caller_free(caller);
  if (gone != (uint64_t)PRUNED * (EXECUTIONS - 1))
    die("%llu executions were pruned of %d", (unsigned long long)gone, PRUNED * (EXECUTIONS - 1));
  return (double)(ticks_ns() - from) / 1e9;
}

void
bench_prune(struct bench *bench)
{
  struct scene scene = scene_open(bench, "prune");
  pthread_t starter;

  five_prepare(&scene);
  if (!has_admin(&scene)) {
    scene_start(&scene);
    scene_close(&scene);
    return;
  }
  fill(&scene, PRUNED, EXECUTIONS);
  scene_start(&scene);
  atomic_store(&stops, false);
  if (pthread_create(&starter, NULL, start_steadily, &scene) != 0)
    die("no thread");
  unsigned ended_before = five_ended();
  WAIT_FOR(five_ended() >= ended_before + PER_SECOND / 2);

  double before = five_rate(&scene);
  int64_t from = ticks_ns();
  unsigned ended = five_ended();
  double took = prune_all(&scene);
  while (ticks_ns() - from < A_RATE_MS * INT64_C(1000000))
    pause_a_moment();
  double lasted = (double)(ticks_ns() - from) / 1e9;
  double meanwhile = (five_ended() - ended) / lasted;
  atomic_store(&stops, true);
  pthread_join(starter, NULL);
  WAIT_FOR(five_ended() >= ended_before + atomic_load(&started));
  printf("prune     %d executions in %.1f s; orchestrations %.0f/s before, %.0f/s in the %.1f s"
         " from its beginning: %.2f (at least 0.8)",
         PRUNED * (EXECUTIONS - 1), took, before, meanwhile, lasted, meanwhile / before);
  judge(bench, meanwhile >= 0.8 * before);
  scene_close(&scene);
}
