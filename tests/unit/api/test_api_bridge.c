/* Aim: every question is answered once or given up in time, none is lost, and a late answer reaches
 * nobody. Method: threads as handlers, this thread as the loop. */
#include "bridge.h"
#include "common/clock.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define ASKERS 16
#define ROUNDS 200

struct asker {
    struct bridge *b;
    int i, good;
    int64_t timeout_us;
    const struct bridge_question *question; /* NULL: a listing */
    struct err err;
};

static void *ask_many(void *ctx)
{
    struct asker *a = ctx;
    for (int n = 0; n < ROUNDS; n++) {
        struct bridge_question q = {.kind = BRIDGE_LOG_TAIL, .max = a->i * ROUNDS + n};
        struct bridge_reply r = {0};
        char want[32];
        (void)snprintf(want, sizeof want, "%d", a->i * ROUNDS + n);
        if (bridge_ask(a->b, &q, 10 * USEC_PER_SEC, &r, &a->err)) {
            a->good += strcmp(buf_cstr(&r.json), want) == 0;
        }
        bridge_reply_done(&r);
    }
    return NULL;
}

static void *ask_once(void *ctx)
{
    struct asker *a = ctx;
    struct bridge_question q = {.kind = BRIDGE_S3_LIST};
    struct bridge_reply r = {0};
    a->good = bridge_ask(a->b, a->question != NULL ? a->question : &q, a->timeout_us, &r, &a->err);
    bridge_reply_done(&r);
    return NULL;
}

static bool ready(struct bridge *b, int ms)
{
    struct pollfd p = {.fd = bridge_fd(b), .events = POLLIN};
    return poll(&p, 1, ms) == 1;
}

static void test_bridge__each_asker_gets_its_own_answer(void **state)
{
    (void)state;
    struct bridge *b;
    assert_true(bridge_new(&b, NULL));
    pthread_t threads[ASKERS];
    struct asker askers[ASKERS];
    for (int i = 0; i < ASKERS; i++) {
        askers[i] = (struct asker){.b = b, .i = i};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_many, &askers[i]), 0);
    }
    for (int taken = 0; taken < ASKERS * ROUNDS;) {
        struct bridge_question q;
        assert_true(ready(b, 10000));
        while (bridge_take(b, &q)) {
            struct bridge_reply r = {.json = BUF_INIT(64)};
            buf_addf(&r.json, "%lld", (long long)q.max);
            bridge_answer(b, q.id, &r);
            taken++;
        }
    }
    for (int i = 0; i < ASKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(askers[i].good, ROUNDS);
    }
    assert_false(ready(b, 0));
    bridge_free(b);
}

static void test_bridge__a_late_answer_reaches_nobody(void **state)
{
    (void)state;
    struct bridge *b;
    assert_true(bridge_new(&b, NULL));
    struct asker a = {.b = b, .timeout_us = 50 * USEC_PER_MSEC};
    struct bridge_question q;
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, ask_once, &a), 0);
    assert_true(ready(b, 5000));
    assert_true(bridge_take(b, &q));
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(a.good, 0);
    assert_int_equal(a.err.code, ERR_TIMEOUT);
    assert_false(bridge_is_wanted(b, q.id));
    struct bridge_reply late = {0};
    assert_true(bridge_listing_add(&late.listing, STR("s3://b/k"), 1));
    bridge_answer(b, q.id, &late); /* freed, not leaked */
    assert_int_equal(late.listing.n, 0);
    bridge_free(b);
}

static void test_bridge__it_is_known_whether_somebody_waits(void **state)
{
    (void)state;
    struct bridge *b;
    assert_true(bridge_new(&b, NULL));
    struct asker a = {.b = b, .timeout_us = 20 * USEC_PER_SEC};
    struct bridge_question q;
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, ask_once, &a), 0);
    assert_true(ready(b, 5000));
    assert_true(bridge_take(b, &q));
    assert_true(bridge_is_wanted(b, q.id));
    assert_false(bridge_is_wanted(b, q.id + 1));
    struct bridge_reply reply = {0};
    bridge_answer(b, q.id, &reply);
    assert_false(bridge_is_wanted(b, q.id));
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(a.good, 1);
    bridge_free(b);
}

