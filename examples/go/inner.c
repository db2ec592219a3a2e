/* SPDX-License-Identifier: 0BSD */
/* minimal.c with another name of its entry; the Makefile says where it is. */
#define durakit_provider_2 minimal_provider
#include <minimal.c>
