/* The database of a world: real connections to a real PostgreSQL, which are cut, refused and left
 * in the middle of transactions here, at link time around store/pg's functions. A cut is waited for
 * until the server's process is gone, so that locks are released at one instant of virtual time.
 * LISTEN is the one connection that is not real: what it would read comes as an event. */
#include "common/cleanup.h"
#include "deep_verbs.h"
#include "store/leader/lease.h"
#include "store/pg/connection_private.h"
#include "store/rows/view.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#define LOCK_WAIT_MS    "40"      /* real time: only a frozen process can hold a lock for long */
#define SHORT_WAIT_MS   "3"       /* where others hold locks: nobody releases one meanwhile */
#define IDLE_IN_TX_US   (2 * SEC) /* as session_set gives the leader */
#define NOTIFY_DELAY_US 3000
#define SPARES_MAX      8
#define STATEMENTS_MAX  100000 /* a seed needs some 12,000, one that storms for two hours 52,000 */
bool __real_store_open(const char *conninfo, enum store_role role, struct store **ret,
                       struct err *err);
bool __wrap_store_open(const char *conninfo, enum store_role role, struct store **ret,
                       struct err *err);
void __real_store_close(struct store *s);
void __wrap_store_close(struct store *s);
int __real_store_fd(const struct store *s);
int __wrap_store_fd(const struct store *s);
bool __wrap_store_notified(struct store *s, bool *ret_any, struct err *err);
bool __wrap_store_exec(struct store *s, const char *name, const char *sql, struct params *p,
                       PGresult **ret, struct err *err);
bool __real_store_exec_while(struct store *s, const char *name, const char *sql, struct params *p,
                             void (*work)(void *ctx), void *ctx, PGresult **ret, struct err *err);
bool __wrap_store_exec_while(struct store *s, const char *name, const char *sql, struct params *p,
                             void (*work)(void *ctx), void *ctx, PGresult **ret, struct err *err);
bool __real_store_run(struct store *s, const char *name, const char *sql, struct params *p,
                      int64_t *ret_n, struct err *err);
bool __wrap_store_run(struct store *s, const char *name, const char *sql, struct params *p,
                      int64_t *ret_n, struct err *err);
bool __real_store_plain(struct store *s, const char *sql, struct err *err);
bool __wrap_store_plain(struct store *s, const char *sql, struct err *err);
bool __real_store_pipeline(struct store *s, const struct statement *st, size_t n, PGresult **ret,
                           struct err *err);
bool __wrap_store_pipeline(struct store *s, const struct statement *st, size_t n, PGresult **ret,
                           struct err *err);
bool __wrap_lease_check_durability(struct store *s, struct err *err);

static struct store *spares[SPARES_MAX];
static int spares_n;

static void forget_answers(void)
{
    for (int i = 0; i < deep->procs_n; i++) {
        PQclear(deep->procs[i].try_lock_said);
        PQclear(deep->procs[i].lease_said);
        deep->procs[i].try_lock_said = deep->procs[i].lease_said = NULL;
    }
}

static void wait_gone(int pid)
{
    forget_answers();
    process_wait_gone(pid);
}

/* Lets a droverd's connection go as its end would: rolled back, without a lock. The session, whose
 * plans cost more than all that follows, waits for the next droverd that wants one like it. */
static bool spare_it(struct store *s)
{
    if (s->conn == NULL || s->role == STORE_API || PQstatus(s->conn) != CONNECTION_OK ||
        PQtransactionStatus(s->conn) == PQTRANS_ACTIVE || spares_n == SPARES_MAX) {
        return false;
    }
    PQclear(PQexec(s->conn, "ROLLBACK"));
    PQclear(PQexec(s->conn, "SELECT pg_advisory_unlock_all()"));
    if (PQstatus(s->conn) != CONNECTION_OK) {
        return false;
    }
    struct store *kept = spares[spares_n++] = xmalloc(sizeof *kept);
    *kept = *s;
    kept->dead = kept->leader_lock = kept->events = false;
    store_set_wait(kept, 0);
    s->conn = NULL;
    s->dead = true;
    s->prepared_n = 0;
    memset(s->prepared, 0, sizeof s->prepared);
    forget_answers();
    return true;
}

