# SPDX-License-Identifier: Apache-2.0
# tests/: the tests that span folders, and how all tests run.

# The longest begin first, so that none is left to run alone at the end: TESTS puts these first.
first_tests = \
	tests/runner-selftest.sh \
	tests/valgrind-certify.sh \
	tests/valgrind.sh \
	tests/valgrind-runtime.sh \
	tests/runner-author.sh \
	tests/runner-engine.sh \
	$(NULL)
script_tests += \
	tests/style.sh \
	tests/english.sh \
	tests/width.sh \
	tests/include-table.sh \
	tests/pg-schema.sh \
	tests/exports.sh \
	tests/docs.sh \
	tests/doors.sh \
	tests/manual.sh \
	tests/mutants.sh \
	tests/mutate.sh \
	tests/completion.sh \
	tests/documented.sh \
	tests/readme.sh \
	tests/guides.sh \
	tests/try.sh \
	tests/tap-consumers.sh \
	tests/runner-admin.sh \
	tests/runner-allocations.sh \
	tests/runner-clean.sh \
	tests/runner-meddling.sh \
	tests/runner-memcheck.sh \
	tests/runner-refusals.sh \
	tests/runner-results.sh \
	tests/runner-runtime.sh \
	tests/runner-secrets.sh \
	tests/selftest-interrupted.sh \
	tests/runner-server.sh \
	tests/runner-shared-cause.sh \
	tests/runner-tap.sh \
	tests/runner-variations.sh \
	tests/zoo.sh \
	tests/zoo-hostile.sh \
	tests/bench.sh \
	tests/bootstrap.sh \
	tests/build-tree.sh \
	tests/install.sh \
	tests/examples.sh \
	tests/examples-runtime.sh \
	tests/examples-rust.sh \
	tests/examples-go.sh \
	tests/runtime-guide.sh \
	tests/lost-worker.sh \
	tests/operating.sh \
	tests/operating-pg.sh \
	tests/beside-postgres.sh \
	$(NULL)

# ---- the proofs of the ABI (tests/abi) ---------------------------------------------------------

script_tests += \
	tests/abi/golden.sh \
	tests/abi/headers.sh \
	tests/abi/versions.sh \
	$(NULL)
check_PROGRAMS += tests/abi/versions
EXTRA_DIST += \
	tests/abi/golden.c \
	tests/abi/golden.def \
	tests/abi/grown.c \
	tests/abi/layout.pl \
	tests/abi/tiny.c \
	tests/abi/update.sh \
	$(NULL)

# The layout changed on purpose: golden.def anew.
.PHONY: abi-update
abi-update:
	$(AM_V_GEN)top_srcdir='$(abs_top_srcdir)' CC='$(CC)' $(SHELL) $(top_srcdir)/tests/abi/update.sh

# ---- a store under stress (tests/stress) -------------------------------------------------------

script_tests += tests/stress.sh
check_PROGRAMS += tests/stress/stress
tests_stress_stress_SOURCES = \
	tests/stress/cut.c \
	tests/stress/drain.c \
	tests/stress/journal.c \
	tests/stress/judge.c \
	tests/stress/load.c \
	tests/stress/main.c \
	tests/stress/stress.h \
	$(NULL)

# ---- runtimes in a storm (tests/storm) ---------------------------------------------------------

script_tests += tests/runtime-storm.sh
check_PROGRAMS += tests/storm/storm
tests_storm_storm_SOURCES = \
	tests/storm/judge.c \
	tests/storm/main.c \
	tests/storm/process.c \
	tests/storm/shapes.c \
	tests/storm/storm.h \
	$(NULL)

# ---- a server that another takes the place of (tests/failover) ---------------------------------

if WITH_PG
check_PROGRAMS += tests/failover/failover
tests_failover_failover_SOURCES = \
	tests/failover/failover.h \
	tests/failover/main.c \
	tests/failover/process.c \
	$(NULL)
endif

# ---- the commands that operate a store (tests/operate) -----------------------------------------

script_tests += \
	tests/commands.sh \
	tests/commands-many.sh \
	tests/commands-environment.sh \
	tests/commands-memory.sh \
	tests/commands-delayed.sh \
	tests/commands-metrics.sh \
	tests/commands-refusals.sh \
	tests/commands-guide.sh \
	tests/commands-waiting.sh \
	$(NULL)
if WITH_PG
script_tests += \
	tests/commands-many-pg.sh \
	tests/commands-delayed-pg.sh \
	tests/commands-pg.sh \
	tests/commands-waiting-pg.sh \
	$(NULL)
endif
check_PROGRAMS += tests/operate/serve
EXTRA_DIST += tests/operate/store.sh

# ---- the driver --------------------------------------------------------------------------------

# Tests that build the tree again in other ways: make check-deep.
deep_tests = \
	tests/configure-options.sh \
	tests/runner-runtime-controls.sh \
	tests/runtime-tsan.sh \
	$(NULL)
