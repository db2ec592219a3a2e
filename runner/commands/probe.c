/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit probe`: what a plugin declares, and what its store answers. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "runner/cli/json-memory.h"
#include "runner/cli/printer.h"
#include "runner/commands/commands.h"
#include "runner/report/out.h"
#include "runner/setup/run-setup.h"

static const char *
thread_model_name(int32_t model)
{
  switch (model) {
  case DK_ONE_AT_A_TIME:
    return "one call at a time";
  case DK_ONE_PER_HANDLE:
    return "one call at a time on a handle";
  case DK_PARALLEL:
    return "parallel";
  default:
    return "unknown";
  }
}

static const char *
shared_name(int32_t shared)
{
  static const char *const names[] = {"one handle", "handles of one process",
                                      "processes of one host", "many hosts"};

  return shared >= 0 && shared < 4 ? names[shared] : "unknown";
}

static const char *
durable_name(int32_t durable)
{
  static const char *const names[] = {"nothing outlives the process", "outlives a kill",
                                      "outlives a power cut"};

  return durable >= 0 && durable < 3 ? names[durable] : "unknown";
}

static const struct runtime_bit {
  uint32_t bit;
  const char *key, *text;
} runtime_bits[] = {
  {DK_RUNTIME_STAYS, "runtime_stays",
   "its threads and descriptors stay when the last handle is closed"},
  {DK_RUNTIME_NO_MEMCHECK, "no_memcheck", "cannot run under Valgrind"},
  {DK_RUNTIME_ABORTS, "aborts", "ends the process where memory runs out"},
};
enum { N_RUNTIME_BITS = sizeof(runtime_bits) / sizeof(runtime_bits[0]) };

static const char *
clocks_name(uint32_t clocks)
{
  if (clocks == (DK_CLOCK_HOST | DK_CLOCK_STORE))
    return "the host's or the store's";
  return clocks & DK_CLOCK_HOST ? "the host's" : clocks & DK_CLOCK_STORE ? "the store's" : "none";
}

/* Text of the plugin may be anything. */
static json_t *
safe(const char *text)
{
  struct dk_text shown = DK_TEXT_EMPTY;

  dk_text_add_escaped(&shown, text, strlen(text), DK_ESCAPE_VISIBLE);
  json_t *value = json_memory_of_text(&shown);
  dk_text_done(&shown);
  return value;
}

static void
line(struct dk_text *out, const char *label, const char *text)
{
  if (!*text)
    return;
  dk_text_printf(out, "%-14s ", label);
  dk_text_add_escaped(out, text, strlen(text), DK_ESCAPE_VISIBLE);
  dk_text_puts(out, "\n");
}

/* The same with a text; frees it. */
static void
line_of_text(struct dk_text *out, const char *label, struct dk_text *text)
{
  line(out, label, dk_text_str(text));
  if (dk_text_failed(text))
    dk_text_fail(out);
  dk_text_done(text);
}

static json_t *
params_json(const struct kit_probe *probe)
{
  json_t *list = json_array();

  for (uint32_t i = 0; i < probe->n_params; i++) {
    uint32_t flags = probe->params[i].flags;
    json_array_append_new(
      list, json_pack("{s:o, s:o, s:o, s:o, s:b, s:b, s:b}", "key", safe(probe->params[i].key),
                      "type", safe(probe->params[i].type), "default",
                      safe(probe->params[i].fallback), "help", safe(probe->params[i].help),
                      "required", (flags & DK_PARAM_REQUIRED) != 0, "secret",
                      (flags & DK_PARAM_SECRET) != 0, "store", (flags & DK_PARAM_STORE) != 0));
  }
  return list;
}

static json_t *
names_json(const char (*names)[64], uint32_t n)
{
  json_t *list = json_array();

  for (uint32_t i = 0; i < n; i++)
    json_array_append_new(list, safe(names[i]));
  return list;
}

static json_t *
limits_json(const struct dk_limits *limits)
{
  return json_pack("{s:I, s:I, s:I, s:I}", "max_id", (json_int_t)limits->max_id, "max_payload",
                   (json_int_t)limits->max_payload, "max_commit_bytes",
                   (json_int_t)limits->max_commit_bytes, "max_commit_items",
                   (json_int_t)limits->max_commit_items);
}

static json_t *
environment_json(const struct options *options)
{
  json_t *object = json_object();

  json_object_set_new(object, "provider", safe(options->environment.provider));
  if (options->environment.settings)
    json_object_set_new(object, "settings", safe(options->environment.settings));
  return object;
}

static json_t *
probe_json(const struct run *run)
{
  const struct kit_probe *p = run->probe;
  json_t *object = json_pack(
    "{s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:o, s:I, s:f}", "path",
    safe(run->plugin), "name", safe(p->name), "version", safe(p->version), "built_with",
    safe(p->built_with), "help", safe(p->help), "thread_model",
    thread_model_name(p->thread_model), "clocks", clocks_name(p->clocks), "durable",
    durable_name(p->durable), "shared", shared_name(p->shared), "unload", p->unload,
    "enqueue_for_worker", p->has_enqueue_for_worker, "interrupt", p->has_interrupt,
    "release_fetch", p->has_release_fetch, "limits", limits_json(&p->limits),
    "threads_after_load", (json_int_t)p->threads_after_load,
    "round_trip_ms", (double)p->round_trip_ns / 1e6);

  for (size_t i = 0; i < N_RUNTIME_BITS; i++)
    json_object_set_new(object, runtime_bits[i].key,
                        json_boolean((p->runtime & runtime_bits[i].bit) != 0));
  if (run->options->environment.provider)
    json_object_set_new(object, "environment", environment_json(run->options));
  json_object_set_new(object, "settings", params_json(p));
  json_object_set_new(object, "extensions", names_json(p->extensions, p->n_extensions));
  json_object_set_new(object, "missing", names_json(p->missing, p->n_missing));
  json_object_set_new(object, "trouble", safe(run->trouble));
  return object;
}

static void
show_optional(struct dk_text *out, const struct kit_probe *p)
{
  const char *const offered[] = {
    p->has_enqueue_for_worker ? "enqueue_for_worker" : NULL,
    p->has_interrupt ? "interrupt" : NULL,
    p->has_release_fetch ? "release_fetch" : NULL,
  };
  const char *label = "optional";

  for (size_t i = 0; i < sizeof(offered) / sizeof(offered[0]); i++)
    if (offered[i]) {
      line(out, label, offered[i]);
      label = "";
    }
}

static void
show_settings(struct dk_text *out, const struct kit_probe *p)
{
  for (uint32_t i = 0; i < p->n_params; i++) {
    uint32_t flags = p->params[i].flags;
    struct dk_text text = DK_TEXT_EMPTY;

    dk_text_printf(&text, "%s (%s%s%s%s%s%s)  %s", p->params[i].key, p->params[i].type,
                   flags & DK_PARAM_REQUIRED ? ", required" : "",
                   flags & DK_PARAM_SECRET ? ", secret" : "",
                   flags & DK_PARAM_STORE ? ", identifies the store" : "",
                   p->params[i].fallback[0] ? ", default " : "", p->params[i].fallback,
                   p->params[i].help);
    line_of_text(out, i == 0 ? "settings" : "", &text);
  }
}

static void
show_runtime(struct dk_text *out, uint32_t runtime)
{
  struct dk_text text = DK_TEXT_EMPTY;

  for (size_t i = 0; i < N_RUNTIME_BITS; i++)
    if (runtime & runtime_bits[i].bit)
      dk_text_printf(&text, "%s%s", text.length ? "; " : "", runtime_bits[i].text);
  line_of_text(out, "runtime", &text);
}

static void
show_limits(struct dk_text *out, const struct dk_limits *limits)
{
  struct dk_text text = DK_TEXT_EMPTY;

  dk_text_printf(&text, "id %" PRIu32 " bytes, payload %" PRIu64 " bytes, commit %" PRIu64
                        " bytes and %" PRIu64 " items",
                 limits->max_id, limits->max_payload, limits->max_commit_bytes,
                 limits->max_commit_items);
  line_of_text(out, "limits", &text);
}

static void
show_store(struct dk_text *out, const struct run *run)
{
  struct dk_text text = DK_TEXT_EMPTY;

  if (run->probe->round_trip_ns > 0)
    dk_text_printf(&text, "opened, one enqueue took %.3f ms",
                   (double)run->probe->round_trip_ns / 1e6);
  line_of_text(out, "store", &text);
  line(out, "trouble", run->trouble);
}

/* What the environment and files have given; values might be secrets. */
static void
show_environment(struct dk_text *out, const struct options *options)
{
  struct dk_text text = DK_TEXT_EMPTY;

  if (options->environment.provider)
    dk_text_printf(&text, "DURAKIT_PROVIDER=%s", options->environment.provider);
  if (options->environment.settings)
    dk_text_printf(&text, ", DURAKIT_SETTINGS=%s", options->environment.settings);
  line_of_text(out, "in effect", &text);
  for (size_t i = 0; i < options->n_settings; i++)
    dk_text_printf(&text, "%s%s", i ? ", " : "", options->settings[i].key);
  line_of_text(out, "given", &text);
}

static void
probe_text(struct dk_text *out, const struct run *run)
{
  const struct kit_probe *p = run->probe;
  struct dk_text provider = DK_TEXT_EMPTY;

  line(out, "plugin", run->plugin);
  show_environment(out, run->options);
  dk_text_printf(&provider, "%s %s", p->name, p->version);
  line_of_text(out, "provider", &provider);
  line(out, "about", p->help);
  line(out, "built with", p->built_with);
  line(out, "threads", thread_model_name(p->thread_model));
  line(out, "clocks", clocks_name(p->clocks));
  line(out, "durable", durable_name(p->durable));
  line(out, "shared by", shared_name(p->shared));
  show_runtime(out, p->runtime);
  show_limits(out, &p->limits);
  show_settings(out, p);
  for (uint32_t i = 0; i < p->n_extensions; i++)
    line(out, i == 0 ? "extensions" : "", p->extensions[i]);
  show_optional(out, p);
  for (uint32_t i = 0; i < p->n_missing; i++)
    line(out, i == 0 ? "missing" : "", p->missing[i]);
  if (p->threads_after_load > 1 && !(p->runtime & DK_RUNTIME_NO_MEMCHECK))
    line(out, "note",
         "its constructors start threads, so that Valgrind is started anew for each check");
  show_store(out, run);
}

static int
show(const struct run *run, const struct options *options, int code)
{
  struct printer printer = printer_of(options, NULL, NULL);
  struct dk_text text = DK_TEXT_EMPTY;

  printer.secrets = &run->secrets;
  if (options->json) {
    printer_value(&printer, probe_json(run));
  } else {
    probe_text(&text, run);
    printer_text(&printer, &text);
  }
  return printer_done(&printer, code);
}

static int
refuse_missing_operations(struct run *run)
{
  const struct kit_probe *p = run->probe;
  struct dk_text list = DK_TEXT_EMPTY;
  struct dk_text next = DK_TEXT_EMPTY;

  for (uint32_t i = 0; i < p->n_missing; i++)
    dk_text_printf(&list, "%s%s", i ? ", " : "", p->missing[i]);
  dk_text_printf(&next, "durakit check --next %s names the first one to write", run->plugin);
  int code = run_refuse(
    run, EXIT_PLUGIN,
    &(struct problem){run->plugin, p->n_missing == 1 ? "a required operation is missing"
                                                     : "required operations are missing",
                      "all required operations of struct dk_ops (durakit/provider.h)",
                      dk_text_str(&list), dk_text_str(&next)});
  dk_text_done(&list);
  dk_text_done(&next);
  return code;
}

int
command_probe(const struct options *options)
{
  struct options quiet = *options;
  struct run run;

  quiet.format = FORMAT_HUMAN;
  quiet.next = true; /* a plugin that lacks operations is described, too */
  int code = run_begin(&run, &quiet);
  if (code == EXIT_PASSED)
    code = run_probe(&run);
  if (code == EXIT_PASSED)
    code = run_take_settings(&run);
  if (code == EXIT_PASSED)
    code = run_open(&run);
  if (code == EXIT_PASSED && run.trouble[0])
    code = EXIT_VIOLATED;
  if (run.described)
    code = show(&run, options, code);
  if (run.described && run.probe->n_missing > 0)
    code = refuse_missing_operations(&run);
  run_end(&run);
  return code;
}
