/* Aim: the leader takes a later end of an endpoint with the money for it or not at all, deletes
 * none while a wish that it has not read stands in its row, and reads back what it wrote. Method: a
 * fresh database a test in a real cluster; the store functions act, SQL plays the API and reads
 * what they left, and after every step all kept sums equal a recount. */
#include "store/leader/endpoints.h"
#include "store/leader/lease.h"
#include "store/leader/resource_strays.h"
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
    struct endpoint_row row; /* in service, 1,000,000 micro-USD reserved */
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

static bool move(struct world *w, enum endpoint_state from, struct err *err)
{
    begin(w);
    bool ok = store_endpoint_move(w->s, &w->row, from, NOW + 7200 * USEC_PER_SEC, err);
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
    struct err err = ERR_INIT;
    char refused[12];
    pg_fixture_database(w->db, sizeof w->db);
    w->c = pg_campaign_make(w->db, 1);
    w->s = pg_leader(w->db, &w->epoch);
    w->row = (struct endpoint_row){.id = 1,
                                   .campaign_id = w->c.campaign_id,
                                   .project_id = w->c.project_id,
                                   .stage_id = w->c.stage_id,
                                   .n = 1,
                                   .state = ENDPOINT_INTENDED,
                                   .name = {"e"},
                                   .instance_type = "ml.m5.large",
                                   .instances = 1,
                                   .ttl_s = 7200,
                                   .idle_s = 1200,
                                   .price_musd_per_hour = 100,
                                   .reserved_musd = 1000000,
                                   .intended_us = NOW};
    const struct endpoint_texts texts = {STR("m"), STR("c"), STR("e")};
    begin(w);
    pg_good(store_endpoint_intend(w->s, &w->row, NOW, &texts, refused, &err), &err);
    commit(w);
    assert_string_equal(refused, "");
    w->row.made = 3;
    w->row.state = ENDPOINT_CREATING;
    assert_true(move(w, ENDPOINT_INTENDED, &err));
    w->row.state = ENDPOINT_IN_SERVICE;
    w->row.in_service_us = NOW + USEC_PER_SEC;
    w->row.tested_us = NOW + 5 * USEC_PER_SEC;
    w->row.tested_n = 4;
    w->row.invoked_us = NOW + 60 * USEC_PER_SEC;
    w->row.served_us = NOW + 70 * USEC_PER_SEC;
    assert_true(move(w, ENDPOINT_CREATING, &err));
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

static struct endpoint_row read_back(struct world *w)
{
    struct endpoint_row *rows = NULL;
    size_t n = 0;
    struct err err = ERR_INIT;
    begin(w);
    pg_good(view_endpoints(w->s, &rows, &n, &err), &err);
    commit(w);
    assert_int_equal(n, 1);
    struct endpoint_row row = rows[0];
    free(rows);
    return row;
}

/* A person's wish, as the API writes it. */
static void wish(struct world *w, usec_t until_us)
{
    pg_sql(w->db, "UPDATE endpoint SET extend_asked = timestamptz 'epoch' + %lld * interval '1 us'",
           (long long)until_us);
}

/* The leader's answer to the wish until_us: what refused it. */
static const char *extend(struct world *w, usec_t until_us, musd_t reserved_musd)
{
    static char refused[12];
    struct err err = ERR_INIT;
    w->row.extend_seen_us = until_us;
    w->row.ttl_s = (until_us - w->row.in_service_us) / USEC_PER_SEC;
    w->row.reserved_musd = reserved_musd;
    begin(w);
    pg_good(store_endpoint_extend(w->s, &w->row, until_us, refused, &err), &err);
    commit(w);
    return refused;
}

static void test_endpoints__are_read_as_they_were_written(void **state)
{
    struct world *w = *state;
    struct endpoint_row r = read_back(w);
    assert_int_equal(r.state, ENDPOINT_IN_SERVICE);
    assert_true(r.idle_s == 1200 && r.tested_n == 4 && r.tested_us == w->row.tested_us);
    assert_true(r.invoked_us == w->row.invoked_us && r.extend_us == 0 && r.extend_seen_us == 0);
    assert_true(r.served_us == w->row.served_us);
    wish(w, NOW + 9000 * USEC_PER_SEC);
    assert_int_equal(read_back(w).extend_us, NOW + 9000 * USEC_PER_SEC);
}

static void test_endpoints__a_later_end_is_taken_with_its_money(void **state)
{
    struct world *w = *state;
    usec_t until = NOW + 9001 * USEC_PER_SEC;
    wish(w, until);
    assert_string_equal(extend(w, until, 1500000), "");
    struct endpoint_row r = read_back(w);
    assert_true(r.ttl_s == 9000 && r.reserved_musd == 1500000 && r.extend_seen_us == until);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM money WHERE reserved_musd = 1500000"), 4);
    assert_int_equal(
        pg_i64(w->db, "SELECT count(*) FROM endpoint WHERE delete_after = extend_asked"), 1);
    wish(w, until + USEC_PER_SEC); /* and another one */
    assert_string_equal(extend(w, until + USEC_PER_SEC, 1500001), "");
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM ledger WHERE entry = 'extend'"), 2);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM event WHERE kind = 'endpoint.extend' AND "
                                   "detail->>'refused' = ''"),
                     2);
}

