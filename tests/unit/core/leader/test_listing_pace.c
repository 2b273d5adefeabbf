/* Aim: a listing is as parallel as S3 lets it be, slows down when told so, cuts no more ranges than
 * it has use for, and ends. Method: tables, and a listing of pages played by hand. */
#include "core/leader/listing_pace.h"
#include "leader_world.h"

static void test_listing_pace__a_place_is_lost_and_regained(void **state)
{
    (void)state;
    struct listing_pace p;
    listing_pace_begin(&p);
    assert_true(listing_pace_room(&p, 15));
    assert_false(listing_pace_room(&p, 16));
    listing_pace_refused(&p, AWS_UNKNOWN); /* a network that fails is not too fast */
    assert_true(listing_pace_room(&p, 15));
    listing_pace_came(&p);
    listing_pace_came(&p);
    listing_pace_came(&p);
    listing_pace_refused(&p, AWS_THROTTLED);
    assert_true(listing_pace_room(&p, 14));
    assert_false(listing_pace_room(&p, 15));
    listing_pace_came(&p); /* those before it do not count */
    listing_pace_came(&p);
    listing_pace_came(&p);
    assert_false(listing_pace_room(&p, 15));
    listing_pace_came(&p);
    assert_true(listing_pace_room(&p, 15));
    for (int i = 0; i < 40; i++) {
        listing_pace_came(&p);
    }
    assert_false(listing_pace_room(&p, 16)); /* never more than at first */
    for (int i = 0; i < 40; i++) {
        listing_pace_refused(&p, AWS_THROTTLED);
    }
    assert_true(listing_pace_room(&p, 0));
    assert_false(listing_pace_room(&p, 1)); /* one goes on */
}

static void test_listing_pace__into_how_many_parts(void **state)
{
    (void)state;
    static const struct {
        int ranges, asked, pages, parts;
    } rows[] = {
        {1, 0, 1, 4},   {1, 12, 1, 4},   {1, 13, 1, 3},   {1, 15, 1, 1},
        {1, 16, 1, 1},  {31, 0, 1, 4},   {32, 0, 1, 1},   {32, 0, 2, 2},
        {32, 15, 2, 1}, {4095, 0, 9, 2}, {4096, 0, 9, 1}, {4097, 0, 9, 1},
    };
    struct listing_pace p;
    listing_pace_begin(&p);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(listing_pace_parts(&p, rows[i].ranges, rows[i].asked, rows[i].pages),
                         rows[i].parts);
    }
}

static void test_listing_pace__pages_without_keys_end(void **state)
{
    (void)state;
    int empty_n = 0;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(listing_pace_page(0, 0, true, &empty_n), LISTING_PAGE_MORE);
    }
    assert_int_equal(listing_pace_page(0, 0, true, &empty_n), LISTING_PAGE_ENDLESS);
    assert_int_equal(listing_pace_page(1, 1, true, &empty_n), LISTING_PAGE_MORE); /* in a row */
    assert_int_equal(listing_pace_page(0, 0, true, &empty_n), LISTING_PAGE_MORE);
}

/* A key of two ranges would become two parts, one of none would be left out. */
static void test_listing_pace__each_key_is_of_one_range(void **state)
{
    (void)state;
    static const char *const keys[] = {"a/1", "a/2", "a/20", "a/3", "b"};
    static const char *const ends[] = {"a/1", "a/2", "a/2z", "b"}; /* and the rest, to the end */
    for (size_t cut = 0; cut < ARRAY_LEN(ends); cut++) {
        for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
            bool before = listing_pace_within(ends[cut], keys[i]);
            bool behind = strcmp(keys[i], ends[cut]) > 0; /* as S3 takes start-after */
            assert_int_equal(before, !behind);
            assert_true(listing_pace_within("", keys[i]));
        }
    }
    static const struct {
        size_t keys, ours;
        bool more;
        enum listing_page_then then;
    } rows[] = {{9, 9, true, LISTING_PAGE_MORE}, {9, 9, false, LISTING_PAGE_LAST},
                {9, 8, true, LISTING_PAGE_LAST}, {9, 0, true, LISTING_PAGE_LAST},
                {0, 0, true, LISTING_PAGE_MORE}, {0, 0, false, LISTING_PAGE_LAST}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int empty_n = 0;
        assert_int_equal(listing_pace_page(rows[i].keys, rows[i].ours, rows[i].more, &empty_n),
                         rows[i].then);
    }
    assert_false(listing_pace_full(1000, 1000));
    assert_true(listing_pace_full(1001, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listing_pace__a_place_is_lost_and_regained),
        cmocka_unit_test(test_listing_pace__into_how_many_parts),
        cmocka_unit_test(test_listing_pace__pages_without_keys_end),
        cmocka_unit_test(test_listing_pace__each_key_is_of_one_range),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
