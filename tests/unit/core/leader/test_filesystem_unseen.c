/* Aim: a file system of which AWS tells nothing ends all the same, and its money is held until an
 * answer proves that it is gone. Method: as test_filesystem_life.c. */
#include "filesystem_world.h"

#define DENIED "AccessDeniedException"
#define LOST(act)                                                                                  \
    ON(act, NO, DENIED), ON(act, NO, DENIED), ON(act, NOTHING, ""), ON(act, UNSENT, ""),           \
        ON(act, NO, DENIED), ON(act, NO, DENIED)
#define SAYS "AWS does not say how it is: AccessDeniedException: "

static void test_filesystem_unseen__is_deleted_without_a_sight_of_it(void **state UNUSED)
{
    for (int filled = 0; filled < 2; filled++) {
        struct life l;
        life_init(&l);
        l.f->row.exports = false;
        if (filled) {
            PLAY(&l, MADE, FILLED);
            pass(&l, TTL * SEC - (l.now_us - WALL));
        } else { /* never seen */
            PLAY(&l, TO(C, YES, "CREATING", CREATING), LOST(L));
            assert_true(l.last.tell && l.last.news == FILESYSTEM_MOVED);
            assert_string_equal(l.f->row.reason, SAYS);
            PLAY(&l, ON(L, NO, DENIED));
            assert_false(l.last.tell);
            l.now_us = WALL + TTL * SEC + 1;
        }
        assert_true(ends(&l));
        musd_t held_musd = l.w.s.projects[0].reserved_musd;
        if (filled) {
            PLAY(&l, LOST(L));
            assert_string_equal(l.f->row.reason, "its ttl is over; " SAYS);
            PLAY(&l, TO(D, NO, "BadRequest", DELETING));
            assert_string_equal(l.f->row.reason, "its ttl is over; " SAYS
                                                 "; AWS refuses to delete it: BadRequest: ");
            PLAY(&l, LOST(L));
        }
        PLAY(&l, TO(D, YES, "", DELETING), LOST(L), TO(D, NOTHING, "", DELETING), LOST(L));
        assert_int_equal(l.w.s.projects[0].reserved_musd, held_musd);
        PLAY(&l, TO(D, ABSENT, "", DELETED));
        assert_int_equal(l.last.end.hours, 3);
        assert_int_equal(l.w.s.projects[0].reserved_musd, 0);
        leader_world_done(&l.w);
    }
}

static void test_filesystem_unseen__what_cannot_be_proven_stays(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, ON(C, NOTHING, ""));
    l.f->row.delete_asked = true;
    assert_true(ends(&l));
    PLAY(&l, LOST(F)); /* its id is not known: nothing can be deleted */
    assert_string_equal(l.f->row.reason, "a person asked for it; " SAYS);
    PLAY(&l, LOST(F), TO(F, YES, "AVAILABLE", DELETING));
    assert_string_equal(l.f->row.reason, "a person asked for it");
    PLAY(&l, LOST(L), TO(D, ABSENT, "", DELETING), TO(F, YES, "AVAILABLE", DELETING), LOST(L));
    assert_int_equal(next(&l), D); /* the create made another one */
    leader_world_done(&l.w);
}

/* However little is heard of its deletion: it is billed as if it had been there. */
static void test_filesystem_unseen__a_lost_answer_is_not_free(void **state UNUSED)
{
    enum { ANSWER, ROW, LOOK, HAS_FAILED, FAILS, CASES };
    for (int lost = ANSWER; lost < CASES; lost++) {
        struct life l;
        life_init(&l);
        l.f->row.exports = false;
        PLAY(&l, TO(C, YES, "CREATING", CREATING));
        if (lost == HAS_FAILED) {
            PLAY(&l, TO(L, YES, "FAILED", DELETING));
        }
        PLAY(&l, LOST(L));
        l.now_us = WALL + TTL * SEC + 1;
        assert_int_equal(ends(&l), lost != HAS_FAILED);
        assert_int_equal(l.f->row.available_us > 0, lost != HAS_FAILED); /* before it is deleted */
        const struct filesystem_row row = l.f->row;
        PLAY(&l, ON(D, lost == ANSWER || lost == HAS_FAILED ? NOTHING : YES, ""));
        if (lost == ROW) {
            l.f->row = row;
            take_over(&l);
        }
        if (lost == LOOK) {
            PLAY(&l, ON(L, YES, "DELETING"));
        } else if (lost == FAILS) {
            PLAY(&l, ON(L, YES, "FAILED"), ON(D, YES, ""));
        }
        pass(&l, 2 * WINDOW);
        PLAY(&l, ON(L, ABSENT, ""));
        bool free = lost == HAS_FAILED || lost == FAILS;
        assert_int_equal(l.last.end.hours, free ? 0 : 3);
        assert_int_equal(l.last.end.estimated, !free);
        leader_world_done(&l.w);
    }
}

/* A new leader does not know when its create was signed: looked for until then, which is refused
 * as well. */
static void test_filesystem_unseen__a_young_one_is_proven_gone_by_its_deletion(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, TO(C, YES, "CREATING", CREATING));
    take_over(&l);
    int64_t since = l.boot_us;
    l.f->row.delete_asked = true;
    assert_true(ends(&l));
    PLAY(&l, LOST(L), TO(D, ABSENT, "", DELETING), LOST(F));
    for (int i = 0; i < 99 && l.boot_us < since + WINDOW - 600 * SEC; i++) {
        PLAY(&l, TO(D, ABSENT, "", DELETING), LOST(F));
    }
    pass(&l, WINDOW);
    PLAY(&l, TO(D, ABSENT, "", DELETED));
    leader_world_done(&l.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filesystem_unseen__is_deleted_without_a_sight_of_it),
        cmocka_unit_test(test_filesystem_unseen__what_cannot_be_proven_stays),
        cmocka_unit_test(test_filesystem_unseen__a_lost_answer_is_not_free),
        cmocka_unit_test(test_filesystem_unseen__a_young_one_is_proven_gone_by_its_deletion),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
