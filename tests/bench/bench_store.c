/* Figures of the store: what one leader's connection can claim and complete. Method: a real private
 * cluster (nothing that makes commits durable is off), a campaign of 1 M parts in tables of its
 * own; each transaction is the leader's: lease check, completion of the last batch, claim of the
 * next, counters and one event row for each, commit. Prints JSON lines. Usage: bench_store [DIR] */
#include "common/clock.h"
#include "core/model.h"
#include "store/leader/lease.h"
#include "store/leader/maintenance.h"
#include "store/leader/tasks.h"
#include "store/pg/migrate.h"
#include "store/pg/private_cluster.h"
#include "store/pg/query.h"
#include "store/pg/tx.h"
#include "store/rows/view.h"
#include <stdio.h>

#define PARTS   1000000
#define RUNS    3
#define COMMITS 101

struct bench {
    struct store *s;
    struct store *admin;
    int64_t epoch;
};

static void must(bool ok, const struct err *err)
{
    if (!ok) {
        (void)fprintf(stderr, "bench_store: %s\n", err->message);
        exit(1);
    }
}

static void sql(struct bench *b, const char *text)
{
    struct err err = ERR_INIT;
    must(store_plain(b->admin, text, &err), &err);
}

/* A fresh database each run: figures do not depend on what earlier runs left. */
static void open_database(struct bench *b, const char *dir)
{
    struct err err = ERR_INIT;
    char conninfo[PRIVATE_CLUSTER_CONNINFO_MAX];
    must(private_cluster_start(dir, conninfo, sizeof conninfo, &err), &err);
    must(store_open(conninfo, STORE_ADMIN, &b->admin, &err), &err);
    sql(b, "DROP DATABASE IF EXISTS bench WITH (FORCE)");
    sql(b, "CREATE DATABASE bench");
    store_close(b->admin);
    AUTO_FREE char *db = xasprintf("%s dbname=bench", conninfo);
    must(migrate_run(db, NULL, &err), &err);
    must(store_open(db, STORE_ADMIN, &b->admin, &err), &err);
    must(store_open(db, STORE_LEADER, &b->s, &err), &err);
    bool locked = false;
    must(lease_try_lock(b->s, &locked, &err) && locked, &err);
    struct lease_taken taken = {.epoch = 0};
    must(lease_take(b->s, "bench", 10 * USEC_PER_SEC, &taken, &err), &err);
    b->epoch = taken.epoch;
    must(leader_begin(b->s, b->epoch, &err) && store_events_maintain(b->s, &err) &&
             leader_commit(b->s, &err),
         &err);
}

/* 1 M parts with 180 bytes of variables, in tables of their own as the API makes them. */
static void load(struct bench *b)
{
    sql(b,
        "BEGIN;"
        "INSERT INTO campaign (project_id, name, spec_text, spec) VALUES (1, 'b', '', '{}');"
        "INSERT INTO campaign_run (campaign_id, state, taken_version) VALUES (1, 'running', 1);"
        "INSERT INTO stage (campaign_id, seq, name) VALUES (1, 0, 'download');"
        "INSERT INTO stage_input (stage_id, campaign_id, tasks, closed) VALUES (1, 1, 1000000, "
        "true);"
        "INSERT INTO stage_run (stage_id, campaign_id, state, taken, waiting) "
        "VALUES (1, 1, 'running', 1000000, 1000000);"
        "SELECT campaign_tables_make(1);"
        "INSERT INTO task_c1 (campaign_id, id, stage_id, seq, size, uri, vars) "
        "SELECT 1, 1 + g, 1, g, 300000000, 's3://bucket/laion/part-' || lpad(g::text, 7, '0'), "
        "jsonb_build_object('caption', repeat(md5(g::text), 4)) FROM generate_series(0, 999999) g;"
        "INSERT INTO task_run_c1 (campaign_id, id, stage_id, seq) "
        "SELECT 1, 1 + g, 1, g FROM generate_series(0, 999999) g;"
        "SELECT campaign_tables_attach(1); COMMIT");
    sql(b, "VACUUM (ANALYZE) task_c1");
    sql(b, "VACUUM (ANALYZE) task_run_c1");
    sql(b, "CHECKPOINT");
}

static void move(struct bench *b, enum task_state from, enum task_state to, const int64_t *ids,
                 size_t n)
{
    struct err err = ERR_INIT;
    size_t moved = 0;
    must(store_tasks_move(b->s, 1, 1, from, to, CAUSE_NONE, ids, n, &moved, NULL, &err), &err);
    ASSERT(moved == n);
}