static void test_bridge__a_long_question_is_looked_at_until_it_ends_or_is_left(void **state)
{
    (void)state;
    struct bridge *b;
    struct bridge_progress p;
    struct err err;
    int64_t id, left;
    assert_true(bridge_new(&b, NULL));
    struct bridge_question q = {.kind = BRIDGE_S3_LIST};
    struct bridge_reply got = {0}, reply = {0};
    assert_true(bridge_begin(b, &q, &id, NULL));
    assert_true(bridge_begin(b, &q, &left, NULL));
    assert_int_equal(bridge_look(b, id, 0, &got, &p, &err), BRIDGE_WAITS);
    assert_int_equal(p.pages, 0);
    assert_true(bridge_take(b, &q));
    assert_int_equal(q.id, id);
    bridge_tell(b, id, &(struct bridge_progress){.pages = 3, .objects = 2, .problem = "slow"});
    assert_int_equal(bridge_look(b, id, USEC_PER_MSEC, &got, &p, &err), BRIDGE_WAITS);
    assert_int_equal(p.pages, 3);
    assert_int_equal(p.objects, 2);
    assert_string_equal(p.problem, "slow");
    assert_int_equal(bridge_look(b, left, 0, &got, &p, &err), BRIDGE_WAITS);
    assert_int_equal(p.pages, 0); /* of the other one */
    assert_true(bridge_is_wanted(b, id));
    assert_true(bridge_listing_add(&reply.listing, STR("s3://b/k"), 1));
    bridge_answer(b, id, &reply);
    assert_int_equal(bridge_look(b, id, 0, &got, &p, &err), BRIDGE_ANSWERED);
    assert_int_equal(got.listing.n, 1);
    bridge_reply_done(&got);
    bridge_leave(b, id); /* over: nothing happens */
    assert_true(bridge_take(b, &q));
    assert_true(bridge_is_wanted(b, left));
    bridge_leave(b, left);
    assert_false(bridge_is_wanted(b, left));
    bridge_tell(b, left, &(struct bridge_progress){.pages = 1}); /* reaches nobody */
    struct err why = ERR_INIT;
    (void)err_set(&why, ERR_AWS, "no");
    bridge_refuse(b, left, &why);
    for (int i = 0; i < 2 * BRIDGE_PENDING_MAX; i++) { /* slots come back, with nothing in them */
        assert_true(bridge_begin(b, &q, &id, NULL));
        assert_int_equal(bridge_look(b, id, 0, &got, &p, &err), BRIDGE_WAITS);
        assert_int_equal(p.pages, 0);
        bridge_leave(b, id);
    }
    assert_true(bridge_begin(b, &q, &id, NULL));
    bridge_close(b);
    err = (struct err)ERR_INIT;
    assert_int_equal(bridge_look(b, id, 0, &got, &p, &err), BRIDGE_REFUSED);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    bridge_free(b);
}

static void test_bridge__a_question_nobody_took_in_time_is_gone(void **state)
{
    (void)state;
    struct bridge *b;
    assert_true(bridge_new(&b, NULL));
    struct asker a = {.b = b, .timeout_us = 20 * USEC_PER_MSEC};
    for (int i = 0; i < 2 * BRIDGE_PENDING_MAX; i++) { /* slots come back */
        (void)ask_once(&a);
        assert_int_equal(a.err.code, ERR_TIMEOUT);
        a.timeout_us = USEC_PER_MSEC;
    }
    struct bridge_question q;
    assert_false(bridge_take(b, &q));
    bridge_free(b);
}

/* The body is the bridge's while it is needed, also when whoever asked has gone. */
static void test_bridge__a_question_keeps_its_body(void **state)
{
    (void)state;
    struct bridge *b;
    assert_true(bridge_new(&b, NULL));
    char body[] = "hello";
    struct bridge_question q = {.kind = BRIDGE_INVOKE, .body = {body, 5}};
    struct bridge_question taken[2];
    struct bridge_reply r = {0};
    struct err err;
    assert_false(bridge_ask(b, &q, 5 * USEC_PER_MSEC, &r, &err)); /* nobody took it: freed */
    struct asker a = {.b = b, .timeout_us = 500 * USEC_PER_MSEC, .question = &q};
    for (int i = 0; i < 2; i++) { /* one is answered late, one never */
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, ask_once, &a), 0);
        while (!bridge_take(b, &taken[i])) { /* readable once more than needed */
            assert_true(ready(b, 5000));
        }
        assert_int_equal(pthread_join(t, NULL), 0);
        assert_int_equal(a.err.code, ERR_TIMEOUT);
    }
    memset(body, 'x', 5);
    assert_true(str_eq_cstr(taken[0].body, "hello") && str_eq_cstr(taken[1].body, "hello"));
    bridge_answer(b, taken[0].id, &r);
    bridge_free(b);
}

