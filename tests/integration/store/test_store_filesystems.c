/* Aim: a file system's intent is written with its money or not at all, its row is read back as it
 * was written, and its end is booked once. Method: a fresh database a test in a real cluster; the
 * store functions act, SQL reads what they left, and after every step all kept sums equal a
 * recount. */
#include "store/leader/filesystems.h"
#include "store/leader/lease.h"
#include "store/leader/quotas.h"
#include "tests/kit/pg_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define NOW INT64_C(1795000000000000)

struct world {
    char db[600];
    struct store *s;
    int64_t epoch;
    struct pg_campaign c;
    struct filesystem_row row;
};

static void commit(struct world *w)
{
    struct err err = ERR_INIT;
    pg_good(leader_commit(w->s, &err), &err);
    pg_check_counters(w->db);
}

static void begin(struct world *w)
{
    struct err err = ERR_INIT;
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
}

static void intend(struct world *w, const char *want)
{
    struct err err = ERR_INIT;
    char refused[12];
    begin(w);
    pg_good(store_filesystem_id(w->s, &w->row.id, &err), &err);
    pg_good(store_filesystem_intend(w->s, &w->row, NOW, STR("{}"), refused, &err), &err);
    commit(w);
    assert_string_equal(refused, want);
}

static bool move(struct world *w, enum filesystem_state from, struct err *err)
{
    begin(w);
    bool ok = store_filesystem_move(w->s, &w->row, from, NOW + 7200 * USEC_PER_SEC, err);
    if (ok) {
        commit(w);
    } else {
        leader_rollback(w->s);
    }
    return ok;
}

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    pg_fixture_database(w->db, sizeof w->db);
    w->c = pg_campaign_make(w->db, 1);
    w->s = pg_leader(w->db, &w->epoch);
    w->row = (struct filesystem_row){.campaign_id = w->c.campaign_id,
                                     .project_id = w->c.project_id,
                                     .stage_id = w->c.stage_id,
                                     .n = 1,
                                     .state = FILESYSTEM_INTENDED,
                                     .token = {"t-1"},
                                     .deployment = "SCRATCH_2",
                                     .size_gib = 1200,
                                     .ttl_s = 7200,
                                     .keep = true,
                                     .exports = true,
                                     .import_from = "s3://acme/img/",
                                     .price_musd_per_gb_month = 140000,
                                     .reserved_musd = 1000000,
                                     .intended_us = NOW};
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    store_close(w->s);
    free(w);
    return 0;
}

static struct filesystem_row read_back(struct world *w)
{
    struct filesystem_row *rows = NULL;
    size_t n = 0;
    struct err err = ERR_INIT;
    begin(w);
    pg_good(view_filesystems(w->s, &rows, &n, &err), &err);
    commit(w);
    assert_int_equal(n, 1);
    struct filesystem_row row = rows[0];
    free(rows);
    return row;
}

/* Every field, the padding left out. */
static void same(const struct filesystem_row *a, const struct filesystem_row *b)
{
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->project_id, b->project_id);
    assert_int_equal(a->campaign_id, b->campaign_id);
    assert_int_equal(a->stage_id, b->stage_id);
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->state, b->state);
    assert_string_equal(a->token.s, b->token.s);
    assert_string_equal(a->aws_id, b->aws_id);
    assert_string_equal(a->mount, b->mount);
    assert_string_equal(a->link_id, b->link_id);
    assert_string_equal(a->deployment, b->deployment);
    assert_string_equal(a->import_from, b->import_from);
    assert_string_equal(a->reason, b->reason);
    assert_int_equal(a->size_gib, b->size_gib);
    assert_int_equal(a->ttl_s, b->ttl_s);
    assert_int_equal(a->keep * 2 + a->exports, b->keep * 2 + b->exports);
    assert_int_equal(a->ready * 2 + a->failed, b->ready * 2 + b->failed);
    assert_int_equal(a->delete_asked * 2 + a->kept_for_retry,
                     b->delete_asked * 2 + b->kept_for_retry);
    assert_int_equal(a->cause, b->cause);
    assert_int_equal(a->price_musd_per_gb_month, b->price_musd_per_gb_month);
    assert_int_equal(a->reserved_musd, b->reserved_musd);
    assert_int_equal(a->intended_us, b->intended_us);
    assert_int_equal(a->created_us, b->created_us);
    assert_int_equal(a->available_us, b->available_us);
    assert_int_equal(a->ending_us, b->ending_us);
    assert_int_equal(a->off_us, b->off_us);
    assert_int_equal(a->ended_us, b->ended_us);
}

static void test_store_filesystems__a_row_is_read_back_as_it_was_written(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    AUTO_BUF struct buf request = BUF_INIT(1024);
    intend(w, "");
    struct filesystem_row got = read_back(w);
    same(&got, &w->row);
    begin(w);
    pg_good(store_filesystem_request(w->s, w->row.id, &request, &err), &err);
    commit(w);
    assert_string_equal(buf_cstr(&request), "{}");
    w->row.state = FILESYSTEM_CREATING;
    (void)snprintf(w->row.aws_id, sizeof w->row.aws_id, "fs-0123456789abcdef0");
    (void)snprintf(w->row.mount, sizeof w->row.mount, "mnt");
    (void)snprintf(w->row.link_id, sizeof w->row.link_id, "dra-0b");
    (void)snprintf(w->row.reason, sizeof w->row.reason, "imports");
    w->row.ready = w->row.failed = w->row.kept_for_retry = true;
    w->row.cause = CAUSE_QUOTA;
    w->row.created_us = NOW + 1;
    w->row.available_us = NOW + 2;
    w->row.ending_us = NOW + 3;
    w->row.off_us = NOW + 4;
    assert_true(move(w, FILESYSTEM_INTENDED, &err));
    pg_sql(w->db, "UPDATE filesystem SET delete_asked = true");
    w->row.delete_asked = true; /* people's, which no move writes */
    got = read_back(w);
    same(&got, &w->row);
    assert_false(move(w, FILESYSTEM_INTENDED, &err)); /* it is in another state */
    assert_int_equal(err.code, ERR_CONFLICT);
}

