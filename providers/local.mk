# SPDX-License-Identifier: Apache-2.0
# The reference plugins.  Each has a local.mk of its own beside its source, included here under its
# condition (WITH_SQLITE, WITH_PG).

# What both share.
provider_shared = \
	providers/shared/basics.h \
	providers/shared/mutex.h \
	providers/shared/request.c \
	providers/shared/request.h \
	providers/shared/text.c \
	providers/shared/text.h \
	$(NULL)
# What their tests share.
provider_test_words = \
	providers/testing/handle.c \
	providers/testing/handle.h \
	providers/testing/words.c \
	providers/testing/words.h \
	$(NULL)

if WITH_SQLITE
include $(top_srcdir)/providers/sqlite/local.mk
endif
if WITH_PG
include $(top_srcdir)/providers/pg/local.mk
endif

# `make bench`: each plugin beside its floor, on the disk of $TMPDIR (or /var/tmp).  It takes some
# minutes, judges nothing, and is exact only on an idle machine.
.PHONY: bench $(benches)
bench: $(benches)
