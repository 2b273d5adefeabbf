/* Bringing a database to this binary's schema: forward only, each migration in a transaction of its
 * own, all under one advisory lock, so that many droverd may start at once. A migration that was
 * applied and differs by a byte now is refused, as is a database that is ahead of the binary. */
#pragma once
#include "common/err.h"

struct migration {
    const char *name;
    const char *start;
    const char *end;
};
/* Apply what is missing of the migrations inside the binary. *ret_applied (may be NULL): how many
 * were. ERR_PRECONDITION when an applied one was edited or is unknown to this binary. */
bool migrate_run(const char *conninfo, int *ret_applied, struct err *err) MUST_CHECK;
/* The same with a table of the caller's, ended by a row of NULLs. */
bool migrate_run_table(const char *conninfo, const struct migration *table, int *ret_applied,
                       struct err *err) MUST_CHECK;
