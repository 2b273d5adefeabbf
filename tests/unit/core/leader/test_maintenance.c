/* Aim: campaigns are archived after the days that were set and never without; what is left over is
 * done soon, what failed a minute later, else once an hour. Method: tables. */
#include "core/leader/maintenance.h"
#include "leader_world.h"

static void test_maintenance__campaigns_are_due_after_their_days(void **state)
{
    (void)state;
    usec_t before_us;
    assert_false(leader_archive_before(WALL, 0, &before_us));
    assert_true(leader_archive_before(WALL, 1, &before_us));
    assert_int_equal(before_us, WALL - 86400 * SEC);
    assert_true(leader_archive_before(WALL, 90, &before_us));
    assert_int_equal(before_us, WALL - 90 * 86400 * SEC);
}

static void test_maintenance__when_it_comes_again(void **state)
{
    (void)state;
    static const struct {
        struct maintenance_done done;
        int64_t again_s;
    } rows[] = {
        {{.ok = true}, 3600},
        {{.ok = true, .events = 4999, .keys = 499, .archives = 99}, 3600},
        {{.ok = true, .events = 5000}, 1},
        {{.ok = true, .keys = 500}, 1},
        {{.ok = true, .archives = 100}, 1},
        {{.ok = false}, 60},
        {{.ok = false, .keys = 500}, 60},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(leader_maintenance_again_us(&rows[i].done), rows[i].again_s * SEC);
    }
    assert_int_equal(leader_maintenance_again_us(NULL), 3600 * SEC);
    assert_int_equal(MAINTENANCE_EVENTS, 5000);
    assert_int_equal(MAINTENANCE_KEYS, 500);
    assert_int_equal(MAINTENANCE_ARCHIVES, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maintenance__campaigns_are_due_after_their_days),
        cmocka_unit_test(test_maintenance__when_it_comes_again),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
