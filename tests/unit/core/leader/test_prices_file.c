/* Aim: the operator's prices are read again when their file was written anew, and a mistake in one
 * entry costs only that entry. Method: tables of file marks and of entries. */
#include "common/cleanup.h"
#include "core/leader/prices_file.h"
#include "tests/unit/unit.h"

static void test_prices_file__any_mark_tells_a_new_file(void **state)
{
    (void)state;
    const struct prices_file was = {.inode = 1, .size = 2, .s = 3, .ns = 4};
    static const struct row {
        struct prices_file now;
        bool moved;
    } rows[] = {
        {{1, 2, 3, 4}, false}, {{9, 2, 3, 4}, true}, {{1, 9, 3, 4}, true},
        {{1, 2, 9, 4}, true},  {{1, 2, 3, 9}, true}, {{0, 0, 0, 0}, true}, /* it is gone */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(prices_file_moved(&was, &rows[i].now), rows[i].moved);
    }
}

static void test_prices_file__what_was_not_taken_is_read_again(void **state)
{
    (void)state;
    struct prices_file was = {.inode = 1, .size = 2, .s = 3, .ns = 4};
    const struct prices_file same = was;
    const struct prices_file none = {.s = 0};
    prices_file_again(&was);
    assert_true(prices_file_moved(&was, &same));
    assert_true(prices_file_moved(&was, &none));
}

static void test_prices_file__entries(void **state)
{
    (void)state;
    static const struct row {
        const char *type, *json;
        musd_t price; /* -1: no entry */
    } rows[] = {
        {"ml.m5.large", "\"0.115\"", 115000},
        {"ml.m5.large", "\"0\"", 0},
        {"ml.p4d.24xlarge", "\"37.688\"", 37688000},
        {"ml.m5.large", "0.115", -1}, /* a number: its digits may be lost */
        {"ml.m5.large", "\"-1\"", -1},
        {"ml.m5.large", "\"much\"", -1},
        {"ml.m5.large", "null", -1},
        {"", "\"0.115\"", -1},
        {"ml.a-name-that-no-column-has-room-for.large", "\"0.115\"", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON json_t *v = json_loads(rows[i].json, JSON_DECODE_ANY, NULL);
        musd_t got = -7;
        struct err err = ERR_INIT;
        bool ok = prices_entry(rows[i].type, v, &got, &err);
        assert_int_equal(ok, rows[i].price >= 0);
        if (ok) {
            assert_int_equal(got, rows[i].price);
        } else {
            assert_true(err.message[0] != '\0');
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prices_file__any_mark_tells_a_new_file),
        cmocka_unit_test(test_prices_file__what_was_not_taken_is_read_again),
        cmocka_unit_test(test_prices_file__entries),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("prices file", tests, NULL, NULL);
}
