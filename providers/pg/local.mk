# SPDX-License-Identifier: Apache-2.0
# providers/pg/: the plugin that keeps stores on a PostgreSQL server.  All but its descriptor is a
# convenience library, so that the tests can reach inside.

noinst_LTLIBRARIES += providers/pg/libdkpg.la
providers_pg_libdkpg_la_SOURCES = \
	$(provider_shared) \
	providers/pg/admin.c \
	providers/pg/answers.h \
	providers/pg/bell.c \
	providers/pg/bell.h \
	providers/pg/call.c \
	providers/pg/commit.c \
	providers/pg/connect.c \
	providers/pg/connection.c \
	providers/pg/connection.h \
	providers/pg/conninfo.c \
	providers/pg/damage.c \
	providers/pg/handle.h \
	providers/pg/history.c \
	providers/pg/listener.c \
	providers/pg/message.c \
	providers/pg/migrate.c \
	providers/pg/pool.c \
	providers/pg/release.c \
	providers/pg/schema.c \
	providers/pg/schema.h \
	providers/pg/servers.c \
	providers/pg/servers.h \
	providers/pg/session.c \
	providers/pg/settings.c \
	providers/pg/settings.h \
	providers/pg/silence.c \
	providers/pg/store.c \
	providers/pg/store.h \
	providers/pg/token.c \
	providers/pg/turn.c \
	providers/pg/values.c \
	providers/pg/values.h \
	providers/pg/wait.c \
	providers/pg/why.c \
	providers/pg/why.h \
	providers/pg/work.c \
	$(NULL)
nodist_providers_pg_libdkpg_la_SOURCES = providers/pg/schema-text.c

pkglib_LTLIBRARIES += providers/pg/pg.la
providers_pg_pg_la_LDFLAGS = $(PLUGIN_FLAGS)
providers_pg_pg_la_LIBADD = providers/pg/libdkpg.la $(PG_LIBS) -lpthread
EXTRA_providers_pg_pg_la_DEPENDENCIES = $(provider_map)
providers_pg_pg_la_SOURCES = providers/pg/provider.c

# ---- tables and functions, as texts of C --------------------------------------------------------

# In the order in which they are made.
pg_schema = \
	providers/pg/schema/meta.sql \
	providers/pg/schema/tables.sql \
	providers/pg/schema/common.sql \
	providers/pg/schema/listener.sql \
	providers/pg/schema/message.sql \
	providers/pg/schema/turn.sql \
	providers/pg/schema/commit.sql \
	providers/pg/schema/work.sql \
	providers/pg/schema/release.sql \
	providers/pg/schema/damage.sql \
	providers/pg/schema/history.sql \
	providers/pg/schema/admin.sql \
	$(NULL)
# From version 1: what cannot be migrated, and the copy.
pg_migration = \
	providers/pg/schema/from-1-demands.sql \
	providers/pg/schema/from-1-copy.sql \
	$(NULL)
EXTRA_DIST += \
	providers/pg/schema/text.awk \
	$(pg_migration) \
	$(pg_schema) \
	$(NULL)
CLEANFILES += providers/pg/schema-text.c
# The numbers that SQL and C share.
pg_numbers = \
	core/include/durakit/provider.h \
	providers/pg/answers.h \
	$(NULL)

# Prints them, in a folder of the sources.
pg_print_text = \
	text () { LC_ALL=C $(AWK) -f providers/pg/schema/text.awk "$$@"; }; \
	text -v name=pg_schema_text $(pg_numbers) $(pg_schema) && \
	text -v name=pg_drop_text -v drops=1 $(pg_schema) && \
	text -v name=pg_demands_text $(pg_numbers) providers/pg/schema/from-1-demands.sql && \
	text -v name=pg_copy_text $(pg_numbers) providers/pg/schema/from-1-copy.sql

providers/pg/schema-text.c: $(pg_numbers) $(pg_schema) $(pg_migration) providers/pg/schema/text.awk
	$(AM_V_GEN)$(MKDIR_P) providers/pg; out=$$PWD/$@-t; \
	(cd '$(top_srcdir)' && $(pg_print_text)) > "$$out" && \
	mv "$$out" $@

