/* Aim: an endpoint of which AWS tells nothing ends all the same, and its money is held until an
 * answer proves that it is gone. Method: as test_endpoint_life.c. */
#include "core/leader/resource_sight.h"
#include "endpoint_world.h"

#define DENIED     SAW(L, E, NO, "AccessDeniedException")
#define LOST       DENIED, DENIED, DENIED, DENIED, DENIED
#define SAYS       "AWS does not say how it is: AccessDeniedException: "
#define STILL(...) TO(__VA_ARGS__, ENDPOINT_DELETING)

/* It is held until the Delete says that there is none. */
static void goes_unseen(struct life *l)
{
    musd_t held_musd = l->w.s.projects[0].reserved_musd;
    PLAY(l, STILL(D, E, YES, NULL), LOST, STILL(D, E, NO, "ValidationException"), LOST);
    assert_int_equal(l->w.s.projects[0].reserved_musd, held_musd);
    assert_string_equal(l->e->row.reason, "its ttl is over; " SAYS
                                          "; AWS refuses to delete it: ValidationException: ");
    PLAY(l, ON(D, E, ABSENT), VANISHES, TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
    assert_int_equal(l->w.s.projects[0].reserved_musd, 0);
}

static void test_endpoint_unseen__one_in_service_ends_when_its_ttl_is_over(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, CREATES, SERVES);
    usec_t since = l.e->row.in_service_us;
    PLAY(&l, DENIED, DENIED, ON(L, E, UNSENT), DENIED, ON(L, E, NOTHING));
    assert_string_equal(l.e->row.reason, ""); /* a moment says nothing */
    PLAY(&l, TO(L, E, NO, "AccessDeniedException", ENDPOINT_IN_SERVICE));
    assert_true(l.last.tell && l.last.news == ENDPOINT_MOVED);
    assert_string_equal(l.e->row.reason, SAYS);
    PLAY(&l, LOST);
    assert_true(!l.last.tell && l.last.news == ENDPOINT_AS_BEFORE); /* alerted once */
    PLAY(&l, SAW(L, E, YES, "InService"));
    assert_string_equal(l.e->row.reason, "");
    PLAY(&l, DENIED, DENIED, DENIED, DENIED, SAW(L, E, YES, "InService"), DENIED);
    assert_string_equal(l.e->row.reason, "");
    l.now_us = since + TTL * SEC;
    assert_true(ends(&l));
    assert_string_equal(l.e->row.reason, "its ttl is over");
    PLAY(&l, DENIED, DENIED, DENIED, STILL(L, E, NO, "AccessDeniedException"));
    assert_string_equal(l.e->row.reason, "its ttl is over; " SAYS);
    goes_unseen(&l);
    assert_string_equal(l.e->row.reason, "its ttl is over");
    assert_in_range(l.last.end.billable_s, 2 * TTL, 2 * TTL + 600);
    assert_true(l.last.end.estimated);
    leader_world_done(&l.w);
}

static void test_endpoint_unseen__one_never_seen_ends_by_its_latest_time(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    pass(&l, 3 * TTL * SEC); /* it waited for a limit */
    PLAY(&l, CREATES);
    usec_t made = l.e->row.created_us, over = made + ENDPOINT_CREATE_MAX_US + TTL * SEC;
    PLAY(&l, DENIED, DENIED, DENIED, DENIED);
    l.now_us = over;
    assert_false(ends(&l)); /* a look may tell yet */
    PLAY(&l, DENIED);
    l.now_us = over - 1;
    assert_false(ends(&l));
    l.now_us = over;
    l.w.s.clock.unsure = true;
    assert_false(ends(&l));
    l.w.s.clock.unsure = false;
    assert_true(ends(&l));
    assert_false(l.e->row.failed); /* no other one is made */
    goes_unseen(&l);
    assert_in_range(l.last.end.billable_s, 2 * (over - made) / SEC, 2 * (over - made) / SEC + 600);
    assert_true(l.last.end.estimated);
    leader_world_done(&l.w);
}

