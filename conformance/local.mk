# SPDX-License-Identifier: Apache-2.0
# conformance/: TAP, the contract as data, the model and its mutants, the checks, the zoo.

EXTRA_DIST += \
	conformance/contract/papers.def \
	conformance/provider.map \
	$(NULL)

# ---- TAP, for our own tests too -----------------------------------------------------------------

noinst_LTLIBRARIES += conformance/libdktap.la
conformance_libdktap_la_SOURCES = \
	conformance/tap/program.c \
	conformance/tap/tap.c \
	conformance/tap/tap.h \
	$(NULL)

# What a failing program says is judged by tests/tap-consumers.sh.
check_PROGRAMS += conformance/tap/test-tap-failing

# ---- the contract -------------------------------------------------------------------------------

noinst_LTLIBRARIES += conformance/libdkcontract.la
conformance_libdkcontract_la_SOURCES = \
	conformance/contract/areas.def \
	conformance/contract/areas/token.def \
	conformance/contract/areas/time.def \
	conformance/contract/areas/queue.def \
	conformance/contract/areas/turn.def \
	conformance/contract/areas/ack.def \
	conformance/contract/areas/work.def \
	conformance/contract/areas/cancel.def \
	conformance/contract/areas/hist.def \
	conformance/contract/areas/exec.def \
	conformance/contract/areas/poison.def \
	conformance/contract/areas/pin.def \
	conformance/contract/areas/tag.def \
	conformance/contract/areas/rel.def \
	conformance/contract/areas/admin.def \
	conformance/contract/areas/del.def \
	conformance/contract/areas/prune.def \
	conformance/contract/areas/err.def \
	conformance/contract/areas/call.def \
	conformance/contract/areas/srv.def \
	conformance/contract/areas/abi.def \
	conformance/contract/areas/mem.def \
	conformance/contract/contract.c \
	conformance/contract/contract.h \
	conformance/contract/mutants.c \
	conformance/contract/mutants.h \
	$(NULL)

noinst_PROGRAMS += conformance/contract/gen-contract

# ---- the model: a plugin, and the reference that the kit is tested with --------------------------

# All but its entry and the table of mutants.
model_rules = \
	conformance/contract/mutants.h \
	conformance/model/admin.c \
	conformance/model/apply-values.c \
	conformance/model/apply.c \
	conformance/model/apply.h \
	conformance/model/cancel.c \
	conformance/model/choice.h \
	conformance/model/commit.c \
	conformance/model/delete.c \
	conformance/model/err.c \
	conformance/model/extension.c \
	conformance/model/extension.h \
	conformance/model/fate.c \
	conformance/model/history.c \
	conformance/model/log.c \
	conformance/model/model.h \
	conformance/model/pin.c \
	conformance/model/prune.c \
	conformance/model/queue.c \
	conformance/model/release.c \
	conformance/model/state.c \
	conformance/model/state.h \
	conformance/model/step.c \
	conformance/model/tag.c \
	conformance/model/token.c \
	conformance/model/turn.c \
	conformance/model/wait.c \
	conformance/model/work.c \
	$(NULL)
model_sources = \
	$(model_rules) \
	conformance/contract/mutants.c \
	$(NULL)

pkglib_LTLIBRARIES += conformance/model/model.la
conformance_model_model_la_LDFLAGS = $(PLUGIN_FLAGS)
conformance_model_model_la_LIBADD = core/libdkbase.la -lpthread
EXTRA_conformance_model_model_la_DEPENDENCIES = $(provider_map)
conformance_model_model_la_SOURCES = \
	$(model_sources) \
	conformance/model/provider.c \
	$(NULL)

# The same with extensions, which the runtime is tested on until the kit has checks for them.
check_LTLIBRARIES += conformance/model/model-full.la
conformance_model_model_full_la_CPPFLAGS = $(AM_CPPFLAGS) -DMODEL_FULL
conformance_model_model_full_la_LDFLAGS = $(PLUGIN_FLAGS) -rpath $(abs_builddir)
conformance_model_model_full_la_LIBADD = $(conformance_model_model_la_LIBADD)
EXTRA_conformance_model_model_full_la_DEPENDENCIES = $(provider_map)
conformance_model_model_full_la_SOURCES = $(conformance_model_model_la_SOURCES)

