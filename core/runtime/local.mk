# SPDX-License-Identifier: Apache-2.0
# core/runtime/: orchestrations and activities on any provider; part of libdurakit.  Each room is a
# folder; ARCHITECTURE.md says which may include which.

durakit_include_HEADERS += \
	core/include/durakit/manage.h \
	core/include/durakit/runtime.h \
	$(NULL)

noinst_LTLIBRARIES += core/libdkruntime.la
core_libdkruntime_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default
core_libdkruntime_la_LIBADD = core/libdkplugin.la
core_libdkruntime_la_SOURCES =

# What the tests of the rooms share.
check_LTLIBRARIES += core/runtime/libtesting.la
core_runtime_libtesting_la_SOURCES = \
	core/runtime/testing/activities-alone.c \
	core/runtime/testing/activities-alone.h \
	core/runtime/testing/cancel-outcomes.c \
	core/runtime/testing/cancel-outcomes.h \
	core/runtime/testing/dice.h \
	core/runtime/testing/failing-store-orders.c \
	core/runtime/testing/failing-store-state.h \
	core/runtime/testing/failing-store.c \
	core/runtime/testing/failing-store.h \
	core/runtime/testing/hand-made-turns.c \
	core/runtime/testing/hand-made-turns.h \
	core/runtime/testing/log-listener.c \
	core/runtime/testing/log-listener.h \
	core/runtime/testing/payloads.h \
	core/runtime/testing/prometheus-text.c \
	core/runtime/testing/prometheus-text.h \
	core/runtime/testing/random-world.c \
	core/runtime/testing/random-world.h \
	core/runtime/testing/whole-runtime.c \
	core/runtime/testing/whole-runtime.h \
	core/runtime/testing/written-history.c \
	core/runtime/testing/written-history.h \
	$(NULL)

# ---- format: what is stored: events, messages, their JSON ----------------------------------------

core_libdkruntime_la_SOURCES += \
	core/runtime/format/base64.c \
	core/runtime/format/codec.h \
	core/runtime/format/decode.c \
	core/runtime/format/event.c \
	core/runtime/format/event.h \
	core/runtime/format/json-size.c \
	core/runtime/format/json-size.h \
	core/runtime/format/json.c \
	core/runtime/format/json.h \
	$(NULL)

unit_tests += \
	core/runtime/format/test-event \
	core/runtime/format/test-json \
	$(NULL)

# ---- shared: what all rooms use: log, metrics, health, clock -------------------------------------

core_libdkruntime_la_SOURCES += \
	core/runtime/shared/delay-reason.c \
	core/runtime/shared/delay-reason.h \
	core/runtime/shared/log.c \
	core/runtime/shared/log.h \
	core/runtime/shared/metrics-file.c \
	core/runtime/shared/metrics.c \
	core/runtime/shared/metrics.h \
	core/runtime/shared/retry-counts.c \
	core/runtime/shared/retry-counts.h \
	core/runtime/shared/store-health.c \
	core/runtime/shared/store-health.h \
	core/runtime/shared/ticks.c \
	core/runtime/shared/ticks.h \
	$(NULL)

unit_tests += \
	core/runtime/shared/test-log \
	core/runtime/shared/test-metrics \
	core/runtime/shared/test-metrics-file \
	core/runtime/shared/test-store-health \
	$(NULL)
core_runtime_shared_test_metrics_file_LDFLAGS = \
	-Wl,--wrap=close \
	-Wl,--wrap=dk_text_failed \
	-Wl,--wrap=rename \
	$(AM_LDFLAGS) \
	$(NULL)
core_runtime_shared_test_store_health_LDFLAGS = -Wl,--wrap=ticks_now $(AM_LDFLAGS)

# ---- code: the user's code, its replay and its decision; pure ------------------------------------

core_libdkruntime_la_SOURCES += \
	core/runtime/code/commands.c \
	core/runtime/code/coroutine.c \
	core/runtime/code/coroutine.h \
	core/runtime/code/decision-end.c \
	core/runtime/code/decision-parts.h \
	core/runtime/code/decision.c \
	core/runtime/code/decision.h \
	core/runtime/code/future.c \
	core/runtime/code/history.c \
	core/runtime/code/history.h \
	core/runtime/code/message-ids.c \
	core/runtime/code/orch.c \
	core/runtime/code/orch.h \
	core/runtime/code/place-arrivals.c \
	core/runtime/code/registry.c \
	core/runtime/code/registry.h \
	core/runtime/code/replay-match.c \
	core/runtime/code/replay.h \
	core/runtime/code/retry.c \
	core/runtime/code/values.c \
	core/runtime/code/wait.c \
	core/runtime/code/winner-rule.c \
	core/runtime/code/winner-rule.h \
	$(NULL)

unit_tests += \
	core/runtime/code/test-commands \
	core/runtime/code/test-coroutine \
	core/runtime/code/test-decision \
	core/runtime/code/test-history \
	core/runtime/code/test-place-arrivals \
	core/runtime/code/test-random-programs \
	core/runtime/code/test-registry \
	core/runtime/code/test-replay \
	core/runtime/code/test-values \
	core/runtime/code/test-wait \
	$(NULL)
# So that it can put wrong rules in the place of the right ones.
core_runtime_code_test_random_programs_LDFLAGS = \
	-Wl,--wrap=rule_prefers \
	-Wl,--wrap=rule_sees \
	-Wl,--wrap=rule_is_over \
	$(AM_LDFLAGS) \
	$(NULL)

# ---- lease: leases of turns and activities -------------------------------------------------------