/* Claim and complete n parts, batch by batch; returns parts a second. */
static double run(struct bench *b, const int64_t *ids, size_t n, size_t batch)
{
    struct err err = ERR_INIT;
    int64_t started = clock_mono_us();
    for (size_t i = 0; i <= n; i += batch) {
        must(leader_begin(b->s, b->epoch, &err), &err);
        if (i > 0) {
            move(b, TASK_ACTIVE, TASK_DONE, ids + i - batch, batch);
        }
        if (i < n) {
            move(b, TASK_WAITING, TASK_ACTIVE, ids + i, batch);
        }
        must(leader_commit(b->s, &err), &err);
    }
    return (double)n * 1e6 / (double)(clock_mono_us() - started);
}

static int compare_rates(const void *a, const void *b)
{
    double x;
    double y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* n ids from `from` on, in order; or each batch spread over all of them. */
static void fill_ids(int64_t *ids, size_t from, size_t n, size_t batch, bool spread)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = spread ? (i % batch) * (n / batch) + i / batch : i;
        ids[i] = 1 + (int64_t)(from + at);
    }
}

/* The limit beside it: microseconds that a durable transaction of one row takes, now. */
static double bare_commit_us(struct bench *b)
{
    double took_us[COMMITS];
    for (size_t i = 0; i < COMMITS; i++) {
        int64_t started = clock_mono_us();
        sql(b, "UPDATE stage_input SET tasks = tasks WHERE stage_id = 1");
        took_us[i] = (double)(clock_mono_us() - started);
    }
    qsort(took_us, COMMITS, sizeof *took_us, compare_rates);
    return took_us[COMMITS / 2];
}

/* The median of some runs over parts not used before; *from moves on. */
static void figure(struct bench *b, const char *name, size_t *from, size_t n, size_t batch,
                   bool spread)
{
    double rates[RUNS];
    AUTO_FREE int64_t *ids = xmalloc(n * sizeof *ids);
    for (size_t k = 0; k < RUNS; k++) {
        fill_ids(ids, *from, n, batch, spread);
        rates[k] = run(b, ids, n, batch);
        *from += n;
    }
    ASSERT(*from <= PARTS);
    qsort(rates, RUNS, sizeof *rates, compare_rates);
    (void)printf("{\"name\":\"%s\",\"value\":%.0f,\"unit\":\"parts/s\",\"n\":%zu,\"note\":\"1 "
                 "connection, 1 M parts, the leader's own transaction, durable%s; median of %d, "
                 "%.0f to %.0f; %.0f us a transaction, where one of a single row takes %.0f\"}\n",
                 name, rates[RUNS / 2], RUNS * n, spread ? "; ids of a batch spread out" : "", RUNS,
                 rates[0], rates[RUNS - 1], (double)batch * 1e6 / rates[RUNS / 2],
                 bare_commit_us(b));
    (void)fflush(stdout);
}

static void count_tasks(void *ctx, const struct task_row *rows, size_t n)
{
    size_t *seen = ctx;
    *seen += n;
    ASSERT(rows != NULL);
}

/* What a new leader reads of 1 M waiting parts before it can decide anything. */
static void takeover(struct bench *b)
{
    struct err err = ERR_INIT;
    size_t seen = 0;
    int64_t started = clock_mono_us();
    must(view_tasks(b->s, NULL, 1, 1, 0, PARTS, count_tasks, &seen, &err), &err);
    ASSERT(seen == PARTS);
    (void)printf("{\"name\":\"takeover_read_ms\",\"value\":%.0f,\"unit\":\"ms\",\"n\":%d,"
                 "\"note\":\"a leader's first read of 1 M waiting parts\"}\n",
                 (double)(clock_mono_us() - started) / 1e3, PARTS);
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "build/bench/pg";
    struct bench b = {.s = NULL};
    struct err err = ERR_INIT;
    size_t from = 0;
    open_database(&b, dir);
    load(&b);
    takeover(&b);
    figure(&b, "claim_complete_per_s_100", &from, 40000, 100, false);
    figure(&b, "claim_complete_per_s_1000", &from, 100000, 1000, false);
    figure(&b, "claim_complete_per_s_1000_spread", &from, 100000, 1000, true);
    store_close(b.s);
    store_close(b.admin);
    must(private_cluster_stop(dir, PRIVATE_CLUSTER_FAST, &err), &err);
    return 0;
}
