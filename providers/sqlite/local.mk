# SPDX-License-Identifier: Apache-2.0
# providers/sqlite/: the plugin that keeps a store in one SQLite file.  All but its descriptor is a
# convenience library, so that the tests can reach inside.

noinst_LTLIBRARIES += providers/sqlite/libdksqlite.la
providers_sqlite_libdksqlite_la_SOURCES = \
	$(provider_shared) \
	providers/sqlite/admin.c \
	providers/sqlite/admin.h \
	providers/sqlite/bell.c \
	providers/sqlite/call.c \
	providers/sqlite/commit.c \
	providers/sqlite/connection.c \
	providers/sqlite/connection.h \
	providers/sqlite/delete.c \
	providers/sqlite/group.c \
	providers/sqlite/handle.h \
	providers/sqlite/history.c \
	providers/sqlite/list.c \
	providers/sqlite/list.h \
	providers/sqlite/lockfile.c \
	providers/sqlite/lockfile.h \
	providers/sqlite/look.c \
	providers/sqlite/message.c \
	providers/sqlite/migrate.c \
	providers/sqlite/missing.c \
	providers/sqlite/page.c \
	providers/sqlite/prune.c \
	providers/sqlite/reader.c \
	providers/sqlite/release.c \
	providers/sqlite/rights.c \
	providers/sqlite/rights.h \
	providers/sqlite/schema.c \
	providers/sqlite/schema.h \
	providers/sqlite/settings.c \
	providers/sqlite/settings.h \
	providers/sqlite/shm.c \
	providers/sqlite/shm.h \
	providers/sqlite/statements.c \
	providers/sqlite/statements.def \
	providers/sqlite/statements.h \
	providers/sqlite/store.c \
	providers/sqlite/store.h \
	providers/sqlite/tables.c \
	providers/sqlite/tables.h \
	providers/sqlite/token.c \
	providers/sqlite/turn.c \
	providers/sqlite/wait.c \
	providers/sqlite/walk.c \
	providers/sqlite/why.c \
	providers/sqlite/why.h \
	providers/sqlite/work.c \
	providers/sqlite/writer.c \
	$(NULL)

pkglib_LTLIBRARIES += providers/sqlite/sqlite.la
providers_sqlite_sqlite_la_LDFLAGS = $(PLUGIN_FLAGS)
providers_sqlite_sqlite_la_LIBADD = providers/sqlite/libdksqlite.la $(SQLITE_LIBS) -lpthread
EXTRA_providers_sqlite_sqlite_la_DEPENDENCIES = $(provider_map)
providers_sqlite_sqlite_la_SOURCES = providers/sqlite/provider.c

# ---- its floor, for `make bench` ----------------------------------------------------------------

noinst_PROGRAMS += providers/sqlite/bench/floor
providers_sqlite_bench_floor_LDFLAGS = $(watch_files) $(AM_LDFLAGS)
providers/sqlite/bench/%: libraries = $(SQLITE_LIBS)

benches += bench-sqlite
bench-sqlite: runner/durakit$(EXEEXT) providers/sqlite/bench/floor$(EXEEXT) \
		providers/sqlite/sqlite.la
	runner/durakit$(EXEEXT) bench providers/sqlite/.libs/sqlite.so \
		--floor providers/sqlite/bench/floor$(EXEEXT)

# ---- tests --------------------------------------------------------------------------------------

EXTRA_DIST += providers/sqlite/fixtures/version-1.sql

# What they share: the store's files, and operations, with whether they are done.
check_LTLIBRARIES += providers/sqlite/libsqlitetest.la
providers_sqlite_libsqlitetest_la_SOURCES = \
	$(provider_test_words) \
	providers/sqlite/test-deeds.c \
	providers/sqlite/test-deeds.h \
	providers/sqlite/test-files.c \
	providers/sqlite/test-files.h \
	$(NULL)
providers/sqlite/%: libraries = \
	providers/sqlite/libsqlitetest.la \
	providers/sqlite/libdksqlite.la \
	$(with_plugin) \
	$(SQLITE_LIBS) \
	$(NULL)

# What defines functions of the C library stands in the programs that mean it.  With SQLite's system
# calls in the hands of the test:
sqlite_test_calls = \
	providers/sqlite/test-calls.c \
	providers/sqlite/test-calls.h \
	$(NULL)