/* Both ends notice the cut. In every 32nd case libpq has to find out by itself. */
static void cut(struct store *s)
{
    if (deep->cuts++ % 32 == 0 || !spare_it(s)) {
        int pid = PQbackendPID(s->conn);
        (void)shutdown(PQsocket(s->conn), SHUT_RDWR);
        wait_gone(pid);
    }
}

static void keep(struct store *s, bool add)
{
    for (int i = 0; i < STORES_MAX; i++) {
        if (deep->cur->stores[i] == (add ? NULL : s)) {
            deep->cur->stores[i] = add ? s : NULL;
            return;
        }
    }
    ASSERT(!add);
}

/* The simulator's own limits in place of the role's: no real time decides anything; and each plan
 * is made once. */
static bool settle(struct store *s, struct err *err)
{
    cpu_share(PQbackendPID(s->conn));
    return __real_store_plain(s,
                              "SET statement_timeout = 0; SET lock_timeout = " LOCK_WAIT_MS
                              "; SET idle_in_transaction_session_timeout = 0; "
                              "SET plan_cache_mode = force_generic_plan",
                              err);
}

static void before(struct store *s, const char *name);
static bool lost(struct store *s, const char *name, enum harm f, struct err *err);
static bool refused(struct store *s, const char *name, bool commit, struct err *err);

static int spare_of(enum store_role role)
{
    for (int i = spares_n; i-- > 0;) {
        if (spares[i]->role == role) {
            return i;
        }
    }
    return -1;
}

/* The steps and faults of opening a session; the session itself is an old one. */
static bool open_spare(int i, struct store **ret, struct err *err)
{
    struct store *s = spares[i];
    spares[i] = spares[--spares_n];
    before(s, "session_set");
    if (refused(s, "session_set", false, err) || !__real_store_plain(s, "SELECT", err) ||
        lost(s, "session_set", FAULT_CUT_AFTER, err)) {
        __real_store_close(s);
        return false;
    }
    keep(s, true);
    *ret = s;
    return true;
}

bool __wrap_store_open(const char *conninfo, enum store_role role, struct store **ret,
                       struct err *err)
{
    struct proc *p = deep == NULL ? NULL : deep->cur;
    if (p == NULL) {
        return __real_store_open(conninfo, role, ret, err) && settle(*ret, err);
    }
    proc_step("connecting");
    if (deep->now_us < deep->db_down_until_us) {
        return err_set(err, ERR_UNAVAILABLE, "the database cannot be reached");
    }
    if (role == STORE_LISTEN_WANTED) {
        p->listen = *ret = xcalloc(1, sizeof **ret);
        return true;
    }
    int spare = spare_of(role);
    if (spare >= 0) {
        return open_spare(spare, ret, err);
    }
    if (!__real_store_open(conninfo, role, ret, err)) {
        return false;
    }
    keep(*ret, true);
    return settle(*ret, err);
}

void __wrap_store_close(struct store *s)
{
    struct proc *p = deep == NULL ? NULL : deep->cur;
    if (s != NULL && p != NULL && s == p->listen) {
        p->listen = NULL;
        free(s);
        return;
    }
    if (s != NULL && p != NULL) {
        keep(s, false);
        (void)spare_it(s);
    }
    int pid = s == NULL ? 0 : PQbackendPID(s->conn);
    __real_store_close(s);
    if (pid > 0 && p != NULL) {
        wait_gone(pid);
    }
}

int __wrap_store_fd(const struct store *s)
{
    const struct proc *p = deep == NULL ? NULL : deep->cur;
    return p != NULL && s == p->listen ? DEEP_LISTEN_FD + p->id : __real_store_fd(s);
}

bool __wrap_store_notified(struct store *s, bool *ret_any, struct err *err)
{
    struct proc *p = deep->cur;
    ASSERT(s == p->listen);
    *ret_any = p->notified;
    p->notified = false;
    return deep->now_us < deep->db_down_until_us
               ? err_set(err, ERR_UNAVAILABLE, "listening connection lost")
               : true;
}

/* PostgreSQL runs without fsync here, which a real leader refuses; there is no power failure
 * here. */
bool __wrap_lease_check_durability(struct store *s, struct err *err)
{
    (void)s;
    (void)err;
    return true;
}

