# SPDX-License-Identifier: Apache-2.0
# The documents.  docs/contract.md is made from the clauses; it is committed, so that it can be read
# without a build, and a test holds that it is what the clauses say.

EXTRA_DIST += \
	docs/abi.md \
	docs/contract.md \
	docs/migration-from-abi-1.md \
	$(NULL)

.PHONY: docs
docs: conformance/contract/gen-contract$(EXEEXT)
	$(AM_V_GEN)conformance/contract/gen-contract$(EXEEXT) > $(srcdir)/docs/contract.md-t
	$(AM_V_at)mv $(srcdir)/docs/contract.md-t $(srcdir)/docs/contract.md