static void test_store_filesystems__no_intent_without_money_or_of_a_stopped_campaign(void **state)
{
    struct world *w = *state;
    pg_sql(w->db, "INSERT INTO cap (level, ref_id, limit_musd) VALUES ('global', 0, 999999)");
    intend(w, "money");
    pg_sql(w->db, "DELETE FROM cap");
    pg_sql(w->db, "UPDATE campaign SET wanted = 'cancel'");
    intend(w, "campaign");
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM filesystem"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT coalesce(sum(reserved_musd), 0) FROM money"), 0);
    pg_sql(w->db, "UPDATE campaign SET wanted = 'run'");
    intend(w, "");
    assert_int_equal(pg_i64(w->db, "SELECT reserved_musd FROM money WHERE level = 'global'"),
                     1000000);
}

static void test_store_filesystems__the_end_is_booked_once(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    intend(w, "");
    struct filesystem_end end = {.hours = 3, .cost_musd = 700000};
    end.entries[0] = (struct ledger_entry){
        .kind = LEDGER_SETTLE, .from = LEDGER_RESERVED, .to = LEDGER_SPENT, .amount_musd = 700000};
    end.entries[1] = (struct ledger_entry){.kind = LEDGER_RELEASE,
                                           .from = LEDGER_RESERVED,
                                           .to = LEDGER_BUDGET,
                                           .amount_musd = 300000};
    end.entries_n = 2;
    w->row.state = FILESYSTEM_DELETED;
    w->row.ended_us = NOW + USEC_PER_SEC;
    begin(w);
    assert_false(store_filesystem_end(w->s, &w->row, &end, &err)); /* not being deleted */
    leader_rollback(w->s);
    w->row.state = FILESYSTEM_DELETING;
    assert_true(move(w, FILESYSTEM_INTENDED, &err));
    w->row.state = FILESYSTEM_DELETED;
    for (int i = 0; i < 2; i++) {
        begin(w);
        assert_int_equal(store_filesystem_end(w->s, &w->row, &end, &err), i == 0);
        if (i == 0) {
            commit(w);
        } else {
            leader_rollback(w->s);
        }
    }
    assert_int_equal(pg_i64(w->db, "SELECT hours * 1000000 + cost_musd FROM filesystem"), 3700000);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM ledger WHERE filesystem_id IS NOT NULL"),
                     3);
    assert_int_equal(pg_i64(w->db, "SELECT spent_musd FROM money WHERE level = 'global'"), 700000);
    assert_int_equal(pg_i64(w->db, "SELECT sum(reserved_musd) FROM money"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM filesystem WHERE request IS NOT NULL"), 0);
}

static int64_t price_of(struct world *w, const char *tier)
{
    return pg_i64(w->db, "SELECT musd_per_hour FROM price WHERE instance_type = 'storage:%s'",
                  tier);
}

static void list_prices(struct world *w, const char *named)
{
    struct err err = ERR_INIT;
    begin(w);
    pg_good(store_price_list_put(w->s,
                                 "{\"storage:PERSISTENT_2/125\": 145000, "
                                 "\"storage:PERSISTENT_2/500\": 340000, "
                                 "\"storage:PERSISTENT_2\": 340000}",
                                 &err),
            &err);
    pg_good(store_price_list_use(w->s, 1000000, "file", named, &err), &err);
    commit(w);
}

/* A file that names a deployment of storage names all its throughputs, but for those it names. */
static void test_store_filesystems__a_file_prices_a_deployment_or_a_throughput(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    list_prices(w, "[]");
    assert_int_equal(price_of(w, "PERSISTENT_2/125"), 145000);
    begin(w);
    pg_good(store_price_put(w->s, "storage:PERSISTENT_2", 90000, "file", &err), &err);
    pg_good(store_price_put(w->s, "storage:PERSISTENT_2/500", 200000, "file", &err), &err);
    commit(w);
    list_prices(w, "[\"storage:PERSISTENT_2\", \"storage:PERSISTENT_2/500\"]");
    assert_int_equal(price_of(w, "PERSISTENT_2"), 90000);
    assert_int_equal(price_of(w, "PERSISTENT_2/125"), 90000);
    assert_int_equal(price_of(w, "PERSISTENT_2/500"), 200000);
    list_prices(w, NULL); /* a file that cannot be read now */
    assert_int_equal(price_of(w, "PERSISTENT_2/125"), 90000);
    list_prices(w, "[]");
    assert_int_equal(price_of(w, "PERSISTENT_2"), 340000);
    assert_int_equal(price_of(w, "PERSISTENT_2/125"), 145000);
    assert_int_equal(price_of(w, "PERSISTENT_2/500"), 340000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_store_filesystems__a_row_is_read_back_as_it_was_written),
        T(test_store_filesystems__no_intent_without_money_or_of_a_stopped_campaign),
        T(test_store_filesystems__the_end_is_booked_once),
        T(test_store_filesystems__a_file_prices_a_deployment_or_a_throughput),
#undef T
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store_filesystems", tests, NULL, NULL);
}