void store_proc_gone(struct proc *p)
{
    for (int i = 0; i < STORES_MAX; i++) {
        if (p->stores[i] != NULL) {
            cut(p->stores[i]);
            p->stores[i] = NULL;
        }
    }
    p->listen = NULL;
}

void store_sessions_end(void)
{
    for (int i = 0; i < deep->procs_n; i++) {
        struct proc *p = &deep->procs[i];
        for (int k = 0; k < STORES_MAX && p->up; k++) {
            if (p->stores[k] != NULL && !p->stores[k]->dead) {
                cut(p->stores[k]);
            }
        }
    }
    forget_answers();
}

static void notified(void *ctx, int64_t arg)
{
    (void)ctx;
    (void)arg;
    for (int i = 0; i < deep->procs_n; i++) {
        proc_notify(&deep->procs[i]);
    }
}

void store_notify_all(void)
{
    event_at(deep->now_us + NOTIFY_DELAY_US, notified, NULL, 0);
}

static void idle_too_long(void *ctx, int64_t life)
{
    struct proc *p = ctx;
    if (!p->up || p->life != (uint32_t)life || deep->now_us >= p->frozen_until_us) {
        return;
    }
    for (int i = 0; i < STORES_MAX; i++) {
        struct store *s = p->stores[i];
        if (s != NULL && !s->dead && PQtransactionStatus(s->conn) != PQTRANS_IDLE) {
            trace("its open transaction is ended by the server");
            int pid = PQbackendPID(s->conn);
            sql_do("SELECT pg_terminate_backend(%d)", pid);
            wait_gone(pid);
        }
    }
}

void store_frozen(struct proc *p)
{
    event_at(deep->now_us + IDLE_IN_TX_US, idle_too_long, p, p->life);
}

static bool ours(const struct store *s)
{
    return deep != NULL && deep->cur != NULL && !s->dead;
}

static bool is_take(const char *name)
{
    return strncmp(name, "lease_take", 10) == 0;
}

/* People act between two transactions. From lease_take on a takeover is incomplete until it
 * holds the lock and the sessions. */
static void before_lease(const char *name)
{
    struct proc *p = deep->cur;
    bool begins = strcmp(name, "lease_check") == 0, renews = strcmp(name, "lease_renew") == 0;
    if (begins) {
        people_between(p);
    }
    if (begins || renews) {
        lease_begins(p);
    }
    if (renews || is_take(name)) {
        lease_asked(p);
    }
    bool takeover =
        is_take(name) || strcmp(name, "lease_evict") == 0 || strcmp(name, "lease_lock") == 0;
    if (takeover && fault(FAULT_TAKEOVER_BREAKS)) {
        if (rng_chance(&deep->rng_time, 0.5)) {
            proc_die_here(name);
        }
        proc_freeze_here(name);
    }
}

static void before(struct store *s, const char *name)
{
    if (ours(s)) {
        if (strncmp(name, "lease_", 6) == 0) {
            before_lease(name);
        } else if (deep->cur->takes && strcmp(name, "view_attempts") == 0) {
            deep->cur->takes = false;
            deep->cur->loaded = true;
        }
        seldom_moved(name);
        proc_step(name);
        int64_t most = (int64_t)STATEMENTS_MAX * MAX(1, 2 * deep->days);
        if (strncmp(name, "lease_", 6) != 0 && ++deep->statements == most) {
            wrong("I18", "%lld statements, and no end: it turns in a circle", (long long)most);
        }
        bool commit = strcmp(name, "COMMIT") == 0;
        if (deep->now_us < deep->db_down_until_us || fault(FAULT_CUT_BEFORE) ||
            (commit && fault(FAULT_CUT_AT_COMMIT))) {
            trace("cut before %s", name);
            cut(s);
        }
    }
}

/* True: the statement was executed and its answer is lost. */
static bool lost(struct store *s, const char *name, enum harm f, struct err *err)
{
    if (!ours(s) || !fault(f)) {
        return false;
    }
    trace("cut after %s", name);
    cut(s);
    s->dead = true;
    (void)err_set(err, ERR_UNAVAILABLE, "database: %s: no answer", name);
    return true;
}