core_libdkruntime_la_SOURCES += \
	core/runtime/lease/heap.c \
	core/runtime/lease/heap.h \
	core/runtime/lease/leases.c \
	core/runtime/lease/leases.h \
	core/runtime/lease/lost-fetch.c \
	core/runtime/lease/lost-fetch.h \
	$(NULL)

unit_tests += \
	core/runtime/lease/test-leases \
	core/runtime/lease/test-lost-fetch \
	$(NULL)

# ---- turn: a fetched turn to its commit ----------------------------------------------------------

core_libdkruntime_la_SOURCES += \
	core/runtime/turn/commit-count.c \
	core/runtime/turn/commit-encode.c \
	core/runtime/turn/commit-encode.h \
	core/runtime/turn/delayed-starts.c \
	core/runtime/turn/delayed-starts.h \
	core/runtime/turn/history-cache.c \
	core/runtime/turn/history-cache.h \
	core/runtime/turn/short-limits.c \
	core/runtime/turn/short-limits.h \
	core/runtime/turn/stored-delays.c \
	core/runtime/turn/turn-commit.c \
	core/runtime/turn/turn-deadlines.c \
	core/runtime/turn/turn-decide.c \
	core/runtime/turn/turn-history.c \
	core/runtime/turn/turn-inbox.c \
	core/runtime/turn/turn-loop.c \
	core/runtime/turn/turn-loop.h \
	core/runtime/turn/turn-pool.c \
	core/runtime/turn/turn-pool.h \
	core/runtime/turn/turn-thread.c \
	core/runtime/turn/turn-thread.h \
	core/runtime/turn/turn.c \
	core/runtime/turn/turn.h \
	$(NULL)

unit_tests += \
	core/runtime/turn/test-delay-reasons \
	core/runtime/turn/test-delays \
	core/runtime/turn/test-history-cache \
	core/runtime/turn/test-kept-code \
	core/runtime/turn/test-late-fetch \
	core/runtime/turn/test-short-limits \
	core/runtime/turn/test-turn-commit \
	core/runtime/turn/test-turn-metrics \
	core/runtime/turn/test-turns \
	$(NULL)
core_runtime_turn_test_turn_metrics_LDFLAGS = -Wl,--wrap=dk_text_failed $(AM_LDFLAGS)

# ---- activity: a fetched activity to its end -----------------------------------------------------

core_libdkruntime_la_SOURCES += \
	core/runtime/activity/activity-child.c \
	core/runtime/activity/activity-deadlines.c \
	core/runtime/activity/activity-fetch.c \
	core/runtime/activity/activity-finish.c \
	core/runtime/activity/activity-pool.c \
	core/runtime/activity/activity-pool.h \
	core/runtime/activity/activity-slot.c \
	core/runtime/activity/activity.c \
	core/runtime/activity/activity.h \
	core/runtime/activity/frames.c \
	core/runtime/activity/frames.h \
	core/runtime/activity/task.c \
	core/runtime/activity/task.h \
	core/runtime/activity/token.c \
	core/runtime/activity/token.h \
	core/runtime/activity/zygote-child.c \
	core/runtime/activity/zygote.c \
	core/runtime/activity/zygote.h \
	$(NULL)

unit_tests += \
	core/runtime/activity/test-activities \
	core/runtime/activity/test-activity-cancel \
	core/runtime/activity/test-activity-metrics \
	core/runtime/activity/test-frames \
	core/runtime/activity/test-isolation \
	core/runtime/activity/test-misuse \
	core/runtime/activity/test-quarantine \
	core/runtime/activity/test-refused-results \
	core/runtime/activity/test-token \
	core/runtime/activity/test-zygote \
	$(NULL)

# ---- client: requests and questions from outside -------------------------------------------------

core_libdkruntime_la_SOURCES += \
	core/runtime/client/client-cancel.c \
	core/runtime/client/client-filter.c \
	core/runtime/client/client-filter.h \
	core/runtime/client/client-history.c \
	core/runtime/client/client-info.c \
	core/runtime/client/client-info.h \
	core/runtime/client/client-remove.c \
	core/runtime/client/client-send-many.c \
	core/runtime/client/client-send-many.h \
	core/runtime/client/client-status.c \
	core/runtime/client/client.c \
	core/runtime/client/client.h \
	$(NULL)

unit_tests += \
	core/runtime/client/test-cancel-requests \
	core/runtime/client/test-client \
	core/runtime/client/test-client-cancel \
	core/runtime/client/test-client-filter \
	core/runtime/client/test-client-history \
	core/runtime/client/test-client-killed \
	core/runtime/client/test-client-remove \
	core/runtime/client/test-client-send-many \
	core/runtime/client/test-client-status \
	$(NULL)
core_runtime_client_test_client_LDFLAGS = \
	-Wl,--wrap=dk_store_enqueue_for_orchestrator \
	$(AM_LDFLAGS) \
	$(NULL)
core_runtime_client_test_client_filter_LDFLAGS = \
	-Wl,--wrap=dk_store_list_instances \
	-Wl,--wrap=dk_store_read_messages \
	$(AM_LDFLAGS) \
	$(NULL)
core_runtime_client_test_client_status_LDFLAGS = -Wl,--wrap=dk_store_read_history $(AM_LDFLAGS)

# ---- the runtime itself --------------------------------------------------------------------------

core_libdkruntime_la_SOURCES += \
	core/runtime/options.c \
	core/runtime/options.h \
	core/runtime/runtime.c \
	$(NULL)

unit_tests += \
	core/runtime/test-extensions \
	core/runtime/test-options \
	core/runtime/test-outage \
	core/runtime/test-runtime \
	core/runtime/test-runtime-health \
	core/runtime/test-stop \
	$(NULL)

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
