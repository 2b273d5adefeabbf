/* The cluster, its databases, and operations on them from outside. */
#include "pg_fixture.h"
#include "common/clock.h"
#include "common/hash.h"
#include "store/leader/attempts.h"
#include "store/leader/lease.h"
#include "store/pg/migrate.h"
#include "store/pg/private_cluster.h"
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char cluster_dir[256];
static bool alone; /* this program started the cluster */
static char admin[PRIVATE_CLUSTER_CONNINFO_MAX];
static pid_t owner;

#define DIE(...)                                                                                   \
    do {                                                                                           \
        (void)fprintf(stderr, __VA_ARGS__);                                                        \
        (void)fputc('\n', stderr);                                                                 \
        exit(1);                                                                                   \
    } while (0)

static void tear_down(void)
{
    if (getpid() != owner || cluster_dir[0] == '\0') {
        return; /* a forked child */
    }
    struct err err = ERR_INIT;
    if (!private_cluster_stop(cluster_dir, PRIVATE_CLUSTER_IMMEDIATE, &err)) {
        (void)fprintf(stderr, "# %s\n", err.message);
    }
    AUTO_FREE char *rm = xasprintf("rm -rf '%s'", cluster_dir);
    if (system(rm) != 0) {
        (void)fprintf(stderr, "# cannot remove %s\n", cluster_dir);
    }
}

void pg_fixture_start(void)
{
    struct err err = ERR_INIT;
    const char *shared = alone ? NULL : getenv("DROVER_TEST_CLUSTER");
    if (cluster_dir[0] == '\0' && shared != NULL) {
        (void)snprintf(cluster_dir, sizeof cluster_dir, "%s", shared);
    } else if (cluster_dir[0] == '\0') {
        (void)mkdir("build", 0755);
        (void)mkdir("build/tests", 0755);
        (void)snprintf(cluster_dir, sizeof cluster_dir, "build/tests/pg.XXXXXX");
        if (mkdtemp(cluster_dir) == NULL || chmod(cluster_dir, 0755) != 0) {
            DIE("cannot make %s", cluster_dir);
        }
        owner = getpid();
        /* OpenSSL cleans up at exit, too: initialise it first, so that its cleanup runs after
         * ours. */
        uint8_t unused[32];
        hash_sha256("", 0, unused);
        (void)atexit(tear_down);
    }
    if (!private_cluster_start(cluster_dir, admin, sizeof admin, &err)) {
        DIE("PostgreSQL: %s", err.message);
    }
}

void pg_fixture_alone(void)
{
    ASSERT(cluster_dir[0] == '\0');
    alone = true;
}

const char *pg_fixture_admin(void)
{
    pg_fixture_start();
    return admin;
}

static void create_database(char *ret, size_t size, const char *template)
{
    static int made;
    pg_fixture_start();
    made++;
    pg_sql(admin, "CREATE DATABASE test_%d_%d TEMPLATE %s STRATEGY FILE_COPY", getpid(), made,
           template);
    if (snprintf(ret, size, "%s dbname=test_%d_%d", admin, getpid(), made) >= (int)size) {
        DIE("no room for a connection string");
    }
}

void pg_fixture_empty_database(char *ret, size_t size)
{
    create_database(ret, size, "template1");
}

void pg_fixture_database(char *ret, size_t size)
{
    struct err err = ERR_INIT;
    pg_fixture_start();
    if (pg_i64(admin, "SELECT count(*) FROM pg_database WHERE datname = 'migrated'") == 0) {
        pg_sql(admin, "CREATE DATABASE migrated");
        AUTO_FREE char *conninfo = xasprintf("%s dbname=migrated", admin);
        if (!migrate_run(conninfo, NULL, &err)) {
            DIE("migrations: %s", err.message);
        }
    }
    create_database(ret, size, "migrated");
}

#define CHILDREN_MAX 256

/* The processes whose parent is pid. */
static size_t children_of(int pid, int ret[CHILDREN_MAX])
{
    char path[64];
    size_t n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *f = fopen(path, "re");
    while (f != NULL && n < CHILDREN_MAX && fscanf(f, "%d", &ret[n]) == 1) {
        n++;
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return n;
}

void pg_fixture_kill(void)
{
    int pid = private_cluster_pid(cluster_dir);
    int children[CHILDREN_MAX];
    if (pid == 0 || kill(pid, SIGSTOP) != 0) {
        DIE("no postmaster to kill");
    }
    /* A backend that outlives its postmaster for a moment would still commit. */
    size_t n = children_of(pid, children);
    for (size_t i = 0; i < n; i++) {
        (void)kill(children[i], SIGKILL);
    }
    (void)kill(pid, SIGKILL);
    int64_t deadline = clock_mono_us() + 10 * USEC_PER_SEC;
    while (private_cluster_pid(cluster_dir) == pid && clock_mono_us() < deadline) {
        const struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL);
    }
}

