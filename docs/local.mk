# SPDX-License-Identifier: Apache-2.0
# The documents.  docs/contract.md is made from the tables; it is committed, so that it can be read
# without a build, and a test holds that it is what the tables say.

EXTRA_DIST += \
	docs/abi.md \
	docs/commands.md \
	docs/migration-from-abi-1.md \
	docs/operating.md \
	docs/postgresql.md \
	docs/provider-implementation-guide.md \
	docs/provider-testing-guide.md \
	docs/runtime.md \
	docs/why-deletion.md \
	$(NULL)

.PHONY: docs
docs: conformance/contract/gen-contract$(EXEEXT)
	$(AM_V_GEN)conformance/contract/gen-contract$(EXEEXT) > $(srcdir)/docs/contract.md-t
	$(AM_V_at)mv $(srcdir)/docs/contract.md-t $(srcdir)/docs/contract.md

# What is tested by what, installed with the pages that it links to.  A clause without a check, or a
# test of the papers without an answer, ends the build.
dist_doc_DATA = \
	docs/contract.md \
	docs/papers.md \
	$(NULL)
doc_DATA = docs/coverage.md
docs/coverage.md: runner/gen-coverage$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) docs && runner/gen-coverage$(EXEEXT) > $@-t
	$(AM_V_at)mv $@-t $@
CLEANFILES += docs/coverage.md docs/coverage.md-t

# ---- the manual: a page for the command, and one for each of its commands ------------------------

# Made from what --help says.  They are in the tarball, so that a build for another machine, which
# cannot run gen-manual, has them: hence they depend on what they are made from, and on gen-manual
# only as far as it has to be there.
dist_man_MANS = \
	docs/man/durakit.1 \
	docs/man/durakit-bench.1 \
	docs/man/durakit-cancel.1 \
	docs/man/durakit-certify.1 \
	docs/man/durakit-check.1 \
	docs/man/durakit-clean.1 \
	docs/man/durakit-delete.1 \
	docs/man/durakit-enqueue.1 \
	docs/man/durakit-explain.1 \
	docs/man/durakit-history.1 \
	docs/man/durakit-instances.1 \
	docs/man/durakit-list.1 \
	docs/man/durakit-probe.1 \
	docs/man/durakit-prune.1 \
	docs/man/durakit-raise.1 \
	docs/man/durakit-repro.1 \
	docs/man/durakit-selftest.1 \
	docs/man/durakit-start.1 \
	docs/man/durakit-stats.1 \
	docs/man/durakit-status.1 \
	docs/man/durakit-wait.1 \
	$(NULL)
manual_sources = \
	conformance/checks/topics.c \
	conformance/checks/topics.def \
	configure.ac \
	runner/gen-manual.c \
	runner/cli/help.c \
	runner/cli/operate-help.c \
	runner/cli/operate-options.c \
	runner/cli/options.c \
	$(NULL)
$(dist_man_MANS): $(manual_sources) | runner/gen-manual$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) docs/man
	$(AM_V_at)runner/gen-manual$(EXEEXT) $$(basename $@ .1) > $@-t
	$(AM_V_at)mv -f $@-t $@
MAINTAINERCLEANFILES = $(dist_man_MANS)

# ---- completion for bash ------------------------------------------------------------------------

# Below our own prefix, where bash-completion looks too; its own folder may belong to the system.
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = completions/durakit
