/* Schema migrations, embedded by sql/migrations.awk. */
#include "migrate.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "queries.h"
#include "query.h"
#include "tx.h"
#include <poll.h>

#define MIGRATIONS_MAX 1000
#define LOCK_WAIT_US   (200 * USEC_PER_MSEC) /* so long at most does anybody queue behind us */
#define PAUSE_MS       400                   /* and so long they go on before the next try */
#define TRIES_FOR_US   (600 * USEC_PER_SEC)
#define SAY_EVERY      10 /* tries */
#define LOCK_PAUSE_MS  50
#define LOCK_SAY_EVERY 40 /* tries, until another droverd has migrated */
#define ADDITIVE       "-- additive: "

extern const struct migration migration_table[];

/* What is done again and again until it gets its locks. */
struct turn {
    const char *what;           /* for the log */
    const struct migration *of; /* NULL: the column `additive` of our own table */
    const char *sha256;
};

static bool is_additive(const struct migration *m)
{
    return str_starts((struct str){m->start, (size_t)(m->end - m->start)}, ADDITIVE);
}

static bool apply(struct store *s, const struct turn *t, struct err *err)
{
    const struct migration *m = t->of;
    if (m == NULL) {
        return store_run(s, QUERY(MIGRATION_COLUMN), NULL, NULL, err);
    }
    AUTO_FREE char *sql = xstrndup(m->start, (size_t)(m->end - m->start));
    AUTO_TX struct store *tx = s;
    if (!tx_begin(tx, TX_WRITE, err) || !store_plain(s, sql, err)) {
        return err_wrap(err, "migration %s", m->name);
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, m->name);
    param_text(&p, t->sha256);
    param_bool(&p, is_additive(m));
    return store_run(s, QUERY(MIGRATION_ADD), &p, NULL, err) && tx_commit(s, err);
}

/* Logs the process in the first row of r, if there is one, as what `what` waits for. */
static void say_pid(const PGresult *r, const char *what)
{
    if (row_count(r) > 0) {
        log_event(LOG_WARN, "migration_waits", LF_S("migration", what),
                  LF_I("for_pid", row_i64(r, 0, 0)), LF_S("application", row_text(r, 0, 1)));
    }
}

static void say_blocker(struct store *s, const struct turn *t)
{
    AUTO_RESULT PGresult *r = NULL;
    struct err ignored = ERR_INIT;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    if (t->of != NULL) {
        param_str(&p, (struct str){t->of->start, (size_t)(t->of->end - t->of->start)});
    } else {
        param_text(&p, SQL_MIGRATION_COLUMN);
    }
    if (store_exec(s, QUERY(MIGRATION_BLOCKER), &p, &r, &ignored)) {
        say_pid(r, t->what);
    }
}

/* A statement that waits for an exclusive lock holds up everybody who comes after it. So it waits a
 * moment, gives way, and tries again. */
static bool apply_in_turn(struct store *s, const struct turn *t, struct err *err)
{
    int64_t until_us = clock_mono_us() + TRIES_FOR_US;
    for (int tries = 0;; tries++) {
        struct err why = ERR_INIT;
        if (apply(s, t, &why)) {
            return true;
        }
        if (why.code != ERR_TIMEOUT || clock_mono_us() > until_us) {
            *err = why;
            return false;
        }
        if (tries % SAY_EVERY == 0) {
            say_blocker(s, t);
        }
        (void)poll(NULL, 0, PAUSE_MS);
    }
}

/* Waits for another droverd that migrates, and says for which. */
static bool lock_take(struct store *s, struct err *err)
{
    for (int tries = 0;; tries++) {
        AUTO_RESULT PGresult *r = NULL;
        if (!store_exec(s, QUERY(MIGRATION_LOCK), NULL, &r, err)) {
            return false;
        }
        if (row_bool(r, 0, 0)) {
            return true;
        }
        if (tries % LOCK_SAY_EVERY == LOCK_SAY_EVERY - 1) {
            AUTO_RESULT PGresult *holder = NULL;
            if (!store_exec(s, QUERY(MIGRATION_LOCK_HOLDER), NULL, &holder, err)) {
                return false;
            }
            say_pid(holder, "all");
        }
        (void)poll(NULL, 0, LOCK_PAUSE_MS);
    }
}

/* Fails when the database has a migration that this binary does not know and that is not additive.
 */
static bool none_unknown(struct store *s, const struct migration *table, struct err *err)
{
    const char *names[MIGRATIONS_MAX];
    size_t n = 0;
    for (; table[n].name != NULL; n++) {
        ASSERT(n < MIGRATIONS_MAX);
        names[n] = table[n].name;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text_array(&p, names, n);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(MIGRATION_UNKNOWN), &p, &r, err)) {
        return false;
    }
    if (!row_null(r, 0, 2)) {
        return err_set(err, ERR_PRECONDITION,
                       "the database has migration '%s' of a newer droverd, which is not additive: "
                       "start the newer droverd, or restore a backup made before it",
                       row_text(r, 0, 2));
    }
    if (row_i64(r, 0, 0) > 0) {
        log_event(LOG_WARN, "schema_newer", LF_I("unknown_migrations", row_i64(r, 0, 0)),
                  LF_S("newest", row_text(r, 0, 1)));
    }
    return true;
}

static bool column_ensure(struct store *s, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(MIGRATION_COLUMN_MISSING), NULL, &r, err)) {
        return false;
    }
    const struct turn t = {.what = "additive"};
    return !row_bool(r, 0, 0) || apply_in_turn(s, &t, err);
}

static bool step(struct store *s, const struct migration *m, int *applied, struct err *err)
{
    char sha256[SHA256_HEX_N];
    hash_sha256_hex(m->start, (size_t)(m->end - m->start), sha256);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, m->name);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(MIGRATION_GET), &p, &r, err)) {
        return false;
    }
    if (row_count(r) == 0) {
        ++*applied;
        const struct turn t = {.what = m->name, .of = m, .sha256 = sha256};
        return apply_in_turn(s, &t, err);
    }
    if (strcmp(row_text(r, 0, 0), sha256) != 0) {
        return err_set(
            err, ERR_PRECONDITION,
            "migration '%s' was edited after it was applied; add a new migration instead", m->name);
    }
    return true;
}

static bool run_locked(struct store *s, const struct migration *table, int *applied,
                       struct err *err)
{
    if (!store_lock_wait(s, LOCK_WAIT_US, err) ||
        !store_run(s, QUERY(MIGRATION_TABLE), NULL, NULL, err) || !column_ensure(s, err) ||
        !none_unknown(s, table, err)) {
        return false;
    }
    for (size_t i = 0; table[i].name != NULL; i++) {
        if (!step(s, &table[i], applied, err)) {
            return false;
        }
    }
    return true;
}

bool migrate_run_table(const char *conninfo, const struct migration *table, int *ret_applied,
                       struct err *err)
{
    struct store *s = NULL;
    if (!store_open(conninfo, STORE_ADMIN, &s, err)) {
        return false;
    }
    /* The lock belongs to the session: closing the connection releases it on every path. */
    int applied = 0;
    bool good = lock_take(s, err) && run_locked(s, table, &applied, err);
    store_close(s);
    if (good && ret_applied != NULL) {
        *ret_applied = applied;
    }
    return good;
}

bool migrate_run(const char *conninfo, int *ret_applied, struct err *err)
{
    return migrate_run_table(conninfo, migration_table, ret_applied, err);
}
