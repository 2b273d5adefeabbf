/* Aim: an answer is computed once for all who ask for it at the same time, never for an older
 * question than theirs, and is kept for as long as its rules say. Method: threads that ask while
 * the first one's answer is held up; ages and costs are written into the cache. */
#include "api/server/response_cache.c" /* NOLINT(bugprone-suspicious-include): for its fields */
#include "tests/unit/unit.h"
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define ASKERS 4

struct maker {
    atomic_int makes;
    atomic_int open; /* how many makes may go on */
    int fail;        /* this one fails, from 1; 0: none */
};
struct asker {
    pthread_t thread;
    struct response_cache *c;
    struct maker *m;
    struct response_cache_ask ask;
    char *json;
    bool ok;
    enum err_code code;
};

static bool make(void *ctx, struct buf *out, struct err *err)
{
    struct maker *m = ctx;
    int nth = atomic_fetch_add(&m->makes, 1) + 1;
    while (atomic_load(&m->open) < nth) {
        (void)usleep(200);
    }
    if (nth == m->fail) {
        return err_set(err, ERR_TIMEOUT, "it took too long");
    }
    buf_addf(out, "%d", nth);
    return true;
}

static void *ask_main(void *ctx)
{
    struct asker *a = ctx;
    struct err err = ERR_INIT;
    a->ok = response_cache_answer(a->c, &a->ask, make, a->m, &a->json, &err);
    a->code = err.code;
    return NULL;
}

static void ask_begin_as(struct asker *a, struct response_cache *c, struct maker *m,
                         uint64_t version, bool strict)
{
    *a = (struct asker){
        .c = c, .m = m, .ask = {.key = "k", .version = version, .same_us = 0, .strict = strict}};
    assert_int_equal(pthread_create(&a->thread, NULL, ask_main, a), 0);
}

static void ask_begin(struct asker *a, struct response_cache *c, struct maker *m, uint64_t version)
{
    ask_begin_as(a, c, m, version, true);
}

/* The answer's number; 0: there is none. */
static int ask_end(struct asker *a)
{
    assert_int_equal(pthread_join(a->thread, NULL), 0);
    assert_int_equal(a->ok, a->json != NULL);
    assert_int_equal(a->code, a->ok ? ERR_NONE : ERR_TIMEOUT);
    int n = a->ok ? a->json[0] - '0' : 0;
    free(a->json);
    return n;
}

#define LOOKS_MAX 100000 /* twenty seconds or more: then it will never come */

static void until_makes(struct maker *m, int n)
{
    for (int i = 0; atomic_load(&m->makes) < n; i++) {
        assert_true(i < LOOKS_MAX);
        (void)usleep(200);
    }
}

static void until_waiting(struct response_cache *c, int n)
{
    int now = -1;
    for (int i = 0; now != n; i++) {
        assert_true(i < LOOKS_MAX);
        (void)pthread_mutex_lock(&c->lock);
        now = c->making != NULL ? c->making->waiting : 0;
        (void)pthread_mutex_unlock(&c->lock);
        (void)usleep(200);
    }
}

static void test_response_cache__one_computation_while_others_wait(void **state)
{
    (void)state;
    struct response_cache *c = response_cache_new();
    struct maker m = {0};
    struct asker a[ASKERS];
    ask_begin(&a[0], c, &m, 7);
    until_makes(&m, 1);
    for (int i = 1; i < ASKERS; i++) {
        ask_begin(&a[i], c, &m, 7);
    }
    until_waiting(c, ASKERS - 1);
    atomic_store(&m.open, 1);
    for (int i = 0; i < ASKERS; i++) {
        assert_int_equal(ask_end(&a[i]), 1);
    }
    assert_int_equal(atomic_load(&m.makes), 1);
    response_cache_free(c);
}

/* Who asks about a newer version waits, and then one of them computes it for all of them. */
static void test_response_cache__an_older_answer_is_not_taken(void **state)
{
    (void)state;
    struct response_cache *c = response_cache_new();
    struct maker m = {0};
    struct asker a[ASKERS];
    ask_begin(&a[0], c, &m, 1);
    until_makes(&m, 1);
    for (int i = 1; i < ASKERS; i++) {
        ask_begin(&a[i], c, &m, (uint64_t)i + 1);
    }
    until_waiting(c, ASKERS - 1);
    atomic_store(&m.open, 1);
    assert_int_equal(ask_end(&a[0]), 1);
    until_makes(&m, 2);
    until_waiting(c, ASKERS - 2);
    atomic_store(&m.open, 2);
    for (int i = 1; i < ASKERS; i++) {
        assert_int_equal(ask_end(&a[i]), 2);
    }
    assert_int_equal(atomic_load(&m.makes), 2);
    response_cache_free(c);
}