static void test_endpoints__no_level_has_room(void **state)
{
    struct world *w = *state;
    static const char *const levels[] = {"global", "project", "campaign", "stage"};
    const int64_t refs[] = {0, w->c.project_id, w->c.campaign_id, w->c.stage_id};
    usec_t until = NOW + 9001 * USEC_PER_SEC;
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        until += USEC_PER_SEC;
        wish(w, until);
        pg_sql(w->db, "INSERT INTO cap (level, ref_id, limit_musd) VALUES ('%s', %lld, 1499999)",
               levels[i], (long long)refs[i]);
        assert_string_equal(extend(w, until, 1500000), "money");
        struct endpoint_row r = read_back(w);
        assert_true(r.ttl_s == 7200 && r.reserved_musd == 1000000 && r.extend_seen_us == until);
        pg_sql(w->db, "DELETE FROM cap");
    }
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM ledger WHERE entry = 'extend'"), 0);
    pg_sql(w->db, "INSERT INTO cap (level, ref_id, limit_musd) VALUES ('stage', %lld, 1500000)",
           (long long)w->c.stage_id);
    wish(w, until + USEC_PER_SEC);
    assert_string_equal(extend(w, until + USEC_PER_SEC, 1500000), ""); /* to the last one */
}

static void test_endpoints__another_wish_or_state_is_not_answered(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    usec_t until = NOW + 9001 * USEC_PER_SEC;
    wish(w, until + USEC_PER_SEC);
    assert_string_equal(extend(w, until, 1500000), "state");
    w->row = read_back(w);
    w->row.state = ENDPOINT_DELETING;
    assert_true(move(w, ENDPOINT_IN_SERVICE, &err));
    assert_string_equal(extend(w, until + USEC_PER_SEC, 1500000), "state");
    assert_int_equal(read_back(w).extend_seen_us, 0);
}

static void test_endpoints__none_is_deleted_while_a_wish_is_unread(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    wish(w, NOW + 9000 * USEC_PER_SEC);
    assert_true(move(w, ENDPOINT_IN_SERVICE, &err)); /* anything else goes on */
    w->row.state = ENDPOINT_DELETING;
    assert_false(move(w, ENDPOINT_IN_SERVICE, &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    w->row = read_back(w);
    assert_int_equal(w->row.state, ENDPOINT_IN_SERVICE);
    w->row.state = ENDPOINT_DELETING;
    assert_true(move(w, ENDPOINT_IN_SERVICE, &err));
}

/* Less of it was thought to be left: it is whole again, and people are told. */
static void test_endpoints__a_stray_of_one_that_is_there_after_all(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct resource_stray_row row = {
        .kind = RESOURCE_MODEL, .name = "d-9-s-0-a1-0a1b2c3d", .instances = 1};
    static const struct {
        enum resource_kind kind;
        bool new;
    } puts[] = {{RESOURCE_MODEL, true},
                {RESOURCE_MODEL, false},
                {RESOURCE_ENDPOINT, true},
                {RESOURCE_ENDPOINT_CONFIG, false},
                {RESOURCE_ENDPOINT, false}};
    for (size_t i = 0; i < ARRAY_LEN(puts); i++) {
        bool new;
        row.kind = puts[i].kind;
        begin(w);
        pg_good(store_resource_stray_put(w->s, &row, &new, &err), &err);
        commit(w);
        assert_int_equal(new, puts[i].new);
        if (i == 0) {
            pg_sql(w->db, "UPDATE stray SET ended_at = now(), started_at = now()");
        } else if (i == 2) {
            assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM stray WHERE kind = 'endpoint' AND "
                                           "there AND ended_at IS NULL"),
                             1);
        }
    }
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM event WHERE detail->>'about' = 'stray'"),
                     1);
}

static void end_stray(struct world *w, const char *name, usec_t from_us, usec_t until_us, bool good)
{
    struct err err = ERR_INIT;
    struct resource_stray_end end = {.name = name,
                                     .status = "",
                                     .started_us = from_us,
                                     .ended_us = until_us,
                                     .billable_s = 3600,
                                     .cost_musd = 500,
                                     .entries = {{.kind = LEDGER_SETTLE,
                                                  .from = LEDGER_RESERVED,
                                                  .to = LEDGER_SPENT,
                                                  .amount_musd = 500,
                                                  .seconds = 3600}},
                                     .entries_n = 1};
    end.entries[1] = (struct ledger_entry){
        .kind = LEDGER_OVERRUN, .from = LEDGER_BUDGET, .to = LEDGER_RESERVED, .amount_musd = 500};
    end.entries_n = 2;
    begin(w);
    bool ok = store_resource_stray_end(w->s, &end, &err);
    assert_int_equal(ok, good);
    if (ok) {
        commit(w);
    } else {
        leader_rollback(w->s);
    }
}