void pg_fixture_stop_immediate(void)
{
    struct err err = ERR_INIT;
    if (!private_cluster_stop(cluster_dir, PRIVATE_CLUSTER_IMMEDIATE, &err)) {
        DIE("stop: %s", err.message);
    }
}

void pg_fixture_restart(void)
{
    pg_fixture_start();
}

struct store *pg_open(const char *conninfo, enum store_role role)
{
    struct err err = ERR_INIT;
    struct store *s = NULL;
    if (!store_open(conninfo, role, &s, &err)) {
        DIE("open: %s", err.message);
    }
    return s;
}

/* The latest connections to two databases, for the next statement there: a new one costs more than
 * most statements. */
static struct {
    char *conninfo;
    PGconn *conn;
} kept[2];
static pid_t keeper; /* a forked child leaves its parent's alone */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

/* A connection that nobody else uses. */
static PGconn *take_connection(const char *conninfo)
{
    PGconn *found = NULL;
    (void)pthread_mutex_lock(&kept_lock);
    if (keeper != getpid()) {
        keeper = getpid();
        memset(kept, 0, sizeof kept);
    }
    for (size_t i = 0; i < ARRAY_LEN(kept) && found == NULL; i++) {
        if (kept[i].conn != NULL && strcmp(kept[i].conninfo, conninfo) == 0) {
            found = kept[i].conn;
            kept[i].conn = NULL;
        }
    }
    (void)pthread_mutex_unlock(&kept_lock);
    /* What the server says between statements is that it ends the session. */
    struct pollfd p = {.fd = found != NULL ? PQsocket(found) : -1, .events = POLLIN};
    if (found != NULL && poll(&p, 1, 0) != 0) {
        PQfinish(found);
        found = NULL;
    }
    return found != NULL ? found : PQconnectdb(conninfo);
}

/* Keeps it in place of the older one, unless the statements left a transaction open. */
static void give_connection(const char *conninfo, PGconn *conn)
{
    if (PQtransactionStatus(conn) != PQTRANS_IDLE) {
        PQfinish(conn);
        return;
    }
    (void)pthread_mutex_lock(&kept_lock);
    size_t at = kept[0].conn == NULL ? 0 : 1;
    PQfinish(kept[at].conn);
    free(kept[at].conninfo);
    kept[at].conn = kept[0].conn; /* the latest one comes first */
    kept[at].conninfo = kept[0].conninfo;
    kept[0].conn = conn;
    kept[0].conninfo = xstrdup(conninfo);
    (void)pthread_mutex_unlock(&kept_lock);
}

/* Runs statements on a connection that nobody else uses; text results. */
PRINTF(2, 0)
static PGresult *text_query(const char *conninfo, const char *fmt, va_list ap)
{
    char *sql = NULL;
    if (vasprintf(&sql, fmt, ap) < 0) {
        DIE("out of memory");
    }
    PGconn *conn = take_connection(conninfo);
    PGresult *r = PQexec(conn, sql);
    if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK) {
        DIE("%s: %s", sql, PQerrorMessage(conn));
    }
    give_connection(conninfo, conn);
    free(sql);
    return r;
}

void pg_sql(const char *conninfo, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    PQclear(text_query(conninfo, fmt, ap));
    va_end(ap);
}

int64_t pg_i64(const char *conninfo, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    AUTO_RESULT PGresult *r = text_query(conninfo, fmt, ap);
    va_end(ap);
    int64_t v = -1;
    if (PQntuples(r) > 0 &&
        !parse_i64(str_of(PQgetvalue(r, 0, 0)), INT64_MIN, INT64_MAX, &v, NULL)) {
        DIE("%s: '%s' is no integer", fmt, PQgetvalue(r, 0, 0));
    }
    return v;
}

char *pg_text(const char *conninfo, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    AUTO_RESULT PGresult *r = text_query(conninfo, fmt, ap);
    va_end(ap);
    return PQntuples(r) == 0 || PQgetisnull(r, 0, 0) == 1 ? NULL : xstrdup(PQgetvalue(r, 0, 0));
}

void pg_check_counters(const char *conninfo)
{
    AUTO_FREE char *wrong =
        pg_text(conninfo, "SELECT string_agg(format('%%s %%s: kept %%s, counted "
                          "%%s', what, ref, kept, counted), '; ') FROM "
                          "check_counters()");
    if (wrong != NULL) {
        fail_msg("counters: %s", wrong);
    }
}

