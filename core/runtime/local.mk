# SPDX-License-Identifier: Apache-2.0
# core/runtime/: orchestrations and activities on any provider; part of libdurakit.

durakit_include_HEADERS += \
	core/include/durakit/manage.h \
	core/include/durakit/runtime.h \
	$(NULL)

noinst_LTLIBRARIES += core/libdkruntime.la
core_libdkruntime_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default
core_libdkruntime_la_LIBADD = core/libdkplugin.la
core_libdkruntime_la_SOURCES = \
	core/runtime/decision.h \
	core/runtime/event.h \
	core/runtime/journal.h \
	core/runtime/keeper.h \
	core/runtime/metrics.h \
	core/runtime/options.h \
	core/runtime/registry.h \
	core/runtime/replay.h \
	core/runtime/runtime.c \
	core/runtime/turns.h \
	core/runtime/worker.h \
	$(NULL)

# ---- events, journal, registry, options, client (R1) -------------------------------------------

core_libdkruntime_la_SOURCES += \
	core/runtime/base64.c \
	core/runtime/cancelling.c \
	core/runtime/client.c \
	core/runtime/client.h \
	core/runtime/codec.h \
	core/runtime/contact.c \
	core/runtime/contact.h \
	core/runtime/decode.c \
	core/runtime/event.c \
	core/runtime/journal.c \
	core/runtime/json.c \
	core/runtime/json.h \
	core/runtime/lost.c \
	core/runtime/lost.h \
	core/runtime/looking.c \
	core/runtime/looking.h \
	core/runtime/metrics.c \
	core/runtime/options.c \
	core/runtime/registry.c \
	core/runtime/removing.c \
	core/runtime/selecting.c \
	core/runtime/selecting.h \
	core/runtime/senders.c \
	core/runtime/senders.h \
	core/runtime/status.c \
	core/runtime/telling.c \
	$(NULL)

unit_tests += \
	core/runtime/test-cancelling \
	core/runtime/test-client \
	core/runtime/test-contact \
	core/runtime/test-event \
	core/runtime/test-journal \
	core/runtime/test-json \
	core/runtime/test-metrics \
	core/runtime/test-wire \
	core/runtime/test-options \
	core/runtime/test-registry \
	core/runtime/test-removing \
	core/runtime/test-selecting \
	core/runtime/test-senders \
	core/runtime/test-status \
	core/runtime/test-telling \
	$(NULL)
dice = core/runtime/testing/dice.h
# A client, and turns that are made by hand.
hand = \
	core/runtime/testing/faulty.c \
	core/runtime/testing/faulty.h \
	core/runtime/testing/faulty-orders.c \
	core/runtime/testing/faulty-state.h \
	core/runtime/testing/hand.c \
	core/runtime/testing/hand.h \
	$(NULL)
core_runtime_test_client_SOURCES = core/runtime/test-client.c $(hand)
core_runtime_test_contact_SOURCES = core/runtime/test-contact.c
core_runtime_test_contact_LDFLAGS = -Wl,--wrap=ticks_now $(AM_LDFLAGS)
core_runtime_test_client_LDFLAGS = -Wl,--wrap=dk_store_enqueue_for_orchestrator $(AM_LDFLAGS)
outcomes = core/runtime/testing/outcomes.c core/runtime/testing/outcomes.h $(hand)
core_runtime_test_cancelling_SOURCES = core/runtime/test-cancelling.c $(outcomes)
core_runtime_test_senders_SOURCES = core/runtime/test-senders.c $(outcomes)
core_runtime_test_removing_SOURCES = core/runtime/test-removing.c $(hand)
core_runtime_test_selecting_SOURCES = core/runtime/test-selecting.c $(hand)
core_runtime_test_selecting_LDFLAGS = \
	-Wl,--wrap=dk_store_list_instances -Wl,--wrap=dk_store_read_messages $(AM_LDFLAGS)