static void test_endpoint_unseen__what_cannot_be_proven_stays(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, ON(C, M, YES), ON(C, G, YES), ON(C, E, NOTHING)); /* it may take effect yet */
    int64_t signed_us = l.boot_us;
    begins_to_go(&l);
    for (int i = 0; i < 99 && l.e->gone == 0; i++) {
        PLAY(&l, LOST, STILL(D, E, ABSENT, NULL));
    }
    assert_int_equal(l.e->gone, 1);
    assert_true(l.boot_us >= signed_us + WINDOW);
    PLAY(&l, SAW(L, G, NO, "AccessDeniedException"), ON(L, G, ABSENT),
         TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
    assert_int_equal(l.last.end.billable_s, 0);
    anew(&l); /* not written: told again, and its end is not sent before */
    PLAY(&l, CREATES);
    begins_to_go(&l);
    PLAY(&l, DENIED, DENIED, DENIED, DENIED, DENIED);
    assert_true(l.last.tell);
    l.e->row.reason[0] = '\0';
    leader_endpoint_not_written(l.e, l.boot_us);
    PLAY(&l, DENIED);
    assert_true(l.last.tell);
    PLAY(&l, STILL(D, E, NOTHING, NULL), DENIED, SAW(L, E, YES, "Failed"), ON(D, E, YES));
    assert_int_equal(l.e->row.in_service_us, 0);
    leader_world_done(&l.w);
}

/* Created and never seen; its time is over. */
static void is_over_unseen(struct life *l)
{
    life_init(l);
    PLAY(l, CREATES, LOST);
    l->now_us = l->e->row.created_us + ENDPOINT_CREATE_MAX_US + TTL * SEC;
    assert_true(ends(l));
    assert_true(l->e->row.in_service_us > 0); /* before it is deleted */
}