struct pg_campaign pg_campaign_make(const char *conninfo, int64_t tasks)
{
    struct pg_campaign c = {.project_id = 1};
    long long n = (long long)tasks;
    c.campaign_id =
        pg_i64(conninfo, "INSERT INTO campaign (project_id, name, spec_text, spec) VALUES "
                         "(1, 'c', '', '{}') RETURNING id");
    long long id = (long long)c.campaign_id;
    c.stage_id = pg_i64(conninfo,
                        "INSERT INTO stage (campaign_id, seq, name) VALUES (%lld, 0, 'download') "
                        "RETURNING id",
                        id);
    long long stage = (long long)c.stage_id;
    c.first_task = c.campaign_id * 1000000;
    long long first = (long long)c.first_task;
    pg_sql(
        conninfo,
        "INSERT INTO campaign_run (campaign_id, state, taken_version) VALUES (%lld, 'running', 1);"
        "INSERT INTO stage_input (stage_id, campaign_id, tasks, closed) VALUES (%lld, %lld, %lld, "
        "true);"
        "INSERT INTO stage_run (stage_id, campaign_id, state, taken, waiting) "
        "VALUES (%lld, %lld, 'running', %lld, %lld);"
        "INSERT INTO task (campaign_id, id, stage_id, seq, size, uri) "
        "SELECT %lld, %lld + g, %lld, g, 1000 + g, 's3://b/' || g FROM generate_series(0, %lld - "
        "1) g;"
        "INSERT INTO task_run (campaign_id, id, stage_id, seq) "
        "SELECT %lld, %lld + g, %lld, g FROM generate_series(0, %lld - 1) g",
        id, stage, id, n, stage, id, n, n, id, first, stage, n, id, first, stage, n);
    return c;
}

struct store *pg_leader(const char *conninfo, int64_t *ret_epoch)
{
    struct err err = ERR_INIT;
    struct store *s = pg_open(conninfo, STORE_LEADER);
    bool locked = false;
    struct lease_taken taken = {.epoch = 0};
    if (!lease_try_lock(s, &locked, &err) || !locked ||
        !lease_take(s, "test", 10 * USEC_PER_SEC, &taken, &err)) {
        DIE("lease: %s", locked ? err.message : "held by another");
    }
    if (ret_epoch != NULL) {
        *ret_epoch = taken.epoch;
    }
    return s;
}

void pg_good(bool ok, const struct err *err)
{
    if (!ok) {
        fail_msg("%s: %s (%s)", err_code_name(err->code), err->message, err->where);
    }
}

struct intent pg_intent(struct store *s, const struct pg_campaign *c, int part, int n)
{
    struct err err = ERR_INIT;
    struct intent in = {.campaign_id = c->campaign_id,
                        .project_id = c->project_id,
                        .stage_id = c->stage_id,
                        .task_id = c->first_task + part,
                        .seq = part,
                        .n = n,
                        .request = STR("{\"TrainingJobName\":\"x\"}"),
                        .instance_type = "ml.m5.large",
                        .instances = 1,
                        .volume_gb = 30,
                        .max_runtime_s = 3600,
                        .price_musd_per_hour = 115000,
                        .reserve_musd = 1000000,
                        .slot_limit = 4};
    pg_good(attempt_ids(s, 1, &in.attempt_id, &err), &err);
    (void)snprintf(in.name.s, sizeof in.name.s, "t-c%lld-p%d-a%d", (long long)c->campaign_id, part,
                   n);
    memset(in.identity_hash, 'a', sizeof in.identity_hash - 1);
    return in;
}

void pg_book(struct attempt_record *r)
{
    struct ledger_entry *e = r->entries;
    bool pays = r->release || r->settle || attempt_state_terminal(r->to);
    if (!pays || r->cost_musd < 0) {
        return;
    }
    musd_t over = MAX(0, r->cost_musd - r->reserved_musd);
    if (over > 0) {
        e[r->entries_n++] = (struct ledger_entry){.kind = LEDGER_OVERRUN,
                                                  .from = LEDGER_BUDGET,
                                                  .to = LEDGER_RESERVED,
                                                  .amount_musd = over};
    }
    if (r->settle) {
        e[r->entries_n++] = (struct ledger_entry){.kind = LEDGER_SETTLE,
                                                  .from = LEDGER_RESERVED,
                                                  .to = LEDGER_SPENT,
                                                  .amount_musd = r->cost_musd,
                                                  .seconds = r->billable_s};
    }
    e[r->entries_n++] =
        (struct ledger_entry){.kind = LEDGER_RELEASE,
                              .from = LEDGER_RESERVED,
                              .to = LEDGER_BUDGET,
                              .amount_musd = r->reserved_musd + over - r->cost_musd};
}

struct attempt_record pg_record(const struct intent *in, enum attempt_state from,
                                enum attempt_state to)
{
    struct attempt_record r = {.attempt_id = in->attempt_id,
                               .campaign_id = in->campaign_id,
                               .project_id = in->project_id,
                               .stage_id = in->stage_id,
                               .task_id = in->task_id,
                               .seq = in->seq,
                               .from = from,
                               .to = to,
                               .reserved_musd = in->reserve_musd,
                               .instances = in->instances};
    memcpy(r.instance_type, in->instance_type, sizeof r.instance_type);
    return r;
}
