/* Aim: a statement that names its parameters runs with each of them once; all else asserts.
 * Method: two made-up statements, and children that must abort. */
#include "store/pg/query.h"
#include "tests/unit/unit.h"

/* As sql/queries.awk writes them. */
enum { SQL_PAIR_P_LEFT, SQL_PAIR_P_RIGHT, SQL_PAIR_PARAMS };
enum { SQL_TRIO_P_ONE, SQL_TRIO_P_TWO, SQL_TRIO_P_THREE, SQL_TRIO_PARAMS };

static void test_store_params__names_come_in_any_order(void **state)
{
    (void)state;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(PARAM(&p, TRIO, THREE), "third");
    param_i64(PARAM(&p, TRIO, ONE), 1);
    param_text(PARAM(&p, TRIO, TWO), NULL); /* NULL is a value, too */
    assert_int_equal(params_n(&p), 3);
    assert_memory_equal(p.values[0], "\0\0\0\0\0\0\0\1", 8);
    assert_null(p.values[1]);
    assert_string_equal(p.values[2], "third");
}

static void test_store_params__places_count_up_without_names(void **state)
{
    (void)state;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    assert_int_equal(params_n(&p), 0);
    param_text(&p, "a");
    param_text(&p, "b");
    assert_int_equal(params_n(&p), 2);
    assert_string_equal(p.values[1], "b");
}

static void test_store_params__are_empty_again_after_done(void **state)
{
    (void)state;
    static const int64_t ids[] = {7, 8};
    struct params p = PARAMS_INIT;
    param_i64_array(PARAM(&p, PAIR, LEFT), ids, 2);
    param_i64(PARAM(&p, PAIR, RIGHT), 2);
    params_done(&p);
    param_text(PARAM(&p, TRIO, ONE), "1");
    param_text(PARAM(&p, TRIO, TWO), "2");
    param_text(PARAM(&p, TRIO, THREE), "3");
    assert_int_equal(params_n(&p), 3);
    params_done(&p);
    param_text(&p, "unnamed");
    assert_int_equal(params_n(&p), 1);
    params_done(&p);
}

static void one_is_left_out(void)
{
    struct params p = PARAMS_INIT;
    param_i64(PARAM(&p, TRIO, ONE), 1);
    param_i64(PARAM(&p, TRIO, THREE), 3);
    (void)params_n(&p);
}

static void the_last_is_left_out(void)
{
    struct params p = PARAMS_INIT;
    param_i64(PARAM(&p, PAIR, LEFT), 1);
    (void)params_n(&p);
}

static void one_is_given_twice(void)
{
    struct params p = PARAMS_INIT;
    param_i64(PARAM(&p, PAIR, LEFT), 1);
    param_i64(PARAM(&p, PAIR, LEFT), 2);
}

static void one_has_no_value(void)
{
    struct params p = PARAMS_INIT;
    param_i64(PARAM(&p, PAIR, LEFT), 1);
    (void)PARAM(&p, PAIR, RIGHT);
    (void)params_n(&p);
}

static void one_comes_without_its_name(void)
{
    struct params p = PARAMS_INIT;
    param_i64(PARAM(&p, PAIR, LEFT), 1);
    param_i64(PARAM(&p, PAIR, RIGHT), 2);
    param_i64(&p, 3);
}

static void the_first_has_no_name(void)
{
    struct params p = PARAMS_INIT;
    param_i64(&p, 1);
    param_i64(PARAM(&p, PAIR, RIGHT), 2);
}

static void one_is_of_another_statement(void)
{
    struct params p = PARAMS_INIT;
    param_i64(PARAM(&p, PAIR, LEFT), 1);
    param_i64(PARAM(&p, TRIO, TWO), 2);
}

static void there_are_more_than_fit(void)
{
    struct params p = PARAMS_INIT;
    for (int i = 0; i <= PARAMS_MAX; i++) {
        param_text(&p, "x");
    }
}

static void test_store_params__all_else_aborts(void **state)
{
    (void)state;
    assert_aborts(one_is_left_out);
    assert_aborts(the_last_is_left_out);
    assert_aborts(one_is_given_twice);
    assert_aborts(one_has_no_value);
    assert_aborts(one_comes_without_its_name);
    assert_aborts(the_first_has_no_name);
    assert_aborts(one_is_of_another_statement);
    assert_aborts(there_are_more_than_fit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_params__names_come_in_any_order),
        cmocka_unit_test(test_store_params__places_count_up_without_names),
        cmocka_unit_test(test_store_params__are_empty_again_after_done),
        cmocka_unit_test(test_store_params__all_else_aborts),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
