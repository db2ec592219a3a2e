# SPDX-License-Identifier: Apache-2.0
# runner/: the command durakit.  All but main.c is a library, so that its tests can use the parts.

bin_PROGRAMS += runner/durakit
runner_durakit_SOURCES = runner/main.c

noinst_LTLIBRARIES += runner/libdkrunner.la
runner_libdkrunner_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
runner_libdkrunner_la_SOURCES = \
	runner/canaries.c \
	runner/canaries.h \
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
	runner/folder.c \
	runner/folder.h \
	runner/help.c \
	runner/judge.c \
	runner/judge.h \
	runner/list.c \
	runner/mask.c \
	runner/mask.h \
	runner/matrix.c \
	runner/next.c \
	runner/next.h \
	runner/options.c \
	runner/options.h \
	runner/orphans.c \
	runner/orphans.h \
	runner/out-human.c \
	runner/out-tap.c \
	runner/out.c \
	runner/out.h \
	runner/plan.c \
	runner/plan.h \
	runner/probe.c \
	runner/repro.c \
	runner/repro.h \
	runner/resolve.c \
	runner/resolve.h \
	runner/results.c \
	runner/results.h \
	runner/run.h \
	runner/say.c \
	runner/say.h \
	runner/selftest.c \
	runner/selftest.h \
	runner/session.c \
	runner/settings.c \
	runner/settings.h \
	runner/slot.c \
	runner/slot.h \
	runner/store.c \
	runner/suggest.c \
	runner/suggest.h \
	runner/totals.c \
	runner/zoo.c \
	$(NULL)

unit_tests += \
	runner/test-deadline \
	runner/test-folder \
	runner/test-judge \
	runner/test-mask \
	runner/test-orphans \
	runner/test-selftest \
	runner/test-suggest \
	$(NULL)