core_runtime_test_status_SOURCES = core/runtime/test-status.c $(hand)
core_runtime_test_status_LDFLAGS = -Wl,--wrap=dk_store_read_history $(AM_LDFLAGS)
core_runtime_test_telling_SOURCES = core/runtime/test-telling.c $(hand)
core_runtime_test_event_SOURCES = \
	core/runtime/test-event.c \
	core/runtime/testing/payloads.h \
	$(dice) \
	$(NULL)
core_runtime_test_json_SOURCES = core/runtime/test-json.c $(dice)
scrape = core/runtime/testing/scrape.c core/runtime/testing/scrape.h
core_runtime_test_metrics_SOURCES = core/runtime/test-metrics.c $(scrape)
core_runtime_test_registry_SOURCES = core/runtime/test-registry.c $(dice)

# ---- replay, decision (R2) ---------------------------------------------------------------------

core_libdkruntime_la_SOURCES += \
	core/runtime/commands.c \
	core/runtime/decide.c \
	core/runtime/decide.h \
	core/runtime/ends.c \
	core/runtime/coroutine.c \
	core/runtime/coroutine.h \
	core/runtime/future.c \
	core/runtime/history.c \
	core/runtime/history.h \
	core/runtime/ids.c \
	core/runtime/match.c \
	core/runtime/names.c \
	core/runtime/names.h \
	core/runtime/orch.c \
	core/runtime/orch.h \
	core/runtime/retry.c \
	core/runtime/room.c \
	core/runtime/room.h \
	core/runtime/rule.c \
	core/runtime/rule.h \
	core/runtime/reason.c \
	core/runtime/reason.h \
	core/runtime/stage.c \
	core/runtime/stored.c \
	core/runtime/values.c \
	core/runtime/waiting.c \
	$(NULL)

unit_tests += \
	core/runtime/test-commands \
	core/runtime/test-decide \
	core/runtime/test-coroutine \
	core/runtime/test-history \
	core/runtime/test-programs \
	core/runtime/test-replay \
	core/runtime/test-select \
	core/runtime/test-stage \
	core/runtime/test-values \
	$(NULL)
scene = core/runtime/testing/scene.c core/runtime/testing/scene.h
core_runtime_test_commands_SOURCES = core/runtime/test-commands.c $(scene)
core_runtime_test_decide_SOURCES = core/runtime/test-decide.c $(scene)
core_runtime_test_history_SOURCES = core/runtime/test-history.c $(scene)
core_runtime_test_replay_SOURCES = core/runtime/test-replay.c $(scene)
core_runtime_test_select_SOURCES = core/runtime/test-select.c $(scene)
core_runtime_test_stage_SOURCES = core/runtime/test-stage.c $(scene)
core_runtime_test_values_SOURCES = core/runtime/test-values.c $(scene)
core_runtime_test_programs_SOURCES = \
	core/runtime/test-programs.c \
	core/runtime/testing/world.c \
	core/runtime/testing/world.h \
	$(dice) \
	$(NULL)
# So that it can put wrong rules in the place of the right ones.
core_runtime_test_programs_LDFLAGS = \
	-Wl,--wrap=rule_prefers -Wl,--wrap=rule_sees -Wl,--wrap=rule_is_over $(AM_LDFLAGS)

# ---- worker, keeper, processes (R3) ------------------------------------------------------------

core_libdkruntime_la_SOURCES += \
	core/runtime/child.c \
	core/runtime/ending.c \
	core/runtime/errand.c \
	core/runtime/fetching.c \
	core/runtime/heap.c \
	core/runtime/heap.h \
	core/runtime/keeper.c \
	core/runtime/slot.c \
	core/runtime/slot.h \
	core/runtime/task.c \
	core/runtime/task.h \
	core/runtime/ticks.c \
	core/runtime/ticks.h \
	core/runtime/token.c \
	core/runtime/token.h \
	core/runtime/warden.c \
	core/runtime/wire.c \
	core/runtime/wire.h \
	core/runtime/worker.c \
	core/runtime/zygote.c \
	core/runtime/zygote.h \
	core/runtime/zygote-child.c \
	$(NULL)

