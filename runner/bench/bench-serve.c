/* SPDX-License-Identifier: Apache-2.0 */
/* The provider's side of the bench: loads it in this process, and answers the protocol. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runner/bench/bench.h"

struct served {
  const struct bench_provider *provider;
  struct dk_library *library;
  struct dk_caller *caller; /* for opening and removing */
  struct load load;
  char trouble[512];
};

static bool
note_failure(struct served *served, const char *doing)
{
  const struct dk_failure *failure = dk_caller_failure(served->caller);
  char name[32];

  snprintf(served->trouble, sizeof(served->trouble), "%s: %s: %s", doing,
           dk_status_name(failure->status, name, sizeof(name)), failure->text);
  return false;
}

static bool
load_plugin(struct served *served)
{
  struct dk_refusal refusal;

  served->caller = dk_caller_new(NULL, 0);
  if (served->caller
      && dk_library_open(served->provider->plugin, 0, &served->library, &refusal) == 0)
    return true;
  snprintf(served->trouble, sizeof(served->trouble), "%s",
           served->caller ? refusal.what : "out of memory");
  return false;
}

/* Closes the store, if there is one, and removes it. */
static bool
end_store(struct served *served)
{
  struct load *load = &served->load;
  const struct bench_provider *p = served->provider;
  const char *stuck = load->store ? dk_store_close(load->store) : NULL;

  for (size_t i = 0; i < BENCH_CALLERS; i++)
    dk_caller_free(load->callers[i]);
  *load = (struct load){0};
  if (stuck) {
    snprintf(served->trouble, sizeof(served->trouble), "close: %s does not return", stuck);
    return false;
  }
  if (dk_store_destroy(served->library, NULL, served->caller, p->settings, p->n_settings) != DK_OK)
    return note_failure(served, "destroy_store");
  return true;
}

static bool
begin_store(struct served *served, const char *workload, int64_t a, int64_t b)
{
  const struct bench_provider *p = served->provider;
  struct load *load = &served->load;

  if (!end_store(served))
    return false;
  if (dk_store_open(served->library, NULL, served->caller, DK_OPEN_CREATE, p->settings,
                    p->n_settings, &load->store) != DK_OK)
    return note_failure(served, "open");
  for (size_t i = 0; i < BENCH_CALLERS; i++)
    if (!(load->callers[i] = dk_caller_new(NULL, 0))) {
      snprintf(served->trouble, sizeof(served->trouble), "out of memory");
      return false;
    }
  if (bench_load_begin(load, workload, a, b))
    return true;
  snprintf(served->trouble, sizeof(served->trouble), "%s", load->trouble);
  return false;
}

static bool
serve_slice(struct served *served, int64_t ms, FILE *to)
{
  int64_t ns;

  if (!served->load.store) {
    snprintf(served->trouble, sizeof(served->trouble), "run without begin");
    return false;
  }
  if (!bench_load_run(&served->load, ms, &ns)) {
    snprintf(served->trouble, sizeof(served->trouble), "%s", served->load.trouble);
    return false;
  }
  fprintf(to, "ok %" PRIu64 " %" PRId64 " %" PRIu64 "\n", served->load.operations, ns,
          served->load.syncs);
  return true;
}

static void
about(struct served *served, FILE *to)
{
  const struct dk_provider *provider = dk_library_provider(served->library);

  fprintf(to, "ok %s %s, built with %s\n", provider->name, provider->version,
          provider->built_with ? provider->built_with : "(unknown)");
}

static bool
answer(struct served *served, const char *line, FILE *to)
{
  char workload[32];
  int64_t a, b;

  if (strcmp(line, "about\n") == 0) {
    about(served, to);
    return true;
  }
  if (sscanf(line, "begin %31s %" SCNd64 " %" SCNd64, workload, &a, &b) == 3) {
    if (!begin_store(served, workload, a, b))
      return false;
    fputs("ok\n", to);
    return true;
  }
  if (sscanf(line, "run %" SCNd64, &a) == 1)
    return serve_slice(served, a, to);
  snprintf(served->trouble, sizeof(served->trouble), "a line that is not part of the protocol");
  return false;
}

void
bench_serve(FILE *from, FILE *to, void *context)
{
  struct served served = {.provider = context};
  char line[256];
  bool well = load_plugin(&served);

  while (well && fgets(line, sizeof(line), from)) {
    well = answer(&served, line, to);
    fflush(to);
  }
  if (well)
    well = end_store(&served);
  else if (served.library)
    end_store(&(struct served){.provider = served.provider,
                               .library = served.library,
                               .caller = served.caller,
                               .load = served.load});
  if (!well)
    fprintf(to, "no %s\n", served.trouble);
  dk_caller_free(served.caller);
  dk_library_close(served.library);
}
