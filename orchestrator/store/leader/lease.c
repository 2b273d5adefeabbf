/* Leadership: an advisory lock that ends with the leader's session, and an epoch in the lease row
 * that fences the statements of a frozen leader. Every transaction of the leader locks the row FOR
 * SHARE with its epoch, so a takeover waits for it or makes it find no row. Safety depends on the
 * epoch alone; the lock and the clock only say when to try. */
#include "lease.h"
#include "queries.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"

bool lease_read(struct store *s, struct lease_info *ret, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(LEASE_READ), NULL, &r, err)) {
        return false;
    }
    if (row_count(r) != 1) {
        return err_set(err, ERR_DATABASE, "the lease table is empty: run droverd migrate");
    }
    ret->epoch = row_i64(r, 0, 0);
    ret->renewals = row_i64(r, 0, 1);
    ret->length_us = row_i64(r, 0, 2);
    ret->backend_pid = row_int(r, 0, 3);
    row_text_into(r, 0, 4, ret->holder, sizeof ret->holder);
    return true;
}

bool lease_try_lock(struct store *s, bool *ret_locked, struct err *err)
{
    if (s->leader_lock) {
        *ret_locked = true; /* advisory locks are counted: a second one would need two unlocks */
        return true;
    }
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(LEASE_TRY_LOCK), NULL, &r, err)) {
        return false;
    }
    s->leader_lock = row_bool(r, 0, 0);
    *ret_locked = s->leader_lock;
    return true;
}

bool lease_take(struct store *s, const char *holder, int64_t length_us, struct lease_taken *ret,
                struct err *err)
{
    ASSERT(s->leader_lock);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, holder);
    param_i64(&p, length_us);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(LEASE_TAKE), &p, &r, err)) {
        return false;
    }
    if (row_count(r) != 1) {
        return err_set(err, ERR_DATABASE, "the lease table is empty: run droverd migrate");
    }
    *ret = (struct lease_taken){.epoch = row_i64(r, 0, 0), .longest_us = row_i64(r, 0, 1)};
    return true;
}

/* ret->epoch 0: the lease was renewed or taken since it was read. */
static bool take_seen(struct store *s, const struct lease_info *seen, const char *holder,
                      int64_t length_us, struct lease_taken *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, holder);
    param_i64(&p, length_us);
    param_i64(&p, seen->epoch);
    param_i64(&p, seen->renewals);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(LEASE_TAKE_SEEN), &p, &r, err)) {
        return false;
    }
    *ret = (struct lease_taken){.epoch = 0};
    if (row_count(r) == 1) {
        *ret = (struct lease_taken){.epoch = row_i64(r, 0, 0), .longest_us = row_i64(r, 0, 1)};
    }
    return true;
}

bool lease_take_from_frozen(struct store *s, const struct lease_info *seen, const char *holder,
                            int64_t length_us, struct lease_taken *ret, bool *ret_taken,
                            struct err *err)
{
    ASSERT(!s->leader_lock && !tx_open(s));
    struct lease_taken got = {.epoch = 0};
    struct err first = ERR_INIT;
    bool taken = take_seen(s, seen, holder, length_us, &got, &first);
    if (!taken && first.code != ERR_TIMEOUT) {
        if (err != NULL) {
            *err = first;
        }
        return false;
    }
    if (taken && got.epoch == 0) {
        *ret_taken = false;
        return true;
    }
    /* Timed out: the frozen leader holds the row inside a transaction. Terminate its session, so
     * that it cannot commit. */
    if (!store_run(s, QUERY(LEASE_EVICT), NULL, NULL, err)) {
        return false;
    }
    if (!taken && !take_seen(s, seen, holder, length_us, &got, err)) {
        return false;
    }
    if (got.epoch == 0) {
        *ret_taken = false;
        return true;
    }
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(LEASE_LOCK), NULL, &r, err)) {
        return err_wrap(err, "epoch %lld is ours, but not the lock", (long long)got.epoch);
    }
    s->leader_lock = true;
    *ret = got;
    *ret_taken = true;
    return true;
}

bool lease_renew(struct store *s, int64_t epoch, int64_t length_us, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, epoch);
    param_i64(&p, length_us);
    int64_t n = 0;
    if (!store_run(s, QUERY(LEASE_RENEW), &p, &n, err)) {
        return false;
    }
    return n == 1 ? true : err_set(err, ERR_NOT_LEADER, "epoch %lld is over", (long long)epoch);
}

bool lease_release(struct store *s, int64_t epoch, struct err *err)
{
    ASSERT(epoch >= 0);
    if (!s->leader_lock) {
        return true;
    }
    s->leader_lock = false;
    AUTO_RESULT PGresult *r = NULL;
    return store_exec(s, QUERY(LEASE_UNLOCK), NULL, &r, err);
}

static bool must_be_on(const PGresult *r, int col, const char *name, struct err *err)
{
    if (strcmp(row_text(r, 0, col), "off") != 0) {
        return true;
    }
    return err_set(err, ERR_PRECONDITION,
                   "PostgreSQL runs with %s = off and may lose committed data; turn it on", name);
}

bool lease_check_durability(struct store *s, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(DURABILITY), NULL, &r, err)) {
        return false;
    }
    if (row_bool(r, 0, 3) || strcmp(row_text(r, 0, 4), "on") == 0) {
        return err_set(err, ERR_PRECONDITION,
                       "PostgreSQL is read-only (pg_is_in_recovery or transaction_read_only): a "
                       "leader needs the primary");
    }
    return must_be_on(r, 0, "fsync", err) && must_be_on(r, 1, "full_page_writes", err) &&
           must_be_on(r, 2, "synchronous_commit", err);
}

bool leader_begin(struct store *s, int64_t epoch, struct err *err)
{
    ASSERT(s->role == STORE_LEADER && !tx_open(s));
    s->events = false;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, epoch);
    const struct statement st[] = {{.sql = "BEGIN ISOLATION LEVEL READ COMMITTED"},
                                   {QUERY(LEASE_CHECK), &p}};
    PGresult *r[ARRAY_LEN(st)];
    if (!store_pipeline(s, st, ARRAY_LEN(st), r, err)) {
        tx_rollback(s);
        return false;
    }
    bool ours = row_count(r[1]) == 1;
    results_clear(r, ARRAY_LEN(r));
    if (!ours) {
        tx_rollback(s);
        return err_set(err, ERR_NOT_LEADER, "epoch %lld is over", (long long)epoch);
    }
    return true;
}

bool leader_commit(struct store *s, struct err *err)
{
    ASSERT(s->role == STORE_LEADER);
    return tx_commit(s, err);
}

void leader_rollback(struct store *s)
{
    tx_rollback(s);
}

bool install_id(struct store *s, char ret[static 40], struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(INSTALL_ID), NULL, &r, err)) {
        return false;
    }
    row_text_into(r, 0, 0, ret, 40);
    return true;
}
