# SPDX-License-Identifier: Apache-2.0
# runner/: the command durakit.  All but main.c is a library, so that its tests can use the parts.

bin_PROGRAMS += runner/durakit
# syncs.c stands in for functions of the C library, in this program and in what it loads.
runner_durakit_SOURCES = runner/main.c runner/syncs.c
runner_durakit_LDFLAGS = $(count_syncs) $(AM_LDFLAGS)

# Makes docs/coverage.md: it needs all tables, of the contract, the checks and the zoo.
noinst_PROGRAMS += runner/gen-coverage
runner_gen_coverage_SOURCES = runner/gen-coverage.c

# Makes the pages of the manual from the help (docs/local.mk).
noinst_PROGRAMS += runner/gen-manual
runner_gen_manual_SOURCES = runner/gen-manual.c

noinst_LTLIBRARIES += runner/libdkrunner.la
runner_libdkrunner_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(EXPAT_CFLAGS)
runner_libdkrunner_la_SOURCES = \
	runner/arguments.c \
	runner/bench.c \
	runner/bench.h \
	runner/bench-figures.c \
	runner/bench-load.c \
	runner/bench-peer.c \
	runner/bench-serve.c \
	runner/blame.c \
	runner/canaries.c \
	runner/canaries.h \
	runner/cause.c \
	runner/cause.h \
	runner/certify.c \
	runner/child.c \
	runner/child.h \
	runner/clean.c \
	runner/commands.h \
	runner/deadline.c \
	runner/debug.c \
	runner/engine.c \
	runner/engine.h \
	runner/explain.c \
	runner/facts.c \
	runner/facts.h \
	runner/file.c \
	runner/file.h \
	runner/findings.c \
	runner/findings.h \
	runner/folder.c \
	runner/folder.h \
	runner/grant.c \
	runner/grant.h \
	runner/hand.c \
	runner/hand.h \
	runner/help.c \
	runner/hurting.c \
	runner/hurting.h \
	runner/judge-memory.c \
	runner/judge.c \
	runner/judge.h \
	runner/json-memory.c \
	runner/json-memory.h \
	runner/limits.c \
	runner/limits.h \
	runner/list.c \
	runner/mask.c \
	runner/mask.h \
	runner/matrix.c \
	runner/memcheck-child.c \
	runner/memcheck-run.c \
	runner/memcheck.c \
	runner/memcheck.h \
	runner/names.c \
	runner/names.h \
	runner/next.c \
	runner/next.h \
	runner/operate/cancel.c \
	runner/operate/delete.c \
	runner/operate/help.c \
	runner/operate/help.h \
	runner/operate/history.c \
	runner/operate/host.c \
	runner/operate/host.h \
	runner/operate/input.c \
	runner/operate/input.h \
	runner/operate/instances.c \
	runner/operate/operate.c \
	runner/operate/operate.h \
	runner/operate/options.c \
	runner/operate/options.h \
	runner/operate/patience.c \
	runner/operate/patience.h \
	runner/operate/print.c \
	runner/operate/print.h \
	runner/operate/prune.c \
	runner/operate/show.c \
	runner/operate/show.h \
	runner/operate/signals.c \
	runner/operate/signals.h \
	runner/operate/start.c \
	runner/operate/stats.c \
	runner/operate/status.c \
	runner/operate/sums.c \
	runner/operate/sums.h \
	runner/operate/sums-tell.c \
	runner/operate/sums-text.c \
	runner/operate/targets.c \
	runner/operate/targets.h \
	runner/operate/tree.c \
	runner/operate/tree.h \
	runner/operate/waits.c \
	runner/operate/waits.h \
	runner/operate/when.c \
	runner/operate/when.h \
	runner/option-row.h \
	runner/options.c \
	runner/options.h \
	runner/origin.c \
	runner/origin.h \
	runner/orphans.c \
	runner/orphans.h \
	runner/overview.c \
	runner/overview.h \
	runner/out-human.c \
	runner/out-tap.c \
	runner/out.c \
	runner/out.h \
	runner/plan.c \
	runner/plan.h \
	runner/probe.c \
	runner/progress.c \
	runner/progress.h \
	runner/remove.c \
	runner/remove.h \
	runner/repro.c \
	runner/repro.h \
	runner/request.c \
	runner/request.h \
	runner/resolve.c \
	runner/resolve.h \
	runner/results.c \
	runner/results.h \
	runner/run.h \
	runner/say.c \
	runner/say.h \
	runner/seal.c \
	runner/seal.h \
	runner/selftest.c \
	runner/selftest.h \
	runner/session.c \
	runner/settings.c \
	runner/settings.h \
	runner/slot.c \
	runner/slot.h \
	runner/starved.c \
	runner/starved.h \
	runner/store.c \
	runner/suggest.c \
	runner/suggest.h \
	runner/suppression.c \
	runner/suppressions.c \
	runner/suppressions.h \
	runner/symbols.c \
	runner/symbols.h \
	runner/totals.c \
	runner/usage.c \
	runner/usage.h \
	runner/words.c \
	runner/wrap.c \
	runner/wrap.h \
	runner/zoo.c \
	runner/zygote.c \
	runner/zygote.h \
	$(NULL)

unit_tests += \
	runner/operate/test-signals \
	runner/operate/test-when \
	runner/test-deadline \
	runner/test-findings \
	runner/test-folder \
	runner/test-judge \
	runner/test-limits \
	runner/test-mask \
	runner/test-orphans \
	runner/test-progress \
	runner/test-selftest \
	runner/test-starved \
	runner/test-suggest \
	runner/test-symbols \
	runner/test-wrap \
	$(NULL)

# ---- Valgrind's suppressions: installed to be read, and part of the command ----------------------

suppressions = \
	runner/suppressions/libc.supp \
	runner/suppressions/sqlite.supp \
	$(NULL)
suppressionsdir = $(pkgdatadir)/suppressions
dist_suppressions_DATA = $(suppressions)
nodist_runner_libdkrunner_la_SOURCES = runner/suppressions-own.c
CLEANFILES += runner/suppressions-own.c
runner/suppressions-own.c: $(suppressions) runner/suppressions.awk
	$(AM_V_GEN)$(MKDIR_P) runner
	$(AM_V_at)(cd $(srcdir) && $(AWK) -f runner/suppressions.awk $(suppressions)) > $@-t
	$(AM_V_at)mv -f $@-t $@
EXTRA_DIST += runner/suppressions.awk