/* A Create whose answer was lost, and no look tells of it: it may serve since long. */
static void test_endpoint_unseen__one_that_may_have_been_made_ends(void **state UNUSED)
{
    enum { NEVER, UNWRITTEN, THERE, DIES, IN_USE, SEEN, CASES };
    static const int said[CASES] = {ABSENT, ABSENT, YES, YES, BUSY, NO};
    for (int is = NEVER; is < CASES; is++) {
        struct life l;
        life_init(&l);
        PLAY(&l, ON(C, M, YES), ON(C, G, YES), ON(C, E, NOTHING), DENIED, DENIED, DENIED, DENIED);
        l.now_us = leader_endpoint_until(&l.e->row);
        assert_false(ends(&l));
        PLAY(&l, DENIED);
        assert_true(ends(&l));
        assert_string_equal(l.e->row.reason, "its ttl is over");
        const struct endpoint_row row = l.e->row;
        PLAY(&l, ON(D, E, said[is]));
        if (is == DIES) { /* before that is written: the row alone says that it was sent */
            l.e->row = row;
            take_over(&l);
        } else if (is == SEEN) {
            PLAY(&l, SAW(L, E, YES, "Deleting"));
        }
        pass(&l, 2 * WINDOW);
        PLAY(&l, ON(L, E, ABSENT));
        if (is == UNWRITTEN) { /* what was just proven is looked at again */
            l.e->row = row;
            leader_endpoint_not_written(l.e, l.boot_us);
            pass(&l, 2 * WINDOW);
            PLAY(&l, ON(L, E, ABSENT));
        }
        PLAY(&l, VANISHES, TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
        assert_int_equal(l.last.end.billable_s > 0, is >= THERE);
        assert_int_equal(l.last.end.estimated, is >= THERE);
        leader_world_done(&l.w);
    }
}

/* However little is heard of its deletion: it is billed as if it had served. */
static void test_endpoint_unseen__a_lost_answer_is_not_free(void **state UNUSED)
{
    enum { ANSWER, ROW, LOOK, REFUSED, CASES };
    for (int lost = ANSWER; lost < CASES; lost++) {
        struct life l;
        is_over_unseen(&l);
        const struct endpoint_row row = l.e->row;
        if (lost == ANSWER) {
            PLAY(&l, STILL(D, E, NOTHING, NULL), LOST, ON(D, E, ABSENT));
        } else if (lost == ROW) {
            PLAY(&l, ON(D, E, YES));
            l.e->row = row;
            take_over(&l);
            PLAY(&l, ON(L, E, ABSENT));
        } else if (lost == LOOK) {
            PLAY(&l, ON(D, E, YES), SAW(L, E, YES, "Deleting"), ON(L, E, ABSENT));
        } else {
            PLAY(&l, STILL(D, E, NO, "ValidationException"), SAW(L, E, YES, "Failed"),
                 ON(D, E, YES), SAW(L, E, YES, "Failed"), ON(D, E, YES), ON(L, E, ABSENT));
        }
        PLAY(&l, VANISHES, TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
        assert_int_equal(l.last.end.estimated, lost != REFUSED);
        assert_in_range(l.last.end.billable_s, lost == REFUSED ? 0 : 2 * TTL,
                        lost == REFUSED ? 0 : 2 * (TTL + ENDPOINT_CREATE_MAX_US / SEC) + 600);
        leader_world_done(&l.w);
    }
}

static void test_endpoint_unseen__what_has_failed_or_was_not_made_is_free(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, CREATES, SAW(L, E, YES, "Failed"), LOST, ON(D, E, NOTHING), LOST, ON(D, E, ABSENT),
         VANISHES, TO(L, M, ABSENT, NULL, ENDPOINT_FAILED));
    assert_int_equal(l.last.end.billable_s, 0);
    anew(&l);
    PLAY(&l, ON(C, M, YES), ON(C, G, YES), SAW(C, E, NO, "ValidationException"), LOST,
         ON(D, E, NOTHING), LOST, ON(D, E, ABSENT), VANISHES,
         TO(L, M, ABSENT, NULL, ENDPOINT_FAILED));
    assert_int_equal(l.last.end.billable_s, 0);
    for (int i = 0; i < 2; i++) { /* its own Create was never sent */
        anew(&l);
        PLAY(&l, ON(C, M, YES), ON(C, G, i == 0 ? YES : NOTHING));
        begins_to_go(&l);
        PLAY(&l, LOST);
        assert_int_equal(l.e->row.in_service_us, 0);
    }
    anew(&l); /* a Create without an answer, whose endpoint a Delete finds, or may have found */
    PLAY(&l, ON(C, M, YES), ON(C, G, YES), ON(C, E, NOTHING));
    begins_to_go(&l);
    PLAY(&l, LOST);
    assert_int_equal(l.e->row.in_service_us, l.e->row.intended_us - 1); /* before it is sent */
    PLAY(&l, ON(D, E, UNSENT), LOST);
    assert_false(l.e->found);
    PLAY(&l, ON(D, E, NOTHING));
    pass(&l, 2 * WINDOW);
    PLAY(&l, ON(L, E, ABSENT));
    assert_int_equal(l.e->row.in_service_us, l.e->row.intended_us - 1);
    leader_world_done(&l.w);
}

/* Five looks in vain and a deletion that is refused, in this order or the other. How often the row
 * is written. */
static int a_round(struct resource_sight *s, char reason[static 512], const struct aws_failure *f,
                   bool looks)
{
    int writes = 0;
    for (int i = 0; i < 6; i++) {
        char before[512];
        (void)snprintf(before, sizeof before, "%s", reason);
        if (i == (looks ? 5 : 0)) {
            resource_sight_remark(reason, DELETE_REFUSED, f);
            resource_sight_tried(s);
        } else {
            (void)resource_sight_note(s, f, reason);
        }
        writes += strcmp(before, reason) != 0;
    }
    return writes;
}

/* However long the rest of a reason is: the second round writes no row anew. */
static void test_endpoint_unseen__a_reason_says_both_and_stays(void **state UNUSED)
{
    static const int lengths[] = {0, 20, 270, 300, 500};
    struct aws_failure f = {.outcome = AWS_REFUSED, .code = "AccessDeniedException"};
    memset(f.message, 'm', 250);
    for (size_t i = 0; i < 2 * ARRAY_LEN(lengths); i++) {
        struct resource_sight s = {0};
        char reason[512] = "", once[512];
        int length = lengths[i / 2];
        memset(reason, 'r', (size_t)length);
        assert_int_equal(a_round(&s, reason, &f, i % 2 == 0), 2);
        (void)snprintf(once, sizeof once, "%s", reason);
        assert_int_equal(strspn(once, "r"), MIN(length, 180));
        assert_non_null(strstr(once, SAYS "mmm"));
        assert_non_null(strstr(once, DELETE_REFUSED "AccessDeniedException: mmm"));
        assert_int_equal(a_round(&s, reason, &f, i % 2 == 0), 0);
        (void)resource_sight_note(&s, NULL, reason);
        assert_null(strstr(reason, "does not say"));
        assert_non_null(strstr(reason, DELETE_REFUSED "AccessDeniedException: mmm"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endpoint_unseen__one_in_service_ends_when_its_ttl_is_over),
        cmocka_unit_test(test_endpoint_unseen__one_never_seen_ends_by_its_latest_time),
        cmocka_unit_test(test_endpoint_unseen__what_cannot_be_proven_stays),
        cmocka_unit_test(test_endpoint_unseen__one_that_may_have_been_made_ends),
        cmocka_unit_test(test_endpoint_unseen__a_lost_answer_is_not_free),
        cmocka_unit_test(test_endpoint_unseen__what_has_failed_or_was_not_made_is_free),
        cmocka_unit_test(test_endpoint_unseen__a_reason_says_both_and_stays),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