# The plugin as a host uses it, and what the database and the disk are asked to do meanwhile:
sqlite_test_handle = \
	providers/sqlite/test-handle.c \
	providers/sqlite/test-handle.h \
	$(NULL)
# And instances to be looked at and removed:
sqlite_test_scene = \
	providers/sqlite/test-scene.c \
	providers/sqlite/test-scene.h \
	$(sqlite_test_handle) \
	$(NULL)

unit_tests += \
	providers/sqlite/test-cost \
	providers/sqlite/test-delete \
	providers/sqlite/test-faults \
	providers/sqlite/test-identity \
	providers/sqlite/test-killed \
	providers/sqlite/test-locked \
	providers/sqlite/test-lockfile \
	providers/sqlite/test-look \
	providers/sqlite/test-migrate \
	providers/sqlite/test-missing \
	providers/sqlite/test-moved \
	providers/sqlite/test-neighbours \
	providers/sqlite/test-prune \
	providers/sqlite/test-readers \
	providers/sqlite/test-store \
	providers/sqlite/test-stranger \
	providers/sqlite/test-sweep \
	providers/sqlite/test-trouble \
	providers/sqlite/test-why \
	$(NULL)
providers_sqlite_test_cost_SOURCES = providers/sqlite/test-cost.c $(sqlite_test_handle)
providers_sqlite_test_delete_SOURCES = providers/sqlite/test-delete.c $(sqlite_test_scene)
providers_sqlite_test_faults_SOURCES = \
	providers/sqlite/test-disk.c \
	providers/sqlite/test-disk.h \
	providers/sqlite/test-faults.c \
	$(sqlite_test_calls) \
	$(NULL)
providers_sqlite_test_identity_SOURCES = providers/sqlite/test-identity.c $(sqlite_test_handle)
providers_sqlite_test_killed_SOURCES = providers/sqlite/test-killed.c $(sqlite_test_calls)
providers_sqlite_test_locked_SOURCES = providers/sqlite/test-locked.c $(sqlite_test_calls)
providers_sqlite_test_look_SOURCES = providers/sqlite/test-look.c $(sqlite_test_scene)
providers_sqlite_test_neighbours_SOURCES = providers/sqlite/test-neighbours.c $(sqlite_test_handle)
providers_sqlite_test_prune_SOURCES = providers/sqlite/test-prune.c $(sqlite_test_scene)
providers_sqlite_test_stranger_SOURCES = providers/sqlite/test-stranger.c $(sqlite_test_handle)
providers_sqlite_test_sweep_SOURCES = \
	providers/sqlite/test-sweep.c \
	providers/sqlite/test-system.c \
	providers/sqlite/test-system.h \
	$(NULL)
# Its functions stand in for the system's.
providers_sqlite_test_sweep_LDFLAGS = -Wl,--export-dynamic $(AM_LDFLAGS)
providers_sqlite_test_trouble_SOURCES = providers/sqlite/test-trouble.c $(sqlite_test_calls)

# Defects that the kit finds, as patches of the plugin.
script_tests += tests/sqlite-patches.sh

# Under stress, and what the file is like afterwards.
script_tests += tests/sqlite-stress.sh
check_PROGRAMS += providers/sqlite/test-file
EXTRA_DIST += \
	conformance/fixtures/sqlite/cancel-by-activity-id.patch \
	conformance/fixtures/sqlite/cancel-only-unlocked-rows.patch \
	conformance/fixtures/sqlite/checkpoint-outside-lock.patch \
	conformance/fixtures/sqlite/deferred-begin.patch \
	conformance/fixtures/sqlite/delete-outside-transaction.patch \
	conformance/fixtures/sqlite/give-back-delay-ignored.patch \
	conformance/fixtures/sqlite/or-chain-delete.patch \
	conformance/fixtures/sqlite/renew-ignores-token.patch \
	conformance/fixtures/sqlite/stale-ack-after-takeover.patch \
	conformance/fixtures/sqlite/stale-commit-after-takeover.patch \
	conformance/fixtures/sqlite/timer-fire-time-ignored.patch \
	conformance/fixtures/sqlite/work-ack-ignores-affected-rows.patch \
	$(NULL)