# ---- the kit and its checks, part of the command ------------------------------------------------

# The model again, beside which random checks run a provider.
noinst_LTLIBRARIES += conformance/libdkreference.la
conformance_libdkreference_la_CPPFLAGS = $(AM_CPPFLAGS) -Ddurakit_provider_2=dk_model_entry
conformance_libdkreference_la_SOURCES = \
	$(model_rules) \
	conformance/model/provider.c \
	$(NULL)

noinst_LTLIBRARIES += conformance/libdkkit.la
conformance_libdkkit_la_LIBADD = conformance/libdkreference.la -lm
conformance_libdkkit_la_SOURCES = \
	conformance/checks/abi.c \
	conformance/checks/ack-failure.c \
	conformance/checks/ack.c \
	conformance/checks/ack-whole.c \
	conformance/checks/admin-tells.c \
	conformance/checks/admin-words.c \
	conformance/checks/admin.c \
	conformance/checks/admin.h \
	conformance/checks/beside.c \
	conformance/checks/call.c \
	conformance/checks/cancel.c \
	conformance/checks/checks.c \
	conformance/checks/checks.h \
	conformance/checks/common.c \
	conformance/checks/crowd.c \
	conformance/checks/delete-life.c \
	conformance/checks/delete-races.c \
	conformance/checks/delete.c \
	conformance/checks/err.c \
	conformance/checks/exec.c \
	conformance/checks/hist.c \
	conformance/checks/interrupt.c \
	conformance/checks/disk.c \
	conformance/checks/large.c \
	conformance/checks/pin.c \
	conformance/checks/poison.c \
	conformance/checks/prune.c \
	conformance/checks/queue.c \
	conformance/checks/limits.c \
	conformance/checks/open-fails.c \
	conformance/checks/linear.c \
	conformance/checks/mass.c \
	conformance/checks/no-state.c \
	conformance/checks/own-clock.c \
	conformance/checks/reader.c \
	conformance/checks/reopen.c \
	conformance/checks/server.c \
	conformance/checks/server-between.c \
	conformance/checks/server-trials.c \
	conformance/checks/server-trials.h \
	conformance/checks/rel.c \
	conformance/checks/repeat.c \
	conformance/checks/tag.c \
	conformance/checks/respelled.c \
	conformance/checks/shortage.c \
	conformance/checks/time.c \
	conformance/checks/sizes.c \
	conformance/checks/stealing.c \
	conformance/checks/token.c \
	conformance/checks/topics.c \
	conformance/checks/topics.def \
	conformance/checks/topics.h \
	conformance/checks/variations.h \
	conformance/checks/turn.c \
	conformance/checks/work.c \
	conformance/fixtures/zoo-table.c \
	conformance/fixtures/zoo.def \
	conformance/fixtures/zoo.h \
	conformance/kit/actors.c \
	conformance/kit/admin.c \
	conformance/kit/between.c \
	conformance/kit/call.c \
	conformance/kit/check.h \
	conformance/kit/common.c \
	conformance/kit/copy.c \
	conformance/kit/disk-names.c \
	conformance/kit/disk.c \
	conformance/kit/disk.h \
	conformance/kit/drain.c \
	conformance/kit/engine.h \
	conformance/kit/expect.c \
	conformance/kit/faults.c \
	conformance/kit/forks.c \
	conformance/kit/growth.c \
	conformance/kit/hurt.c \
	conformance/kit/kit.h \
	conformance/kit/memory.c \
	conformance/kit/ops.c \
	conformance/kit/probe.c \
	conformance/kit/process.c \
	conformance/kit/proxy.c \
	conformance/kit/run.c \
	conformance/kit/shared.c \
	conformance/kit/shortage.c \
	conformance/kit/shortage.h \
	conformance/kit/stall.c \
	conformance/kit/state-files.c \
	conformance/kit/state-process.c \
	conformance/kit/state-signals.c \
	conformance/kit/state.c \
	conformance/kit/state.h \
	conformance/kit/store.c \
	conformance/kit/timing.c \
	conformance/kit/trace.c \
	conformance/kit/trouble.c \
	conformance/kit/twin.c \
	conformance/kit/lengthen.c \
	conformance/kit/neighbours.c \
	conformance/kit/vary.c \
	conformance/kit/vary.h \
	conformance/kit/words.c \
	conformance/random/checks.c \
	conformance/random/compare-admin.c \
	conformance/random/compare.c \
	conformance/random/draw-admin.c \
	conformance/random/draw-commit.c \
	conformance/random/draw-fetch.c \
	conformance/random/draw-newer.c \
	conformance/random/draw.c \
	conformance/random/fair.c \
	conformance/random/odd.c \
	conformance/random/play.c \
	conformance/random/random.h \
	conformance/random/reader.c \
	conformance/random/run.c \
	conformance/random/settle.c \
	conformance/random/shrink.c \
	conformance/random/simplify.c \
	conformance/random/story.c \
	conformance/random/wait.c \
	conformance/runtime/arriving.c \
	conformance/runtime/cancelling.c \
	conformance/runtime/controls.def \
	conformance/runtime/leases.c \
	conformance/runtime/payload.c \
	conformance/runtime/payload.h \
	conformance/runtime/run.c \
	conformance/runtime/run.h \
	conformance/runtime/runs.c \
	conformance/runtime/runs.def \
	conformance/runtime/runs.h \
	conformance/runtime/telling.c \
	conformance/runtime/unsteady.c \
	conformance/runtime/unsteady.h \
	$(NULL)

