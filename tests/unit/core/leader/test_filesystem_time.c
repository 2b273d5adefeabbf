/* Aim: the time of a file system counts from its creation as AWS tells it. Method: rows, and what
 * is said of them. */
#include "core/leader/filesystem_time.h"
#include "tests/unit/core/leader/leader_world.h"

static void test_filesystem_time__counts_from_its_creation(void **state UNUSED)
{
    struct filesystem_row r = {.intended_us = WALL, .ttl_s = 600};
    assert_int_equal(leader_filesystem_until(&r), WALL + FILESYSTEM_CREATE_MAX_US + 600 * SEC);
    assert_int_equal(leader_filesystem_made_us(&r), WALL);
    r.created_us = WALL + 9000 * SEC;
    assert_int_equal(leader_filesystem_until(&r), WALL + 9600 * SEC);
    assert_int_equal(leader_filesystem_made_us(&r), WALL + 9000 * SEC);
    assert_int_equal(leader_filesystem_deadline(&r), WALL + 9600 * SEC + FILESYSTEM_EXPORT_MAX_US);
    r.ending_us = WALL + 9700 * SEC;
    assert_int_equal(leader_filesystem_deadline(&r), WALL + 9700 * SEC + FILESYSTEM_EXPORT_MAX_US);
    struct leader_state st = {.epoch = 1};
    assert_int_equal(leader_filesystem_left_us(&st, &r, WALL + 9500 * SEC), 100 * SEC);
    assert_int_equal(leader_filesystem_left_us(&st, &r, WALL + 9600 * SEC), 0);
    st.clock.unsure = true; /* then nothing is over */
    assert_int_equal(leader_filesystem_left_us(&st, &r, WALL + 9600 * SEC), SEC);
    r.state = FILESYSTEM_EXPORTING;
    assert_int_equal(leader_filesystem_left_us(&st, &r, WALL + 9700 * SEC),
                     FILESYSTEM_EXPORT_MAX_US);
    r.created_us = WALL - 5 * SEC; /* AWS' clock is behind ours */
    assert_int_equal(leader_filesystem_made_us(&r), WALL);
}

static void test_filesystem_time__what_aws_says_of_its_creation(void **state UNUSED)
{
    struct live_filesystem f = {.row = {.intended_us = 100, .created_us = 120}};
    leader_filesystem_created(&f, 110, 500); /* its row counts */
    assert_int_equal(f.row.created_us, 120);
    f.row.created_us = 100; /* as a row is healed that cannot be */
    leader_filesystem_created(&f, 0, 500);
    assert_int_equal(f.row.created_us, 100);
    leader_filesystem_created(&f, 130, 500);
    assert_int_equal(f.row.created_us, 130);
    f.row.created_us = 0; /* not made yet */
    leader_filesystem_created(&f, 130, 500);
    assert_int_equal(f.row.created_us, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filesystem_time__counts_from_its_creation),
        cmocka_unit_test(test_filesystem_time__what_aws_says_of_its_creation),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("filesystem time", tests, NULL, NULL);
}