/* A failed statement is real: the transaction is aborted. ROLLBACK always works. */
static bool refused(struct store *s, const char *name, bool commit, struct err *err)
{
    static const char *const states[] = {"55P03", "57014", "53100", "40P01", "22003"};
    static const char *const commit_states[] = {"53100", "40001"};
    enum harm f = commit ? FAULT_COMMIT_REFUSED : query_harm(name);
    struct rng *r = &deep->rng_fault[f];
    char sql[128];
    if (!ours(s) || s->role != STORE_LEADER || strcmp(name, "ROLLBACK") == 0 || !fault(f)) {
        return false;
    }
    const char *state = commit ? commit_states[rng_below(r, ARRAY_LEN(commit_states))]
                               : states[rng_below(r, ARRAY_LEN(states))];
    trace("%s fails: %s", name, state);
    (void)snprintf(sql, sizeof sql, "DO $$ BEGIN RAISE 'simulated' USING ERRCODE = '%s'; END $$",
                   state);
    return !__real_store_plain(s, sql, err);
}

static void wait_evicted(const struct store *s)
{
    int pid = PQbackendPID(s->conn);
    while (sql_i64(0,
                   "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND "
                   "objsubid = 1 AND pid <> %d AND database = (SELECT oid FROM pg_database WHERE "
                   "datname = current_database())",
                   pid) > 0) {
        const struct timespec pause = {.tv_nsec = 200000};
        (void)nanosleep(&pause, NULL);
    }
}

/* A standby repeats these two queries. While no lock was released and no lease changed, the last
 * answer is reused. */
static PGresult **standing_answer(const struct store *s, const char *name)
{
    if (!ours(s) || s->leader_lock) {
        return NULL;
    }
    return strcmp(name, "lease_try_lock") == 0 ? &deep->cur->try_lock_said
           : strcmp(name, "lease_read") == 0   ? &deep->cur->lease_said
                                               : NULL;
}