# ---- the zoo: one plugin for each defect, built for `make check` --------------------------------

# What all fixtures share; the model is in it, with its entry point under another name.
noinst_LTLIBRARIES += \
	conformance/libdkzoo.la \
	conformance/libdkzoomodel.la \
	$(NULL)
conformance_libdkzoomodel_la_CPPFLAGS = $(AM_CPPFLAGS) -Ddurakit_provider_2=zoo_model_entry
conformance_libdkzoomodel_la_SOURCES = conformance/model/provider.c
# A null pointer is left to the machine, also with sanitizers: the fixtures that crash by one are
# judged by their signal.
conformance_libdkzoo_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=null
conformance_libdkzoo_la_LIBADD = \
	conformance/libdkzoomodel.la \
	core/libdkbase.la \
	$(NULL)
conformance_libdkzoo_la_SOURCES = \
	$(model_sources) \
	conformance/fixtures/base.c \
	conformance/fixtures/calls.c \
	conformance/fixtures/damage.c \
	conformance/fixtures/endings.c \
	conformance/fixtures/fixture.h \
	conformance/fixtures/forged.c \
	conformance/fixtures/honest.c \
	conformance/fixtures/load.c \
	conformance/fixtures/memory.c \
	conformance/fixtures/pages.c \
	conformance/fixtures/relay.c \
	conformance/fixtures/relay.h \
	conformance/fixtures/requests.c \
	conformance/fixtures/runtimes.c \
	conformance/fixtures/served.c \
	conformance/fixtures/server.h \
	conformance/fixtures/shuffled.c \
	conformance/fixtures/writer-operations.c \
	conformance/fixtures/writer.c \
	conformance/fixtures/writer.h \
	$(NULL)

include $(top_srcdir)/conformance/fixtures/local.mk

# ---- tests --------------------------------------------------------------------------------------

unit_tests += \
	conformance/tap/test-tap \
	conformance/contract/test-contract \
	conformance/model/test-admin \
	conformance/model/test-extension \
	conformance/model/test-log \
	conformance/model/test-model \
	conformance/kit/test-engine \
	conformance/kit/test-kit \
	conformance/kit/test-state \
	conformance/kit/test-twin \
	conformance/checks/test-checks \
	conformance/runtime/test-runs \
	$(NULL)

# Of the model, those that the kit cannot make: its log, threads, many rows.
check_LTLIBRARIES += conformance/model/libtesting.la
conformance_model_libtesting_la_SOURCES = \
	conformance/model/test-handle.c \
	conformance/model/test-handle.h \
	$(NULL)

# Of the kit: small checks, some wrong on purpose, each in a child of its own.
check_LTLIBRARIES += conformance/kit/libtesting.la
conformance_kit_libtesting_la_SOURCES = \
	conformance/kit/test-meta.c \
	conformance/kit/test-meta.h \
	$(NULL)
