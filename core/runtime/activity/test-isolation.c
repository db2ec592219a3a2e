/* SPDX-License-Identifier: Apache-2.0 */
/* Activities in processes, end to end on a file: some return, some crash, some are killed,
 * beside others in threads. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/activities-alone.h"

enum { EACH = 8 };

static struct shared {
  atomic_int deaf, crashes;
} *shared;

static dk_result
echo(dk_task *task, dk_str input)
{
  return dk_done(task, input);
}

static dk_result
deaf(dk_task *task, dk_str input)
{
  (void)task;
  atomic_fetch_add(&shared->deaf, 1);
  while (input.len > 0)
    pause();
  return dk_done(task, input);
}

/* One crash for all of them. */
static dk_result
crashes(dk_task *task, dk_str input)
{
  if (atomic_fetch_add(&shared->crashes, 1) == 0)
    kill(getpid(), SIGKILL);
  return dk_done(task, input);
}

static void
add(struct dk_registry *registry, const char *name, dk_activity_fn *function, int32_t isolation)
{
  const struct dk_activity_traits traits = {.struct_size = sizeof(traits),
                                            .isolation = isolation};

  if (dk_register_activity(registry, name, function, &traits) != DK_OK)
    BAIL_OUT("%s cannot be registered", name);
}

static uint32_t
order_and_wait(struct shop *shop, uint64_t from, const char *name)
{
  uint32_t n = 0;

  for (uint64_t i = 0; i < EACH; i++)
    shop_order(shop, from + i, name, "x");
  for (uint64_t i = 0; i < EACH; i++)
    n += shop_wait(shop, from + i)->times;
  return n;
}

static void
test_all(struct shop *shop)
{
  shop->options.activity_slots = EACH;
  shop->options.grace_ms = 300;
  shop_start(shop);
  for (uint64_t i = 1; i <= EACH; i++)
    shop_order(shop, i, "deaf", "x");
  ok(UNTIL(atomic_load(&shared->deaf) == EACH), "all slots have a process that ignores signals");
  shop_cancel(shop, 1, EACH, false);
  cmp_ok(order_and_wait(shop, 101, "echo"), "==", EACH, "once they are killed, others run");
  ok(UNTIL(shop_counter(shop, COUNT_ACTIVITIES_CANCELLED) == EACH), "all are cancelled");
  ok(UNTIL(shop_counter(shop, COUNT_GRACE_EXCEEDED) == EACH), "all are killed");
  cmp_ok(shop_counter(shop, COUNT_QUARANTINED_NOW), "==", 0, "no thread is abandoned");
  cmp_ok(order_and_wait(shop, 201, "crashes"), "==", EACH, "after a crash all complete");
  cmp_ok(atomic_load(&shared->crashes), "==", EACH + 1, "one ran twice");
  cmp_ok(order_and_wait(shop, 301, "thread"), "==", EACH, "in threads they run as well");
  shop_look(shop);
  uint32_t came = 0;
  for (uint64_t i = 1; i <= EACH; i++)
    came += shop->came[i].times;
  cmp_ok(came, "==", 0, "nothing came back of those that were cancelled");
}

int
main(void)
{
  char folder[] = "/tmp/test-isolation-XXXXXX", path[64], command[64];
  const char *plugin = getenv("SQLITE_PLUGIN");
  struct dk_setting settings[2] = {{"store", {NULL, 0}}, {"synchronous", dk_str_of("normal")}};
  struct dk_registry *registry = dk_registry_new();
  struct dk_zygote *zygote = NULL;

  if (!plugin || access(plugin, R_OK) != 0)
    plan(SKIP_ALL, "the sqlite plugin is left out of this build");
  plan(NO_PLAN);
  shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || !registry || !mkdtemp(folder))
    BAIL_OUT("no memory, or no folder");
  add(registry, "echo", echo, DK_IN_PROCESS);
  add(registry, "deaf", deaf, DK_IN_PROCESS);
  add(registry, "crashes", crashes, DK_IN_PROCESS);
  add(registry, "thread", echo, DK_IN_THREAD);
  cmp_ok(dk_zygote_start(registry, &zygote), "==", DK_OK, "a zygote at the top of main");
  snprintf(path, sizeof(path), "%s/store", folder);
  settings[0].value = dk_str_of(path);
  struct shop *shop = shop_open_with(faulty_open(plugin, settings, 2), registry);
  shop->options.zygote = zygote;
  test_all(shop);
  shop_close(shop);
  dk_zygote_stop(zygote);
  snprintf(command, sizeof(command), "rm -rf '%s'", folder);
  ok(system(command) == 0, "the folder is removed");
  return done_testing();
}