static bool answer(struct store *s, const char *name, const char *sql, struct params *p,
                   void (*work)(void *ctx), void *ctx, PGresult **ret, struct err *err)
{
    PGresult **said = standing_answer(s, name);
    if (said != NULL && *said != NULL && PQstatus(s->conn) == CONNECTION_OK) {
        *ret = PQcopyResult(*said, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
        return true;
    }
    if (!__real_store_exec_while(s, name, sql, p, work, ctx, ret, err)) {
        locks_refused(name, err);
        return false;
    }
    if (ours(s) && is_take(name) && row_count(*ret) == 1) {
        lease_taken(deep->cur, row_i64(*ret, 0, 0), s->leader_lock);
    }
    if (said != NULL && !(strcmp(name, "lease_try_lock") == 0 && row_bool(*ret, 0, 0))) {
        *said = PQcopyResult(*ret, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
    } else if (ours(s) && strncmp(name, "lease_", 6) == 0) {
        forget_answers();
    }
    return true;
}

static void no_work(UNUSED void *ctx)
{
}

bool __wrap_store_exec(struct store *s, const char *name, const char *sql, struct params *p,
                       PGresult **ret, struct err *err)
{
    return __wrap_store_exec_while(s, name, sql, p, no_work, NULL, ret, err);
}

bool __wrap_store_exec_while(struct store *s, const char *name, const char *sql, struct params *p,
                             void (*work)(void *ctx), void *ctx, PGresult **ret, struct err *err)
{
    before(s, name);
    if (refused(s, name, false, err) || !answer(s, name, sql, p, work, ctx, ret, err)) {
        return false;
    }
    if (lost(s, name, FAULT_CUT_AFTER, err)) {
        PQclear(*ret);
        *ret = NULL;
        return false;
    }
    return true;
}

bool __wrap_store_run(struct store *s, const char *name, const char *sql, struct params *p,
                      int64_t *ret_n, struct err *err)
{
    if (deep != NULL &&
        strcmp(name, "api_bulk_timeout") == 0) { /* no real time, as settle() says */
        return true;
    }
    before(s, name);
    if (refused(s, name, false, err)) {
        return false;
    }
    if (!__real_store_run(s, name, sql, p, ret_n, err)) {
        locks_refused(name, err);
        return false;
    }
    if (ours(s) && deep->locks && strcmp(name, "session_set") == 0 &&
        !__real_store_plain(s, "SET lock_timeout = " SHORT_WAIT_MS, err)) {
        return false;
    }
    if (ours(s) && strncmp(name, "lease_", 6) == 0) {
        forget_answers();
        if (strcmp(name, "lease_evict") == 0) {
            wait_evicted(s);
        } else if (strcmp(name, "lease_renew") == 0 && *ret_n == 1) {
            lease_renewed(deep->cur);
        }
    }
    return !lost(s, name, FAULT_CUT_AFTER, err);
}

/* Alone or behind a NOTIFY; BEGIN ... READ COMMITTED is none. */
static bool is_commit(const char *sql)
{
    size_t n = strlen(sql), word = strlen("COMMIT");
    return n >= word && strcmp(sql + n - word, "COMMIT") == 0;
}

/* COMMIT without the NOTIFY before it: no connection listens, and NOTIFY costs as much as
 * COMMIT. */
bool __wrap_store_plain(struct store *s, const char *sql, struct err *err)
{
    bool commit = is_commit(sql);
    bool listed = commit && deep != NULL && deep->cur == NULL;
    if (listed && deep->listing_breaks == LISTING_COMMIT_FAILS) {
        return err_set(err, ERR_UNAVAILABLE, "no answer to the COMMIT of a listing");
    }
    before(s, commit ? "COMMIT" : sql);
    if (refused(s, commit ? "COMMIT" : sql, commit, err) ||
        !__real_store_plain(s, commit ? "COMMIT" : sql, err)) {
        return false;
    }
    if (commit && ours(s) && s->role == STORE_LEADER) {
        lease_committed(deep->cur);
    }
    if (commit && deep != NULL && deep->cur == NULL) {
        store_notify_all();
    }
    if (listed && deep != NULL && deep->listing_breaks == LISTING_ANSWER_LOST) {
        return err_set(err, ERR_UNAVAILABLE, "the COMMIT of a listing is done, its answer lost");
    }
    if (commit && ours(s)) {
        proc_step("COMMIT's answer");
    }
    return !lost(s, commit ? "COMMIT" : sql, commit ? FAULT_CUT_COMMIT : FAULT_CUT_AFTER, err);
}

bool __wrap_store_pipeline(struct store *s, const struct statement *st, size_t n, PGresult **ret,
                           struct err *err)
{
    const char *name = st[n - 1].name != NULL ? st[n - 1].name : "statements";
    before(s, name);
    if (refused(s, name, false, err)) {
        memset(ret, 0, n * sizeof(PGresult *));
        return false;
    }
    if (!__real_store_pipeline(s, st, n, ret, err)) {
        locks_refused(name, err);
        return false;
    }
    if (lost(s, name, FAULT_CUT_AFTER, err)) {
        results_clear(ret, n);
        memset(ret, 0, n * sizeof(PGresult *));
        return false;
    }
    return true;
}

/* The statements of other worlds, whose texts have names of their own (deep_figures.c). */
static void forget_statements(struct store *s)
{
    PQclear(PQexec(s->conn, "DEALLOCATE ALL"));
    for (size_t i = 0; i < PREPARED_SLOTS; i++) {
        free(s->prepared[i]);
        s->prepared[i] = NULL;
    }
    s->prepared_n = 0;
}

/* One connection for all worlds of this process, as the spare ones are. */
void store_world_open(const char *conninfo)
{
    static struct store *api;
    struct err err = ERR_INIT;
    (void)snprintf(deep->conninfo, sizeof deep->conninfo, "%s", conninfo);
    if (api == NULL &&
        (!__real_store_open(conninfo, STORE_API, &api, &err) || !settle(api, &err))) {
        deep_die("PostgreSQL: %s", err.message);
    }
    if (api->prepared_n > PREPARED_SLOTS / 4) {
        forget_statements(api);
    }
    deep->api = api;
}

void store_world_close(void)
{
    for (int i = 0; i < deep->procs_n; i++) {
        for (int k = 0; k < STORES_MAX; k++) {
            struct store *s = deep->procs[i].stores[k];
            if (s != NULL && !spare_it(s)) {
                int pid = PQbackendPID(s->conn);
                __real_store_close(s);
                wait_gone(pid);
            }
        }
    }
    forget_answers();
}
