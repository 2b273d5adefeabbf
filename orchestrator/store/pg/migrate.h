/* Schema migrations, forward only: each in its own transaction, all under one advisory lock, so
 * that several droverd may start at once. A database with an applied migration that was edited
 * since is refused.
 *
 * A migration is additive when its first line begins with "-- additive: ": the release before can
 * run and start on what it makes. Which ones are is kept with the applied ones, so a binary starts
 * on the schema of a newer one, with a warning, as long as all migrations that it does not know
 * are additive.
 *
 * A migration waits 200 ms for a lock and then gives way to those behind it, for 10 minutes at most
 * (ERR_TIMEOUT); the log says which pid it waits for. */
#pragma once
#include "common/err.h"

struct migration {
    const char *name;
    const char *start;
    const char *end;
};
/* Apply the missing migrations. *ret_applied (may be NULL): their number. ERR_PRECONDITION when an
 * applied one was edited, or is unknown to this binary and not additive. */
bool migrate_run(const char *conninfo, int *ret_applied, struct err *err) MUST_CHECK;
/* The same with the caller's table, terminated by a row of NULLs. */
bool migrate_run_table(const char *conninfo, const struct migration *table, int *ret_applied,
                       struct err *err) MUST_CHECK;
