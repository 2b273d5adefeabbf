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

extern const struct migration migration_table[];

static bool apply(struct store *s, const struct migration *m, const char *sha256, struct err *err)
{
    AUTO_FREE char *sql = xstrndup(m->start, (size_t)(m->end - m->start));
    AUTO_TX struct store *tx = s;
    if (!tx_begin(tx, TX_WRITE, err) || !store_plain(s, sql, err)) {
        return err_wrap(err, "migration %s", m->name);
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, m->name);
    param_text(&p, sha256);
    return store_run(s, QUERY(MIGRATION_ADD), &p, NULL, err) && tx_commit(s, err);
}

/* Says who keeps a migration from its locks. */
static void say_blocker(struct store *s, const struct migration *m, const struct err *why)
{
    AUTO_RESULT PGresult *r = NULL;
    struct err ignored = ERR_INIT;
    if (store_exec(s, QUERY(MIGRATION_BLOCKER), NULL, &r, &ignored) && row_count(r) > 0) {
        log_event(LOG_WARN, "migration_waits", LF_S("migration", m->name),
                  LF_I("for_pid", row_i64(r, 0, 0)), LF_S("application", row_text(r, 0, 1)),
                  LF_ERR(why));
    }
}

/* A statement that waits for an exclusive lock holds up everybody who comes after it. So it waits a
 * moment, gives way, and tries again. */
static bool apply_in_turn(struct store *s, const struct migration *m, const char *sha256,
                          struct err *err)
{
    int64_t until_us = clock_mono_us() + TRIES_FOR_US;
    for (int tries = 0;; tries++) {
        struct err why = ERR_INIT;
        if (apply(s, m, sha256, &why)) {
            return true;
        }
        if (why.code != ERR_TIMEOUT || clock_mono_us() > until_us) {
            *err = why;
            return false;
        }
        if (tries % SAY_EVERY == 0) {
            say_blocker(s, m, &why);
        }
        (void)poll(NULL, 0, PAUSE_MS);
    }
}

/* Fails when the database has a migration that this binary does not know. */
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
    if (row_count(r) > 0) {
        return err_set(err, ERR_PRECONDITION,
                       "the database has migration '%s', which this droverd does not know: "
                       "a newer one made it",
                       row_text(r, 0, 0));
    }
    return true;
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
        return apply_in_turn(s, m, sha256, err);
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
    if (!store_run(s, QUERY(MIGRATION_TABLE), NULL, NULL, err) || !none_unknown(s, table, err) ||
        !store_lock_wait(s, LOCK_WAIT_US, err)) {
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
    bool good =
        store_run(s, QUERY(MIGRATION_LOCK), NULL, NULL, err) && run_locked(s, table, &applied, err);
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
