# SPDX-License-Identifier: Apache-2.0
# core/: the public headers, the small helpers, and the host library libdurakit.

durakit_includedir = $(includedir)/durakit
durakit_include_HEADERS += \
	core/include/durakit/admin.h \
	core/include/durakit/clock.h \
	core/include/durakit/host.h \
	core/include/durakit/provider.h \
	$(NULL)

# The command and the tests link these directly (and core/libdkruntime.la), so that each is one real
# executable in the build folder, without libtool's wrapper; libdurakit.la is what is installed for
# hosts.
noinst_LTLIBRARIES += \
	core/libdkbase.la \
	core/libdkplugin.la \
	$(NULL)
core_libdkbase_la_SOURCES = \
	core/base/arena.c \
	core/base/arena.h \
	core/base/bytes.h \
	core/base/checksum.c \
	core/base/checksum.h \
	core/base/grow.h \
	core/base/lock.h \
	core/base/names.c \
	core/base/names.h \
	core/base/sat.h \
	core/base/text.c \
	core/base/text.h \
	core/base/utf8.c \
	core/base/utf8.h \
	$(NULL)

# Visible, so that the list of symbols below decides what libdurakit exports.
core_libdkplugin_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default
core_libdkplugin_la_LIBADD = core/libdkbase.la
core_libdkplugin_la_SOURCES = \
	core/plugin/admin.c \
	core/plugin/call.c \
	core/plugin/call.h \
	core/plugin/caller.c \
	core/plugin/canceller.c \
	core/plugin/clock.c \
	core/plugin/descriptor.c \
	core/plugin/elf.c \
	core/plugin/field.c \
	core/plugin/field.h \
	core/plugin/library.h \
	core/plugin/loader.c \
	core/plugin/look.c \
	core/plugin/look.h \
	core/plugin/memory.c \
	core/plugin/memory.h \
	core/plugin/operations.c \
	core/plugin/overdue.c \
	core/plugin/process.c \
	core/plugin/process.h \
	core/plugin/refusal.c \
	core/plugin/refusal.h \
	core/plugin/request.c \
	core/plugin/request.h \
	core/plugin/serialise.c \
	core/plugin/serialise.h \
	core/plugin/settings.c \
	core/plugin/settings.h \
	core/plugin/sink-admin.c \
	core/plugin/sink.c \
	core/plugin/sink.h \
	core/plugin/status.c \
	core/plugin/status.h \
	core/plugin/store.c \
	core/plugin/store.h \
	core/plugin/table.c \
	core/plugin/virtual.c \
	$(NULL)

lib_LTLIBRARIES += libdurakit.la
libdurakit_la_SOURCES =
libdurakit_la_LIBADD = core/libdkruntime.la -lpthread
libdurakit_la_LDFLAGS = \
	-version-info 0:0:0 \
	-no-undefined \
	-export-symbols $(srcdir)/core/libdurakit.syms \
	$(PLUGIN_LDFLAGS) \
	$(AM_LDFLAGS) \
	$(NULL)
EXTRA_libdurakit_la_DEPENDENCIES = core/libdurakit.syms
EXTRA_DIST += core/libdurakit.syms

unit_tests += \
	core/base/test-arena \
	core/base/test-checksum \
	core/base/test-lock \
	core/base/test-text \
	core/base/test-utf8 \
	core/plugin/test-admin \
	core/plugin/test-clock \
	core/plugin/test-close \
	core/plugin/test-duplicate \
	core/plugin/test-host \
	core/plugin/test-loader \
	core/plugin/test-memory \
	core/plugin/test-refusals \
	core/plugin/test-settings \
	core/plugin/test-table \
	core/plugin/test-upcalls \
	core/plugin/test-violations \
	$(NULL)

# A provider inside of the test, which does what the test tells it.
check_LTLIBRARIES += core/plugin/libtesting.la
core_plugin_libtesting_la_SOURCES = core/plugin/testing/puppet.c core/plugin/testing/puppet.h
# So that it can close a store at the one moment that matters.
core_plugin_test_close_LDFLAGS = -Wl,--wrap=dk_store_remove_call $(AM_LDFLAGS)

# A file for test-loader; -rpath makes libtool build a shared object although nobody installs it.
check_LTLIBRARIES += core/plugin/loadable.la
core_plugin_loadable_la_SOURCES = core/plugin/testing/loadable.c core/plugin/testing/stub.h
core_plugin_loadable_la_LIBADD =
core_plugin_loadable_la_LDFLAGS = \
	-module -avoid-version -shared -rpath $(abs_builddir) \
	$(AM_LDFLAGS) \
	$(NULL)
