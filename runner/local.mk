# SPDX-License-Identifier: Apache-2.0
# runner/: the command durakit.  All but main.c is a library, so that its tests can use the parts.

bin_PROGRAMS += runner/durakit
runner_durakit_SOURCES = runner/main.c
runner_durakit_LDFLAGS = $(watch_files) $(AM_LDFLAGS)

# Makes docs/coverage.md: it needs all tables, of the contract, the checks and the zoo.
noinst_PROGRAMS += runner/gen-coverage

# Makes the pages of the manual from the help (docs/local.mk).
noinst_PROGRAMS += runner/gen-manual

noinst_LTLIBRARIES += runner/libdkrunner.la
runner_libdkrunner_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(EXPAT_CFLAGS)
runner_libdkrunner_la_SOURCES = \
	runner/bench/bench-figures.c \
	runner/bench/bench-load.c \
	runner/bench/bench-peer.c \
	runner/bench/bench-serve.c \
	runner/bench/bench.c \
	runner/bench/bench.h \
	runner/cli/arguments.c \
	runner/cli/help.c \
	runner/cli/json-memory.c \
	runner/cli/json-memory.h \
	runner/cli/message.c \
	runner/cli/message.h \
	runner/cli/operate-help.c \
	runner/cli/operate-help.h \
	runner/cli/operate-options.c \
	runner/cli/operate-options.h \
	runner/cli/option-row.h \
	runner/cli/options.c \
	runner/cli/options.h \
	runner/cli/printer.c \
	runner/cli/printer.h \
	runner/cli/resolve.c \
	runner/cli/resolve.h \
	runner/cli/secrets.c \
	runner/cli/secrets.h \
	runner/cli/server-options.c \
	runner/cli/server-options.h \
	runner/cli/settings.c \
	runner/cli/settings.h \
	runner/cli/status-words.c \
	runner/cli/status-words.h \
	runner/cli/suggest.c \
	runner/cli/suggest.h \
	runner/cli/usage.c \
	runner/cli/usage.h \
	runner/cli/when.c \
	runner/cli/when.h \
	runner/cli/wrap.c \
	runner/cli/wrap.h \
	runner/commands/certify.c \
	runner/commands/clean.c \
	runner/commands/commands.h \
	runner/commands/debug.c \
	runner/commands/explain.c \
	runner/commands/list.c \
	runner/commands/next-operation.c \
	runner/commands/next-operation.h \
	runner/commands/probe.c \
	runner/commands/repro.c \
	runner/completion-words.c \
	runner/completion-words.h \
	runner/engine/child-deadline.c \
	runner/engine/child-deadline.h \
	runner/engine/child.c \
	runner/engine/child.h \
	runner/engine/engine.c \
	runner/engine/engine.h \
	runner/engine/judge-memory.c \
	runner/engine/judge.c \
	runner/engine/judge.h \
	runner/engine/memcheck-child.c \
	runner/engine/outcome.c \
	runner/engine/request.c \
	runner/engine/request.h \
	runner/engine/server-commands.c \
	runner/engine/server-commands.h \
	runner/engine/slot.c \
	runner/engine/slot.h \
	runner/engine/task-names.c \
	runner/engine/task-names.h \
	runner/engine/zygote.c \
	runner/engine/zygote.h \
	runner/memory/finding-owner.c \
	runner/memory/findings.c \
	runner/memory/findings.h \
	runner/memory/memcheck.c \
	runner/memory/memcheck.h \
	runner/memory/suppression.c \
	runner/memory/suppressions.h \
	runner/memory/symbols.c \
	runner/memory/symbols.h \
	runner/operate/cancel.c \
	runner/operate/delete.c \
	runner/operate/history.c \
	runner/operate/host.c \
	runner/operate/host.h \
	runner/operate/input.c \
	runner/operate/input.h \
	runner/operate/instances.c \
	runner/operate/operate.c \
	runner/operate/operate.h \
	runner/operate/patience.c \
	runner/operate/patience.h \
	runner/operate/prune.c \
	runner/operate/show.c \
	runner/operate/show.h \
	runner/operate/signals.c \
	runner/operate/signals.h \
	runner/operate/start.c \
	runner/operate/stats.c \
	runner/operate/status.c \
	runner/operate/sums-tell.c \
	runner/operate/sums-text.c \
	runner/operate/sums.c \
	runner/operate/sums.h \
	runner/operate/targets.c \
	runner/operate/targets.h \
	runner/operate/tree.c \
	runner/operate/tree.h \
	runner/operate/waits.c \
	runner/operate/waits.h \
	runner/report/out-human.c \
	runner/report/out-tap.c \
	runner/report/out.c \
	runner/report/out.h \
	runner/report/overview.c \
	runner/report/overview.h \
	runner/report/progress.c \
	runner/report/progress.h \
	runner/report/report-text.c \
	runner/report/report-text.h \
	runner/report/repro-command.c \
	runner/report/repro-command.h \
	runner/report/results.c \
	runner/report/results.h \
	runner/run/cause.c \
	runner/run/cause.h \
	runner/run/plan.c \
	runner/run/plan.h \
	runner/run/run-deadlines.c \
	runner/run/run-totals.c \
	runner/run/run.c \
	runner/run/run.h \
	runner/selftest/canaries.c \
	runner/selftest/canaries.h \
	runner/selftest/matrix.c \
	runner/selftest/selftest.c \
	runner/selftest/selftest.h \
	runner/selftest/zoo.c \
	runner/setup/run-memcheck.c \
	runner/setup/run-origin.c \
	runner/setup/run-origin.h \
	runner/setup/run-setup.c \
	runner/setup/run-setup.h \
	runner/setup/run-stores.c \
	runner/setup/run-suppressions.c \
	runner/system/clock.c \
	runner/system/clock.h \
	runner/system/file.c \
	runner/system/file.h \
	runner/system/folder.c \
	runner/system/folder.h \
	runner/system/limits.c \
	runner/system/limits.h \
	runner/system/orphans.c \
	runner/system/orphans.h \
	runner/system/processor-wait.c \
	runner/system/processor-wait.h \
	runner/system/remove.c \
	runner/system/remove.h \
	runner/system/seal.c \
	runner/system/seal.h \
	$(NULL)

unit_tests += \
	runner/cli/test-secrets \
	runner/cli/test-suggest \
	runner/cli/test-when \
	runner/cli/test-wrap \
	runner/engine/test-judge \
	runner/memory/test-findings \
	runner/memory/test-symbols \
	runner/operate/test-signals \
	runner/report/test-progress \
	runner/run/test-run-deadlines \
	runner/selftest/test-selftest \
	runner/system/test-folder \
	runner/system/test-limits \
	runner/system/test-orphans \
	runner/system/test-processor-wait \
	$(NULL)

# ---- Valgrind's suppressions: installed to be read, and part of the command ----------------------

suppressions = \
	runner/memory/suppressions/libc.supp \
	runner/memory/suppressions/sqlite.supp \
	$(NULL)
suppressionsdir = $(pkgdatadir)/suppressions
dist_suppressions_DATA = $(suppressions)
nodist_runner_libdkrunner_la_SOURCES = runner/memory/suppressions-own.c
CLEANFILES += runner/memory/suppressions-own.c
runner/memory/suppressions-own.c: $(suppressions) runner/memory/suppressions.awk
	$(AM_V_GEN)$(MKDIR_P) runner
	$(AM_V_at)(cd $(srcdir) && $(AWK) -f runner/memory/suppressions.awk $(suppressions)) > $@-t
	$(AM_V_at)mv -f $@-t $@
EXTRA_DIST += runner/memory/suppressions.awk
