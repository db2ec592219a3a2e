/* SPDX-License-Identifier: Apache-2.0 */
/* The orchestrations and activities of the storm: see storm.h. */
#include "tests/storm/storm.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEP_MS = 5, LIMIT_MS = 50, NEVER_MS = 3600 * 1000, STEPS = 5, HELD_ONE_IN = 16 };

static struct shared *shared;

/* ---- numbers and names ----------------------------------------------------------------------- */

void
instance_name(char name[16], int number)
{
  if (number < MOST_INSTANCES)
    snprintf(name, 16, "i-%d", number);
  else
    snprintf(name, 16, "c-%d", number - MOST_INSTANCES);
}

int
instance_number(dk_str name)
{
  int number = name.len > 2 ? atoi(name.ptr + 2) : -1;

  if (name.len <= 2 || name.ptr[1] != '-' || number < 0 || number >= MOST_INSTANCES)
    return -1;
  return name.ptr[0] == 'c' ? number + MOST_INSTANCES : number;
}

enum shape
instance_shape(int number)
{
  /* Every tenth is one that is cancelled. */
  return number >= MOST_INSTANCES ? FIVE
         : number % 10 == 9       ? HOLD
                                  : (enum shape)(number % 10 % HOLD);
}

const char *
shape_name(enum shape shape)
{
  static const char *const names[SHAPES] = {"five", "fan", "select", "child", "hold"};

  return names[shape];
}

int
shape_steps(enum shape shape)
{
  return shape == SELECT || shape == HOLD ? 0 : STEPS;
}

/* ---- activities ------------------------------------------------------------------------------ */

/* The body of a step begins.  Its input is "step value". */
static void
count_run(dk_task *task, int step)
{
  int number = instance_number(dk_task_info(task)->instance);

  if (number < 0 || step < 0 || step >= MOST_STEPS)
    return;
  atomic_fetch_add(&shared->n_runs, 1);
  if (atomic_fetch_add(&shared->runs[number][step], 1) == 0)
    atomic_fetch_add(&shared->n_first, 1);
}

/* Gives value + 1. */
static dk_result
do_step(dk_task *task, dk_str input)
{
  int step = -1, value = 0;
  char text[16];

  if (sscanf(input.ptr, "%d %d", &step, &value) != 2)
    return dk_error(task, "not a step: %s", input.ptr);
  count_run(task, step);
  if (dk_task_sleep(task, STEP_MS) != DK_CAUSE_NONE)
    return dk_error(task, "this must not be stored: the step was interrupted");
  snprintf(text, sizeof text, "%d", value + 1);
  return dk_done(task, dk_str_of(text));
}

static dk_result
do_nothing_for_ever(dk_task *task, dk_str input)
{
  (void)input;
  dk_task_sleep(task, NEVER_MS);
  return dk_error(task, "this must not be stored: no code waits for it");
}

/* ---- orchestrations -------------------------------------------------------------------------- */

static dk_future *
step(dk_orch *o, int number, int value)
{
  return dk_activity(o, "step", dk_format(o, "%d %d", number, value));
}

static dk_result
five(dk_orch *o, dk_str input)
{
  int value = 0;

  (void)input;
  for (int i = 0; i < STEPS; i++)
    value = atoi(dk_await(o, step(o, i, value)).ptr);
  return dk_completed(o, dk_format(o, "%d", value));
}

static dk_result
fan(dk_orch *o, dk_str input)
{
  dk_future *all[STEPS];
  int value = 0;

  (void)input;
  for (int i = 0; i < STEPS; i++)
    all[i] = step(o, i, 0);
  dk_all_of(o, all, STEPS);
  for (int i = 0; i < STEPS; i++)
    value += atoi(dk_await(o, all[i]).ptr);
  return dk_completed(o, dk_format(o, "%d", value));
}

static dk_result
select_timeout(dk_orch *o, dk_str input)
{
  dk_future *never = dk_activity(o, "never", dk_str_of("0"));
  dk_future *limit = dk_timer(o, LIMIT_MS);

  (void)input;
  return dk_completed(o, dk_str_of(dk_select(o, never, limit) == limit ? "5" : "0"));
}

static dk_result
child(dk_orch *o, dk_str input)
{
  char name[16];
  struct dk_child_options options = {.struct_size = sizeof options};

  (void)input;
  instance_name(name, instance_number(dk_orch_instance(o)) + MOST_INSTANCES);
  options.instance = dk_str_of(name);
  return dk_completed(o, dk_await(o, dk_child(o, "five", dk_str_of("0"), &options)));
}

/* A few of them hold a worker's slot; never all slots. */
static dk_result
hold(dk_orch *o, dk_str input)
{
  int tenth = instance_number(dk_orch_instance(o)) / 10;

  (void)input;
  dk_await(o, step(o, 0, 0));
  dk_future *event = dk_external(o, "never"), *timer = dk_timer(o, NEVER_MS);
  if (tenth % HELD_ONE_IN == 0)
    dk_activity(o, "never", dk_str_of("0"));
  dk_any(o, event, timer);
  return dk_completed(o, dk_str_of("0"));
}

bool
register_shapes(struct dk_registry *registry, struct shared *memory)
{
  static dk_orchestration_fn *const functions[SHAPES] = {five, fan, select_timeout, child, hold};
  bool is_done = registry != NULL;

  shared = memory;
  for (int i = 0; i < SHAPES && is_done; i++)
    is_done = dk_register_orchestration(registry, shape_name((enum shape)i), NULL, functions[i])
              == DK_OK;
  return is_done && dk_register_activity(registry, "step", do_step, NULL) == DK_OK
         && dk_register_activity(registry, "never", do_nothing_for_ever, NULL) == DK_OK;
}