# Tests that can take longer, and then do.
long_tests = \
	conformance/kit/test-twin \
	tests/examples.sh \
	tests/runner-selftest.sh \
	tests/runtime-storm.sh \
	tests/valgrind-certify.sh \
	$(NULL)
if WITH_SQLITE
deep_tests += tests/sqlite-tsan.sh
long_tests += tests/sqlite-stress.sh
endif
if WITH_PG
deep_tests += \
	tests/deep-pg.sh \
	tests/pg-failover.sh \
	tests/pg-runtime.sh \
	$(NULL)
long_tests += \
	providers/pg/test-cost.pg \
	tests/pg-stress.sh \
	$(NULL)
endif

check_PROGRAMS += $(unit_tests) $(server_tests)
TESTS = $(first_tests) $(script_tests) $(server_tests) $(unit_tests)
EXTRA_DIST += \
	$(first_tests) \
	$(script_tests) \
	$(deep_tests) \
	tests/README.md \
	tests/counts.sed \
	tests/include-table.awk \
	tests/lost-worker.c \
	tests/memcheck.sh \
	tests/mutate/build.py \
	tests/mutate/c_rules.py \
	tests/mutate/coverage.py \
	tests/mutate/equivalent.def \
	tests/mutate/mutants.py \
	tests/mutate/mutate.py \
	tests/mutate/source.py \
	tests/mutate/sql_rules.py \
	tests/operating-load.c \
	tests/runner-allocations.c \
	tests/runner-damage.c \
	tests/runner-ended.c \
	tests/runner-meddling.c \
	tests/runner-loud.c \
	tests/runner-mover.c \
	tests/runner-recovers.c \
	tests/runner-refusing.c \
	tests/runner-secret.c \
	tests/runner-stores.c \
	tests/standby.sh \
	tests/style.awk \
	tests/tap.sh \
	tests/timed \
	tests/try \
	tests/tsan.sh \
	tests/typed.sh \
	tests/varying.sh \
	tests/with-postgres \
	$(NULL)

# Everything a test may need to know of the build; paths are absolute, for tests change folders.
AM_TESTS_ENVIRONMENT = \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	DURAKIT='$(abs_top_builddir)/runner/durakit$(EXEEXT)'; export DURAKIT; \
	MODEL='$(abs_top_builddir)/conformance/model/.libs/model.so'; export MODEL; \
	MODEL_FULL='$(abs_top_builddir)/conformance/model/.libs/model-full.so'; export MODEL_FULL; \
	SQLITE_PLUGIN='$(abs_top_builddir)/providers/sqlite/.libs/sqlite.so'; export SQLITE_PLUGIN; \
	PG_PLUGIN='$(abs_top_builddir)/providers/pg/.libs/pg.so'; export PG_PLUGIN; \
	ZOO='$(abs_top_builddir)/conformance/fixtures/zoo'; export ZOO; \
	MAKE='$(MAKE)'; export MAKE; \
	CC='$(CC)'; export CC; \
	SANITIZER_CFLAGS='$(SANITIZER_CFLAGS)'; export SANITIZER_CFLAGS; \
	CXX='$(CXX)'; export CXX; \
	AWK='$(AWK)'; export AWK; \
	PKG_CONFIG='$(PKG_CONFIG)'; export PKG_CONFIG; \
	VALGRIND='$(VALGRIND)'; export VALGRIND; \
	RUSTC='$(RUSTC)'; export RUSTC; \
	GO='$(GO)'; export GO; \
	UNIT_TESTS='$(filter-out $(slow_under_valgrind),$(unit_tests))'; export UNIT_TESTS;

# A crash stays a signal, as it is without sanitizers, and what they find becomes one: an exit code
# would be taken for an early exit.  tap.sh leaves leaks to the unit tests.
if SANITIZERS
AM_TESTS_ENVIRONMENT += \
	ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_abort=0:abort_on_error=1; \
	export ASAN_OPTIONS; \
	UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1; export UBSAN_OPTIONS;
endif