# A store inside of the test, which fails to order.
faulty = \
	core/runtime/testing/faulty.c \
	core/runtime/testing/faulty.h \
	core/runtime/testing/faulty-orders.c \
	core/runtime/testing/faulty-state.h \
	core/runtime/testing/listener.c \
	core/runtime/testing/listener.h \
	$(NULL)
unit_tests += \
	core/runtime/test-cancel \
	core/runtime/test-isolation \
	core/runtime/test-keeper \
	core/runtime/test-metrics-work \
	core/runtime/test-quarantine \
	core/runtime/test-token \
	core/runtime/test-worker \
	core/runtime/test-zygote \
	$(NULL)
core_runtime_test_keeper_SOURCES = core/runtime/test-keeper.c $(faulty)
# A worker with all that it needs.
shop = core/runtime/testing/shop.c core/runtime/testing/shop.h $(faulty)
core_runtime_test_cancel_SOURCES = core/runtime/test-cancel.c $(shop)
core_runtime_test_isolation_SOURCES = core/runtime/test-isolation.c $(shop)
core_runtime_test_metrics_work_SOURCES = core/runtime/test-metrics-work.c $(shop) $(scrape)
core_runtime_test_quarantine_SOURCES = core/runtime/test-quarantine.c $(shop)
core_runtime_test_worker_SOURCES = core/runtime/test-worker.c $(shop)
core_runtime_test_zygote_SOURCES = core/runtime/test-zygote.c $(shop)

# ---- turns, runtime (R4) -----------------------------------------------------------------------

core_libdkruntime_la_SOURCES += \
	core/runtime/cache.c \
	core/runtime/cache.h \
	core/runtime/commit.c \
	core/runtime/commit.h \
	core/runtime/committing.c \
	core/runtime/counting.c \
	core/runtime/deciding.c \
	core/runtime/inbox.c \
	core/runtime/job.c \
	core/runtime/job.h \
	core/runtime/limits.c \
	core/runtime/limits.h \
	core/runtime/notes.c \
	core/runtime/notes.h \
	core/runtime/parking.c \
	core/runtime/parking.h \
	core/runtime/past.c \
	core/runtime/saving.c \
	core/runtime/seat.c \
	core/runtime/seat.h \
	core/runtime/seating.c \
	core/runtime/seating.h \
	core/runtime/turns.c \
	core/runtime/watcher.c \
	$(NULL)

# A whole runtime for a test.
rig = \
	core/runtime/testing/rig.c \
	core/runtime/testing/rig.h \
	$(faulty) \
	$(NULL)
unit_tests += \
	core/runtime/test-cache \
	core/runtime/test-commit \
	core/runtime/test-extensions \
	core/runtime/test-kept \
	core/runtime/test-health \
	core/runtime/test-killed \
	core/runtime/test-leases \
	core/runtime/test-limits \
	core/runtime/test-metrics-turns \
	core/runtime/test-misuse \
	core/runtime/test-outage \
	core/runtime/test-releasing \
	core/runtime/test-requests \
	core/runtime/test-runtime \
	core/runtime/test-saving \
	core/runtime/test-stop \
	core/runtime/test-delays \
	core/runtime/test-reasons \
	core/runtime/test-results \
	core/runtime/test-turns \
	$(NULL)