/* A file stays open while it is needed, and no longer. */
static void test_bridge__a_question_keeps_its_file(void **state)
{
    (void)state;
    struct bridge *b;
    assert_true(bridge_new(&b, NULL));
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0 && write(fd, "hello", 5) == 5);
    struct bridge_question q = {.kind = BRIDGE_S3_PUT, .fd = fd, .size = 5};
    struct bridge_question taken;
    struct bridge_reply r = {0};
    struct err err;
    char text[6] = "";
    assert_false(bridge_ask(b, &q, 5 * USEC_PER_MSEC, &r, &err)); /* nobody took it: closed */
    struct asker a = {.b = b, .timeout_us = 500 * USEC_PER_MSEC, .question = &q};
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, ask_once, &a), 0);
    while (!bridge_take(b, &taken)) {
        assert_true(ready(b, 5000));
    }
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(a.err.code, ERR_TIMEOUT);
    (void)close(fd); /* whoever asked has gone */
    assert_true(taken.fd != fd && pread(taken.fd, text, 5, 0) == 5);
    assert_string_equal(text, "hello");
    bridge_answer(b, taken.id, &r);
    assert_int_equal(fcntl(taken.fd, F_GETFD), -1);
    bridge_free(b);
}

static void test_bridge__closing_refuses_all(void **state)
{
    (void)state;
    struct bridge *b;
    assert_true(bridge_new(&b, NULL));
    struct asker a = {.b = b, .timeout_us = 20 * USEC_PER_SEC};
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, ask_once, &a), 0);
    assert_true(ready(b, 5000));
    int64_t began_us = clock_mono_us();
    bridge_close(b);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_true(clock_mono_us() - began_us < 5 * USEC_PER_SEC);
    assert_int_equal(a.err.code, ERR_UNAVAILABLE);
    (void)ask_once(&a);
    assert_int_equal(a.err.code, ERR_UNAVAILABLE);
    bridge_free(b);
}

static void test_bridge__a_refusal_keeps_its_reason(void **state)
{
    (void)state;
    struct bridge *b;
    assert_true(bridge_new(&b, NULL));
    struct asker a = {.b = b, .timeout_us = 20 * USEC_PER_SEC};
    struct bridge_question q;
    struct err why = ERR_INIT;
    pthread_t t;
    (void)err_set(&why, ERR_FORBIDDEN, "AccessDenied");
    assert_int_equal(pthread_create(&t, NULL, ask_once, &a), 0);
    assert_true(ready(b, 5000));
    assert_true(bridge_take(b, &q));
    bridge_refuse(b, q.id, &why);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(a.err.code, ERR_FORBIDDEN);
    assert_string_equal(a.err.message, "AccessDenied");
    bridge_free(b);
}

static void test_bridge__listings_have_a_maximum(void **state)
{
    (void)state;
    CLEANUP(bridge_listing_done)
    struct bridge_listing l = {0};
    assert_true(bridge_listing_add(&l, STR("a"), 1));
    l.bytes = BRIDGE_OBJECT_BYTES;
    assert_false(bridge_listing_add(&l, STR("b"), 1));
    l.bytes = 0;
    size_t n = l.n;
    l.n = BRIDGE_OBJECTS_MAX;
    assert_false(bridge_listing_add(&l, STR("b"), 1));
    CLEANUP(bridge_listing_done)
    struct bridge_listing more = {0}, none = {0};
    assert_true(bridge_listing_add(&more, STR("c"), 2));
    assert_false(bridge_listing_move(&l, &more));
    assert_int_equal(more.n, 1);
    l.n = n;
    assert_true(bridge_listing_move(&l, &more));
    assert_true(bridge_listing_move(&l, &none));
    assert_int_equal(l.n, n + 1);
    assert_string_equal(l.at[n].uri, "c");
    assert_int_equal(more.n, 0);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bridge__each_asker_gets_its_own_answer),
        cmocka_unit_test(test_bridge__a_late_answer_reaches_nobody),
        cmocka_unit_test(test_bridge__it_is_known_whether_somebody_waits),
        cmocka_unit_test(test_bridge__a_long_question_is_looked_at_until_it_ends_or_is_left),
        cmocka_unit_test(test_bridge__a_question_nobody_took_in_time_is_gone),
        cmocka_unit_test(test_bridge__a_question_keeps_its_body),
        cmocka_unit_test(test_bridge__a_question_keeps_its_file),
        cmocka_unit_test(test_bridge__closing_refuses_all),
        cmocka_unit_test(test_bridge__a_refusal_keeps_its_reason),
        cmocka_unit_test(test_bridge__listings_have_a_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
