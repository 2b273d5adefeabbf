/* Aim: no intent and no later end passes a cap that people lowered before it was written, one that
 * had to wait for them included. Method: a person's transaction holds the campaign's row as a PATCH
 * does, lowers the cap while the leader waits, and commits. */
#include "store/leader/attempts.h"
#include "store/leader/endpoints.h"
#include "store/leader/filesystems.h"
#include "store/leader/lease.h"
#include "tests/kit/pg_fixture.h"
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>

#define PARTS 1
#include "led_world.h"

#define NOW INT64_C(1795000000000000)

struct waiting {
    struct world *w;
    bool (*act)(struct waiting *a, struct err *err);
    char refused[12];
    bool ok;
    atomic_bool over;
    struct err err;
    struct intent in;
    struct endpoint_row endpoint;
};

static bool intend(struct waiting *a, struct err *err)
{
    bool ok = store_intend(a->w->s, a->w->epoch, &a->in, 1, err);
    (void)snprintf(a->refused, sizeof a->refused, "%s", a->in.taken ? "" : a->in.refused);
    return ok;
}

static bool intend_filesystem(struct waiting *a, struct err *err)
{
    const struct filesystem_row row = {.id = 1,
                                       .campaign_id = a->w->c.campaign_id,
                                       .project_id = a->w->c.project_id,
                                       .stage_id = a->w->c.stage_id,
                                       .n = 1,
                                       .state = FILESYSTEM_INTENDED,
                                       .token = {"t-1"},
                                       .deployment = "SCRATCH_2",
                                       .size_gib = 1200,
                                       .ttl_s = 7200,
                                       .import_from = "",
                                       .reserved_musd = 1000000,
                                       .intended_us = NOW};
    return store_filesystem_intend(a->w->s, &row, NOW, STR("{}"), a->refused, err);
}

static bool intend_endpoint(struct waiting *a, struct err *err)
{
    const struct endpoint_texts texts = {STR("m"), STR("c"), STR("e")};
    return store_endpoint_intend(a->w->s, &a->endpoint, NOW, &texts, a->refused, err);
}

static bool extend_endpoint(struct waiting *a, struct err *err)
{
    a->endpoint.extend_seen_us = NOW + 9001 * USEC_PER_SEC;
    a->endpoint.reserved_musd = 2000000;
    return store_endpoint_extend(a->w->s, &a->endpoint, a->endpoint.extend_seen_us, a->refused,
                                 err);
}

static void *act_main(void *arg)
{
    struct waiting *a = arg;
    do { /* a busy machine: the leader waits for a lock for a second only */
        a->err = (struct err)ERR_INIT;
        a->ok = leader_begin(a->w->s, a->w->epoch, &a->err) && a->act(a, &a->err) &&
                leader_commit(a->w->s, &a->err);
        leader_rollback(a->w->s);
    } while (!a->ok && a->err.code == ERR_TIMEOUT);
    atomic_store(&a->over, true);
    return NULL;
}

/* What refused it. */
static const char *act_while_lowered(struct waiting *a, int64_t limit_musd)
{
    pthread_t thread;
    PGconn *person = PQconnectdb(a->w->db);
    AUTO_FREE char *lower =
        xasprintf("UPDATE cap SET limit_musd = %lld; COMMIT", (long long)limit_musd);
    PQclear(PQexec(person, "BEGIN; SELECT FROM campaign FOR UPDATE"));
    assert_int_equal(pthread_create(&thread, NULL, act_main, a), 0);
    while (!atomic_load(&a->over) &&
           pg_i64(a->w->db, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0) {
        (void)poll(NULL, 0, 1);
    }
    PQclear(PQexec(person, lower));
    PQfinish(person);
    (void)pthread_join(thread, NULL);
    pg_good(a->ok, &a->err);
    pg_check_counters(a->w->db);
    return a->refused;
}

static struct waiting waiting(struct world *w, bool (*act)(struct waiting *a, struct err *err))
{
    pg_sql(w->db, "INSERT INTO cap (level, ref_id, limit_musd) VALUES ('campaign', %lld, 5000000)",
           (long long)w->c.campaign_id);
    return (struct waiting){.w = w,
                            .act = act,
                            .in = pg_intent(w->s, &w->c, 0, 1),
                            .endpoint = {.id = 1,
                                         .campaign_id = w->c.campaign_id,
                                         .project_id = w->c.project_id,
                                         .stage_id = w->c.stage_id,
                                         .n = 1,
                                         .state = ENDPOINT_INTENDED,
                                         .name = {"e"},
                                         .instance_type = "ml.m5.large",
                                         .instances = 1,
                                         .ttl_s = 7200,
                                         .price_musd_per_hour = 100,
                                         .reserved_musd = 1000000,
                                         .intended_us = NOW}};
}

static void test_caps__an_intent_that_waited_sees_the_lowered_cap(void **state)
{
    struct waiting a = waiting(*state, intend);
    assert_string_equal(act_while_lowered(&a, 999999), "money");
}

static void test_caps__an_intent_that_waited_takes_what_is_left(void **state)
{
    struct waiting a = waiting(*state, intend);
    assert_string_equal(act_while_lowered(&a, 1000000), "");
}

static void test_caps__a_file_system_that_waited_sees_the_lowered_cap(void **state)
{
    struct waiting a = waiting(*state, intend_filesystem);
    assert_string_equal(act_while_lowered(&a, 999999), "money");
}

static void test_caps__an_endpoint_that_waited_sees_the_lowered_cap(void **state)
{
    struct waiting a = waiting(*state, intend_endpoint);
    assert_string_equal(act_while_lowered(&a, 999999), "money");
}

static void test_caps__a_later_end_that_waited_sees_the_lowered_cap(void **state)
{
    struct world *w = *state;
    struct waiting a = waiting(w, extend_endpoint);
    struct err err = ERR_INIT;
    begin(w);
    pg_good(intend_endpoint(&a, &err), &err);
    commit(w);
    pg_sql(w->db,
           "UPDATE endpoint SET state = 'in_service', extend_asked = timestamptz 'epoch' + "
           "%lld * interval '1 us'",
           (long long)(NOW + 9001 * USEC_PER_SEC));
    assert_string_equal(act_while_lowered(&a, 1999999), "money");
    assert_int_equal(pg_i64(w->db, "SELECT reserved_musd FROM endpoint"), 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_caps__##name, set_up, tear_down)
        T(an_intent_that_waited_sees_the_lowered_cap),
        T(an_intent_that_waited_takes_what_is_left),
        T(a_file_system_that_waited_sees_the_lowered_cap),
        T(an_endpoint_that_waited_sees_the_lowered_cap),
        T(a_later_end_that_waited_sees_the_lowered_cap),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store caps", tests, NULL, NULL);
}