tap_driver = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/tests/timed \
	$(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
TEST_EXTENSIONS = .sh .pg
LOG_DRIVER = $(tap_driver)
SH_LOG_DRIVER = $(tap_driver)
SH_LOG_COMPILER = $(SHELL)
# A server for each, or the one of DURAKIT_PG.
with_postgres = $(top_srcdir)/tests/with-postgres -q
PG_LOG_DRIVER = $(tap_driver)
PG_LOG_COMPILER = $(with_postgres) --tap

# One test, or some, without what the others need: make try T=core/base/test-text.
.PHONY: try unit-tests
try:
	+@$(AM_TESTS_ENVIRONMENT) \
	TRY_PROGRAMS='$(unit_tests) $(server_tests)' \
	TRY_HELPERS='$(check_PROGRAMS)' \
	TRY_SCRIPTS='$(first_tests) $(script_tests) $(deep_tests)' \
	  $(SHELL) $(top_srcdir)/tests/try $(T)
unit-tests: $(unit_tests)

.PHONY: check-valgrind check-deep conformance conformance-valgrind

# Each plugin of ours against the whole contract: reports/NAME-MODE.tap, of all even if one fails.
conformance_plugins = conformance/model/model.la
if WITH_SQLITE
conformance_plugins += providers/sqlite/sqlite.la
endif
if WITH_PG
conformance_plugins += providers/pg/pg.la
endif
conformance_run = \
	$(MKDIR_P) reports; failed=0; \
	for plugin in $(conformance_plugins); do \
	  name=`basename $$plugin .la`; \
	  report=reports/$$name-$$mode.tap; beside= options=; \
	  test $$name != pg || { beside='$(with_postgres)'; options='{kit}'; }; \
	  $$beside ./runner/durakit$(EXEEXT) $$command "./`dirname $$plugin`/.libs/$$name.so" \
	    --format tap $$options > $$report || failed=1; \
	  echo "$$report: `tail -n 1 $$report`"; \
	done; \
	exit $$failed
conformance: runner/durakit$(EXEEXT) $(conformance_plugins)
	$(AM_V_at)mode=native; command='certify --no-memcheck'; $(conformance_run)
conformance-valgrind: runner/durakit$(EXEEXT) $(conformance_plugins)
	$(AM_V_at)mode=memcheck; command='check --memcheck'; $(conformance_run)
	$(AM_V_at)mode=memcheck-runtime; command='check --memcheck --profile runtime'; \
	  $(conformance_run)
clean-local: clean-reports
.PHONY: clean-reports
clean-reports:
	$(AM_V_at)rm -rf reports mutants coverage

# ---- the plugins' sources, by certify alone (tests/mutate) --------------------------------------

# What mutate.py and coverage.py need to know of the build, a line each.
.PHONY: mutate mutate-flags coverage
source_plugins =
if WITH_SQLITE
source_plugins += sqlite
endif
if WITH_PG
source_plugins += pg
endif
sqlite_objects = $(providers_sqlite_libdksqlite_la_OBJECTS) $(providers_sqlite_sqlite_la_OBJECTS)
pg_objects = $(providers_pg_libdkpg_la_OBJECTS) $(providers_pg_pg_la_OBJECTS)
link_plugin = $(CC) $(AM_CFLAGS) $(CFLAGS) -shared $(LDFLAGS) \
	$(filter-out -module -avoid-version -shared,$(PLUGIN_FLAGS))
mutate-flags:
	@:$(info plugins $(source_plugins))
	@:$(info compile $(COMPILE))
	@:$(info link $(link_plugin))
	@:$(info sqlite-objects $(sqlite_objects))
	@:$(info sqlite-libs $(SQLITE_LIBS) -lpthread)
	@:$(info pg-objects $(pg_objects))
	@:$(info pg-libs $(PG_LIBS) -lpthread)
	@:$(info pg-beside $(with_postgres))
	@:$(info pg-options {kit})
	@:$(info pg-text $(pg_print_text))

# make mutate MUTATE='--only providers/sqlite/work.c'; all of them take days.
MUTATE =
mutate_deep = --sample 100
source_tool = top_builddir='$(abs_top_builddir)' MAKE='$(MAKE)' python3 $(top_srcdir)/tests/mutate
mutate: runner/durakit$(EXEEXT) $(conformance_plugins)
	$(AM_V_at)$(source_tool)/mutate.py $(MUTATE)
coverage: runner/durakit$(EXEEXT) $(conformance_plugins)
	$(AM_V_at)$(source_tool)/coverage.py

# What tests/valgrind*.sh leave to check-valgrind: the plans are SQLite's work mostly, and
# an outage takes its time.
slow_under_valgrind = \
	core/runtime/test-outage \
	providers/sqlite/test-cost \
	$(NULL)
# The unit tests once more under Valgrind: an error or a lost block is the exit code that fails one.
valgrind_command = $(VALGRIND) -q --error-exitcode=99 \
	--leak-check=full --errors-for-leak-kinds=definite
if WITH_VALGRIND
check-valgrind:
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(unit_tests) $(server_tests)' \
	  LOG_COMPILER='$(valgrind_command)' \
	  PG_LOG_COMPILER='$(with_postgres) --tap $(valgrind_command)'
else
check-valgrind:
	@echo 'durakit: nothing is checked: Valgrind is left out of this build, see configure' >&2
	@exit 1
endif

check-deep: all
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(deep_tests)'
	$(AM_V_at)DURAKIT_DEEP=1 $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(long_tests)'
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) check-valgrind
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) conformance-valgrind
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) mutate MUTATE='$(mutate_deep)'
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) coverage
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) distcheck