core_runtime_test_commit_SOURCES = core/runtime/test-commit.c $(rig)
core_runtime_test_extensions_SOURCES = core/runtime/test-extensions.c $(rig)
core_runtime_test_health_SOURCES = core/runtime/test-health.c $(rig)
core_runtime_test_kept_SOURCES = core/runtime/test-kept.c $(rig)
core_runtime_test_killed_SOURCES = core/runtime/test-killed.c $(rig)
core_runtime_test_leases_SOURCES = core/runtime/test-leases.c $(rig)
core_runtime_test_limits_SOURCES = core/runtime/test-limits.c $(rig)
core_runtime_test_metrics_turns_SOURCES = core/runtime/test-metrics-turns.c $(rig) $(scrape)
core_runtime_test_metrics_turns_LDFLAGS = -Wl,--wrap=dk_text_failed $(AM_LDFLAGS)
core_runtime_test_misuse_SOURCES = core/runtime/test-misuse.c $(rig)
core_runtime_test_outage_SOURCES = core/runtime/test-outage.c $(rig)
core_runtime_test_releasing_SOURCES = core/runtime/test-releasing.c $(rig)
core_runtime_test_requests_SOURCES = core/runtime/test-requests.c $(rig)
core_runtime_test_runtime_SOURCES = core/runtime/test-runtime.c $(rig)
core_runtime_test_saving_SOURCES = core/runtime/test-saving.c $(rig) $(scrape)
core_runtime_test_saving_LDFLAGS = \
	-Wl,--wrap=close -Wl,--wrap=dk_text_failed -Wl,--wrap=rename $(AM_LDFLAGS)
core_runtime_test_stop_SOURCES = core/runtime/test-stop.c $(rig)
core_runtime_test_turns_SOURCES = core/runtime/test-turns.c $(rig)
core_runtime_test_delays_SOURCES = core/runtime/test-delays.c $(rig)
core_runtime_test_reasons_SOURCES = core/runtime/test-reasons.c $(rig)
core_runtime_test_results_SOURCES = core/runtime/test-results.c $(rig)

# ---- figures: make bench-runtime ---------------------------------------------------------------

noinst_PROGRAMS += core/runtime/bench/bench
core_runtime_bench_bench_SOURCES = \
	core/runtime/bench/back.c \
	core/runtime/bench/bench.h \
	core/runtime/bench/main.c \
	core/runtime/bench/many.c \
	core/runtime/bench/rate.c \
	core/runtime/bench/told.c \
	core/runtime/bench/warm.c \
	$(NULL)
core_runtime_bench_bench_LDFLAGS = \
	-Wl,--wrap=dk_store_ack_orchestration_item \
	-Wl,--wrap=dk_store_fetch_orchestration_item \
	$(AM_LDFLAGS) \
	$(NULL)

# PostgreSQL's server is its own, and writes through to the disk; DURAKIT_PG names another.
.PHONY: bench-runtime
bench_runtime_needs = core/runtime/bench/bench$(EXEEXT)
if WITH_SQLITE
bench_runtime_needs += providers/sqlite/bench/floor$(EXEEXT) providers/sqlite/sqlite.la
endif
if WITH_PG
bench_runtime_needs += providers/pg/bench/floor$(EXEEXT) providers/pg/pg.la
endif
bench-runtime: $(bench_runtime_needs)
if WITH_SQLITE
	$(AM_V_at)folder=`mktemp -d "$${TMPDIR:-/var/tmp}/durakit-bench.XXXXXX"` && \
	{ core/runtime/bench/bench -f providers/sqlite/bench/floor$(EXEEXT) \
	    '$(abs_top_builddir)/providers/sqlite/.libs/sqlite.so' "store=$$folder/store"; \
	  code=$$?; rm -rf "$$folder"; exit $$code; }
endif
if WITH_PG
	$(AM_V_at)TMPDIR=$${TMPDIR:-/var/tmp} WITH_POSTGRES_DURABLE=1 $(with_postgres) \
	  core/runtime/bench/bench -f providers/pg/bench/floor$(EXEEXT) -e conninfo=DURAKIT_PG \
	  '$(abs_top_builddir)/providers/pg/.libs/pg.so' schema=durakit-bench-runtime
endif