# ---- its floor, for `make bench` ----------------------------------------------------------------

noinst_PROGRAMS += providers/pg/bench/floor
providers/pg/bench/%: libraries = $(PG_LIBS) -lpthread

# On a server of its own, which writes through to the disk; DURAKIT_PG names another.
benches += bench-pg
bench-pg: runner/durakit$(EXEEXT) providers/pg/bench/floor$(EXEEXT) providers/pg/pg.la
	TMPDIR=$${TMPDIR:-/var/tmp} WITH_POSTGRES_DURABLE=1 $(top_srcdir)/tests/with-postgres \
		runner/durakit$(EXEEXT) bench providers/pg/.libs/pg.so \
		--set-env conninfo=DURAKIT_PG --floor providers/pg/bench/floor$(EXEEXT)

# ---- tests --------------------------------------------------------------------------------------

EXTRA_DIST += providers/pg/fixtures/version-1.sql

# What they share.
check_LTLIBRARIES += providers/pg/libpgtest.la
providers_pg_libpgtest_la_SOURCES = \
	$(provider_test_words) \
	providers/pg/test-fake.c \
	providers/pg/test-fake.h \
	providers/pg/test-handle.c \
	providers/pg/test-handle.h \
	providers/pg/test-host.c \
	providers/pg/test-host.h \
	providers/pg/test-instances.c \
	providers/pg/test-instances.h \
	providers/pg/test-lone.c \
	providers/pg/test-lone.h \
	providers/pg/test-scene.c \
	providers/pg/test-scene.h \
	providers/pg/test-stores.c \
	providers/pg/test-stores.h \
	providers/pg/test-wire.c \
	providers/pg/test-wire.h \
	$(NULL)
providers/pg/%: libraries = \
	providers/pg/libpgtest.la \
	providers/pg/libdkpg.la \
	$(with_plugin) \
	$(PG_LIBS) \
	$(NULL)

# Those that need no server are unit tests: settings, values, connections, before a server that says
# what the test tells it to.  The others have names that end in .pg, and run beside a server of
# their own, or that of DURAKIT_PG.
unit_tests += \
	providers/pg/test-connection \
	providers/pg/test-limits \
	providers/pg/test-pool \
	providers/pg/test-servers \
	providers/pg/test-settings \
	providers/pg/test-silence \
	providers/pg/test-values \
	providers/pg/test-why \
	$(NULL)

# Connections and answers of a real server; what operations cost, counted at the wire and by the
# server; answers that are lost on the wire; which handles are notified, and by which.
server_tests += \
	providers/pg/test-bell.pg \
	providers/pg/test-cost.pg \
	providers/pg/test-release.pg \
	providers/pg/test-round-trips.pg \
	providers/pg/test-session.pg \
	$(NULL)

# Whose schema it is; opening, making, migrating and removing a store.
server_tests += \
	providers/pg/test-migrate.pg \
	providers/pg/test-open.pg \
	providers/pg/test-store.pg \
	$(NULL)

# Looking at instances, and removing them.
server_tests += \
	providers/pg/test-admin.pg \
	providers/pg/test-delete.pg \
	providers/pg/test-prune.pg \
	$(NULL)

# Rows that others hold, or that cannot be delivered; parts that are missing; people and
# roles that read; many at once, on few rows; waits in the server; a server that ends sessions,
# crashes, and comes back.
server_tests += \
	providers/pg/test-busy.pg \
	providers/pg/test-damage.pg \
	providers/pg/test-failover.pg \
	providers/pg/test-missing.pg \
	providers/pg/test-races.pg \
	providers/pg/test-reader.pg \
	providers/pg/test-waits.pg \
	providers/pg/test-work.pg \
	$(NULL)

# Under stress: crowds, kills, cuts and crashes.  Ways not to get a connection; a real pooler
# between; a real standby.  The whole kit against it.
script_tests += \
	tests/pg-certify.sh \
	tests/pg-connect.sh \
	tests/pg-pooler.sh \
	tests/pg-standby.sh \
	tests/pg-stress.sh \
	tests/pg-takeover.sh \
	$(NULL)
check_PROGRAMS += \
	providers/pg/test-standby \
	providers/pg/test-takeover \
	$(NULL)
