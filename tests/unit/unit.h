/* What unit tests share: cmocka's includes in their needed order and a few checks. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka last: it wants the four above. */
#include <cmocka.h>

#include "common/buf.h"
#include "common/str.h"

/* A view equals a C string; the texts are shown when not. */
void unit_assert_view(struct str got, const char *want, const char *file, int line);
#define assert_str_view(got, want) unit_assert_view((got), (want), __FILE__, __LINE__)
/* A whole file of the source tree (tests run from its top) into out; fails the test when it cannot.
 */
void unit_read_file(const char *path, struct buf *out);
/* Status (of waitpid) of a child that runs fn with stderr dropped and without a core file: for what
 * must end the process, such as a failed ASSERT (SIGABRT). */
int unit_child_status(void (*fn)(void));
/* fn must fail an ASSERT. */
void unit_assert_aborts(void (*fn)(void), const char *name, const char *file, int line);
#define assert_aborts(fn) unit_assert_aborts((fn), #fn, __FILE__, __LINE__)
