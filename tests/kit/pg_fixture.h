/* A real PostgreSQL for tests: the private cluster in the directory DROVER_TEST_CLUSTER
 * (tests/kit/with_cluster.sh, which also ends it), or a cluster of this program below build/tests,
 * removed at exit. Each test gets a migrated database, copied from one that is migrated once per
 * cluster. Every function ends the program on failure, since a test without its database proves
 * nothing. */
#pragma once
#include "store/leader/scheduler.h"
#include "store/pg/connection.h"
#include "store/pg/query.h"

/* Start the cluster; later calls find it. */
void pg_fixture_start(void);
/* Call first: a cluster of this program's own, for tests that stop or kill it. */
void pg_fixture_alone(void);
/* Connection string of the cluster's own database. */
const char *pg_fixture_admin(void);
/* Make a database with the schema; *ret (size >= 600) gets its connection string. */
void pg_fixture_database(char *ret, size_t size);
/* The same without the schema. */
void pg_fixture_empty_database(char *ret, size_t size);
/* kill -9 of the postmaster and its children; the next start recovers. */
void pg_fixture_kill(void);
/* pg_ctl stop -m immediate. */
void pg_fixture_stop_immediate(void);
void pg_fixture_restart(void);

/* Open; ends the program on failure. */
struct store *pg_open(const char *conninfo, enum store_role role);
/* Run SQL text (several statements allowed) on a connection of its own. */
void pg_sql(const char *conninfo, const char *fmt, ...) PRINTF(2, 3);
/* First column of the first row, as integer or text (caller frees); -1 and NULL when there is no
 * row. */
int64_t pg_i64(const char *conninfo, const char *fmt, ...) PRINTF(2, 3);
char *pg_text(const char *conninfo, const char *fmt, ...) PRINTF(2, 3);
/* Fail the running test unless check_counters() finds nothing. */
void pg_check_counters(const char *conninfo);

/* A running campaign with one stage of n waiting tasks, task ids first_task + seq, inserted by SQL
 * as the API would do it. */
struct pg_campaign {
    int64_t project_id, campaign_id, stage_id;
    int64_t first_task;
};
struct pg_campaign pg_campaign_make(const char *conninfo, int64_t tasks);

/* A leader's connection that holds the lease; ret_epoch may be NULL. */
struct store *pg_leader(const char *conninfo, int64_t *ret_epoch);
/* Fail the running test with the error's text unless ok. */
void pg_good(bool ok, const struct err *err);
/* An intent for one part of the campaign: 1 instance of ml.m5.large, 1,000,000 micro-USD reserved,
 * slot limit 4, attempt n, id from the sequence. */
struct intent pg_intent(struct store *s, const struct pg_campaign *c, int part, int n);
/* The record that advances that attempt; only the states are set. pg_book adds the ledger entries
 * of a record that releases slots: cost_musd when it settles, and the rest returned. */
void pg_book(struct attempt_record *r);
struct attempt_record pg_record(const struct intent *in, enum attempt_state from,
                                enum attempt_state to);