static void test_response_cache__a_failure_is_its_own(void **state)
{
    (void)state;
    struct response_cache *c = response_cache_new();
    struct maker m = {.fail = 1};
    struct asker a[2];
    ask_begin(&a[0], c, &m, 1);
    until_makes(&m, 1);
    ask_begin(&a[1], c, &m, 1);
    until_waiting(c, 1);
    atomic_store(&m.open, 2);
    assert_int_equal(ask_end(&a[0]), 0);
    assert_int_equal(ask_end(&a[1]), 2);
    response_cache_free(c);
}

/* Asks for `key` in this thread; the number of the answer. */
static int ask_now(struct response_cache *c, struct maker *m, const struct response_cache_ask *ask)
{
    struct asker a = {.c = c, .m = m, .ask = *ask};
    atomic_store(&m->open, 1000);
    (void)ask_main(&a);
    assert_true(a.ok);
    int n = (int)strtol(a.json, NULL, 10);
    free(a.json);
    return n;
}

static void test_response_cache__how_long_an_answer_is_valid(void **state)
{
    (void)state;
    const int64_t hour_us = 3600 * USEC_PER_SEC;
    static const struct {
        int64_t same_us, fresh_us, cost_us, age_us;
        bool strict, changed, kept;
    } rows[] = {
        {2, 0, 0, 1, .kept = true}, /* hours */
        {2, 0, 0, 3, .kept = false},
        {2, 0, 0, 1, .changed = true, .kept = false},
        {0, 2, 0, 1, .changed = true, .kept = true},
        {0, 2, 0, 3, .changed = true, .kept = false},
        {0, 0, 1, 9, .changed = true, .kept = true}, /* ten times its cost */
        {0, 0, 1, 11, .changed = true, .kept = false},
        {0, 0, 1, 9, .changed = true, .strict = true, .kept = false},
        {2, 0, 1, 1, .strict = true, .kept = true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct response_cache *c = response_cache_new();
        struct maker m = {0};
        struct response_cache_ask ask = {.key = "k",
                                         .version = 1,
                                         .same_us = rows[i].same_us * hour_us,
                                         .fresh_us = rows[i].fresh_us * hour_us,
                                         .strict = rows[i].strict};
        assert_int_equal(ask_now(c, &m, &ask), 1);
        c->at[0].at_us -= rows[i].age_us * hour_us;
        c->at[0].cost_us = rows[i].cost_us * hour_us;
        ask.version += rows[i].changed;
        if (ask_now(c, &m, &ask) != (rows[i].kept ? 1 : 2)) {
            fail_msg("row %zu", i);
        }
        response_cache_free(c);
    }
}

/* Of those who ask while a dear answer is made anew only who makes it waits, if the last one is
 * not too old. */
static void test_response_cache__the_last_one_while_a_dear_one_is_made(void **state)
{
    (void)state;
    static const struct {
        int64_t cost_us, age_s;
        bool strict, old;
    } rows[] = {
        {CHEAP_US, 29, .old = true},
        {CHEAP_US, 31, .old = false},
        {CHEAP_US - 1, 29, .old = false},
        {CHEAP_US, 29, .strict = true, .old = false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct response_cache *c = response_cache_new();
        struct maker m = {0};
        struct asker a, b;
        struct response_cache_ask ask = {.key = "k", .version = 1, .strict = rows[i].strict};
        assert_int_equal(ask_now(c, &m, &ask), 1);
        c->at[0].at_us -= rows[i].age_s * USEC_PER_SEC;
        c->at[0].cost_us = rows[i].cost_us;
        atomic_store(&m.open, 1);
        ask_begin_as(&a, c, &m, 2, rows[i].strict);
        until_makes(&m, 2);
        ask_begin_as(&b, c, &m, 3, rows[i].strict);
        if (!rows[i].old) {
            until_waiting(c, 1);
        }
        if (rows[i].old && ask_end(&b) != 1) {
            fail_msg("row %zu", i);
        }
        atomic_store(&m.open, 3);
        assert_int_equal(ask_end(&a), 2);
        if (!rows[i].old && ask_end(&b) != 3) {
            fail_msg("row %zu", i);
        }
        response_cache_free(c);
    }
}

struct later_ctx {
    struct store *db;
    struct maker *m;
};

static bool make_later(void *ctx, struct buf *out, struct err *err)
{
    const struct later_ctx *l = ctx;
    assert_ptr_equal(l->db, l->m); /* what the caller gave */
    return make(l->m, out, err);
}

/* Nobody waits: who finds a dear answer too old gets it, and makes the next one afterwards. */
static void test_response_cache__the_next_one_is_made_afterwards(void **state)
{
    (void)state;
    struct response_cache *c = response_cache_new();
    struct maker m = {0};
    struct later_ctx ctx = {.db = (struct store *)&m, .m = &m};
    struct response_later *later, *second;
    char *json;
    struct err err = ERR_INIT;
    struct response_cache_ask ask = {.key = "k", .version = 1};
    atomic_store(&m.open, 1000);
    for (int i = 1; i <= 3; i++) {
        bool first = i == 1, fails = i == 3;
        m.fail = fails ? i : 0;
        assert_true(response_cache_answer_or_last(c, &ask, make_later, &ctx, sizeof ctx, &json,
                                                  &later, &err));
        assert_int_equal(json[0] - '0', first ? 1 : i - 1);
        free(json);
        assert_int_equal(later == NULL, first);
        if (!first) { /* while it is made, others get the last one and make none */
            assert_true(response_cache_answer_or_last(c, &ask, make_later, &ctx, sizeof ctx, &json,
                                                      &second, &err));
            assert_int_equal(json[0] - '0', i - 1);
            assert_null(second);
            free(json);
            response_later_make(later, (struct store *)&m);
        }
        c->at[0].at_us -= 29 * USEC_PER_SEC;
        c->at[0].cost_us = CHEAP_US;
        ask.version++;
    }
    assert_true(response_cache_answer_or_last(c, &ask, make_later, &ctx, sizeof ctx, &json, &later,
                                              &err)); /* the third failed, and has aged since */
    assert_int_equal(json[0] - '0', 4);
    assert_null(later);
    free(json);
    response_cache_free(c);
}

static void test_response_cache__the_oldest_is_dropped(void **state)
{
    (void)state;
    struct response_cache *c = response_cache_new();
    struct maker m = {0};
    char key[ANSWERS_N + 1][16];
    struct response_cache_ask ask = {.same_us = 3600 * USEC_PER_SEC, .in_turn = true};
    for (int i = 0; i <= ANSWERS_N; i++) {
        (void)snprintf(key[i], sizeof key[i], "key %d", i);
        ask.key = key[i];
        assert_int_equal(ask_now(c, &m, &ask), i + 1);
        c->at[0].at_us -= i == 0; /* older than the next one, whatever the clock's steps are */
    }
    ask.key = key[ANSWERS_N];
    assert_int_equal(ask_now(c, &m, &ask), ANSWERS_N + 1);
    ask.key = key[1];
    assert_int_equal(ask_now(c, &m, &ask), 2);
    ask.key = key[0];
    assert_int_equal(ask_now(c, &m, &ask), ANSWERS_N + 2);
    response_cache_free(c);
}

static void *turn_main(void *ctx)
{
    struct response_cache *c = ctx;
    response_cache_turn(c);
    response_cache_turn_end(c);
    return NULL;
}

static void test_response_cache__a_turn_is_waited_for_or_not(void **state)
{
    (void)state;
    struct response_cache *c = response_cache_new();
    pthread_t other;
    assert_true(response_cache_turn_soon(c, 0));
    int64_t began_us = clock_mono_us();
    assert_false(response_cache_turn_soon(c, 30 * USEC_PER_MSEC));
    assert_true(clock_mono_us() - began_us >= 30 * USEC_PER_MSEC);
    assert_int_equal(pthread_create(&other, NULL, turn_main, c), 0);
    response_cache_turn_end(c);
    (void)pthread_join(other, NULL); /* it had its turn, and gave it back */
    response_cache_turn(c);
    assert_false(response_cache_turn_soon(c, 0));
    response_cache_turn_end(c);
    assert_true(response_cache_turn_soon(c, 0));
    response_cache_turn_end(c);
    response_cache_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_response_cache__one_computation_while_others_wait),
        cmocka_unit_test(test_response_cache__an_older_answer_is_not_taken),
        cmocka_unit_test(test_response_cache__a_failure_is_its_own),
        cmocka_unit_test(test_response_cache__how_long_an_answer_is_valid),
        cmocka_unit_test(test_response_cache__the_last_one_while_a_dear_one_is_made),
        cmocka_unit_test(test_response_cache__the_next_one_is_made_afterwards),
        cmocka_unit_test(test_response_cache__the_oldest_is_dropped),
        cmocka_unit_test(test_response_cache__a_turn_is_waited_for_or_not),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("response cache", tests, NULL, NULL);
}