/* Behind an ended one of its name it is held again, billed from there, shown by its name at AWS and
 * booked once more. */
static void test_endpoints__a_stray_behind_an_ended_one_of_its_name(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct resource_stray_row row = {
        .kind = RESOURCE_ENDPOINT, .name = "d-9-s-0-a1-0a1b2c3d", .instances = 1};
    for (int i = 0; i < 3; i++) {
        AUTO_FREE struct resource_stray_row *seen = NULL;
        size_t n = 0;
        bool new;
        usec_t until = NOW + i * 3600 * USEC_PER_SEC;
        row.started_us = NOW - 3600 * USEC_PER_SEC;
        begin(w);
        pg_good(store_resource_stray_put(w->s, &row, &new, &err), &err);
        commit(w);
        assert_true(new);
        assert_int_equal(row.started_us, until - 3600 * USEC_PER_SEC);
        memcpy(row.instance_type, "ml.a.large", sizeof "ml.a.large");
        row.price_musd_per_hour = 7200;
        begin(w);
        pg_good(store_resource_stray_seen(w->s, &row, &err), &err);
        commit(w);
        pg_good(view_resource_strays(w->s, &seen, &n, &err), &err);
        assert_int_equal(n, 1);
        assert_string_equal(seen[0].name, row.name);
        assert_int_equal(seen[0].started_us, row.started_us);
        assert_string_equal(seen[0].instance_type, "ml.a.large"); /* known since */
        assert_int_equal(seen[0].price_musd_per_hour, 7200);
        row.instance_type[0] = '\0';
        row.price_musd_per_hour = 0;
        end_stray(w, row.name, row.started_us, until, true);
        end_stray(w, row.name, row.started_us, until, false);
    }
    assert_int_equal(pg_i64(w->db, "SELECT spent_musd FROM money WHERE level = 'global'"), 1500);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM ledger WHERE entry = 'settle' AND "
                                   "stray LIKE 'd-9-s-0-a1-0a1b2c3d#_'"),
                     2);
}

static void put_stray(struct world *w, struct resource_stray_row *row)
{
    struct err err = ERR_INIT;
    bool new;
    begin(w);
    pg_good(store_resource_stray_put(w->s, row, &new, &err), &err);
    commit(w);
    assert_true(new);
}

/* No hour of it is booked twice, though it is not in use yet, or less of it was thought to be there
 * at first. */
static void test_endpoints__a_stray_is_billed_from_where_the_last_ended(void **state)
{
    struct world *w = *state;
    const usec_t before = NOW - 3600 * USEC_PER_SEC;
    struct resource_stray_row fs = {.kind = RESOURCE_FILE_SYSTEM,
                                    .name = "fs-0a1b2c3d",
                                    .status = "AVAILABLE",
                                    .instances = 1,
                                    .size_gib = 1200,
                                    .created_us = before,
                                    .started_us = before};
    struct resource_stray_row e = {.kind = RESOURCE_ENDPOINT,
                                   .name = "d-9-s-0-a1-0a1b2c3d",
                                   .instances = 1,
                                   .created_us = before,
                                   .started_us = before};
    put_stray(w, &fs);
    put_stray(w, &e);
    assert_true(fs.created_us == before && e.started_us == before);
    end_stray(w, fs.name, before, NOW, true);
    end_stray(w, e.name, before, NOW, true);
    memcpy(fs.status, "UPDATING", sizeof "UPDATING");
    fs.started_us = 0;
    put_stray(w, &fs);
    assert_int_equal(fs.created_us, NOW); /* from which it is billed once it is available */
    assert_int_equal(fs.started_us, 0);
    e.kind = RESOURCE_ENDPOINT_CONFIG;
    e.started_us = 0;
    put_stray(w, &e);
    e.kind = RESOURCE_ENDPOINT;
    e.created_us = e.started_us = before;
    put_stray(w, &e);
    assert_int_equal(e.started_us, NOW);
    assert_int_equal(e.created_us, NOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_endpoints__are_read_as_they_were_written),
        T(test_endpoints__a_later_end_is_taken_with_its_money),
        T(test_endpoints__no_level_has_room),
        T(test_endpoints__another_wish_or_state_is_not_answered),
        T(test_endpoints__none_is_deleted_while_a_wish_is_unread),
        T(test_endpoints__a_stray_of_one_that_is_there_after_all),
        T(test_endpoints__a_stray_behind_an_ended_one_of_its_name),
        T(test_endpoints__a_stray_is_billed_from_where_the_last_ended),
#undef T
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store endpoints", tests, NULL, NULL);
}
