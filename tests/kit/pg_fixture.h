/* A real PostgreSQL for tests: the private cluster in the directory DROVER_TEST_CLUSTER names
 * (tests/kit/with_cluster.sh; whoever set it ends it), or one of this program's own below
 * build/tests, removed at exit; and a migrated database for each test, a copy of one that is
 * migrated once a cluster. Everything here ends the
 * program when it fails: a test without its database has nothing to say. */
#pragma once
#include "store/leader/scheduler.h"
#include "store/pg/connection.h"
#include "store/pg/query.h"

/* Start the cluster (once; later calls find it). */
void pg_fixture_start(void);
/* Before any other call: a cluster of this program's own, for tests that stop or kill it. */
void pg_fixture_alone(void);
/* Connection string of the cluster's own database. */
const char *pg_fixture_admin(void);
/* Make a database with the schema in it; *ret (size >= 600) gets its connection string. */
void pg_fixture_database(char *ret, size_t size);
/* The same without the schema. */
void pg_fixture_empty_database(char *ret, size_t size);
/* kill -9 of the postmaster, and of what it leaves; the next start recovers. */
void pg_fixture_kill(void);
/* pg_ctl stop -m immediate. */
void pg_fixture_stop_immediate(void);
void pg_fixture_restart(void);

/* Open or end the program. */
struct store *pg_open(const char *conninfo, enum store_role role);
/* Run SQL text (several statements allowed) on a connection of its own. */
void pg_sql(const char *conninfo, const char *fmt, ...) PRINTF(2, 3);
/* First column of the first row, as integer or text (caller frees); -1 and NULL without a row. */
int64_t pg_i64(const char *conninfo, const char *fmt, ...) PRINTF(2, 3);
char *pg_text(const char *conninfo, const char *fmt, ...) PRINTF(2, 3);
/* Fail the running test unless check_counters() finds nothing. */
void pg_check_counters(const char *conninfo);

/* A campaign taken in and running, with one stage of n waiting tasks, task ids first_task
 * + seq, made by SQL as the API would. */
struct pg_campaign {
    int64_t project_id, campaign_id, stage_id;
    int64_t first_task;
};
struct pg_campaign pg_campaign_make(const char *conninfo, int64_t tasks);

/* A leader's connection that took the lease; ret_epoch may be NULL. */
struct store *pg_leader(const char *conninfo, int64_t *ret_epoch);
/* Fail the running test with the error's words when ok is false. */
void pg_good(bool ok, const struct err *err);
/* An intent for one part of the campaign: 1 instance of ml.m5.large, 1,000,000 micro-USD reserved,
 * slot limit 4, attempt n, id drawn from the sequence. */
struct intent pg_intent(struct store *s, const struct pg_campaign *c, int part, int n);
/* The record that moves that attempt on; nothing but the states is set. pg_book adds the ledger's
 * entries to one that gives slots back: its cost_musd, when it settles, and the rest returned. */
void pg_book(struct attempt_record *r);
struct attempt_record pg_record(const struct intent *in, enum attempt_state from,
                                enum attempt_state to);
