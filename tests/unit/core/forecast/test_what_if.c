/* Aim: what people want to try is read exactly, and every fault of it is told at once with a hint.
 * Method: tables of good and bad texts. */
#include "core/forecast/what_if.h"
#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static struct faults faults;

static bool parse(const char *text, struct what_if *ret)
{
    faults = (struct faults){0};
    return what_if_parse(str_of(text), ret, &faults);
}

static void test_what_if__reads_every_key(void **state)
{
    (void)state;
    struct what_if w;
    assert_true(parse("slots=30,type=ml.c5n.18xlarge, parts=12 ,spot_loss=0.2,order=fifo", &w));
    assert_int_equal(w.slots, 30);
    assert_string_equal(w.instance_type, "ml.c5n.18xlarge");
    assert_int_equal(w.parts, 12);
    assert_true(w.spot_loss > 0.199 && w.spot_loss < 0.201);
    assert_true(w.fifo);
    assert_true(parse("order=longest", &w));
    assert_true(!w.fifo && w.longest_first);
    assert_true(parse("stage=download,parts=0,budget=12.50 USD,priority=0", &w));
    assert_string_equal(w.stage, "download");
    assert_int_equal(w.parts, 0);
    assert_int_equal(w.budget_musd, 12500000);
    assert_int_equal(w.priority, 0);
    assert_true(parse("stage=download,budget=3", &w));
    assert_int_equal(w.budget_musd, 3000000);
    assert_true(parse("parts=none,budget=none", &w));
    assert_int_equal(w.parts, WHAT_IF_NO_LIMIT);
    assert_int_equal(w.budget_musd, WHAT_IF_NO_LIMIT);
}

static void test_what_if__empty_changes_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "  ", NULL};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct what_if w;
        assert_true(parse(texts[i], &w));
        assert_true(w.slots == -1 && w.parts == -1 && w.spot_loss < 0 && !w.fifo);
        assert_true(w.budget_musd == -1 && w.priority == -1 && w.stage[0] == '\0');
        assert_string_equal(w.instance_type, "");
    }
}

static void test_what_if__every_fault_is_told_with_its_column(void **state)
{
    (void)state;
    struct what_if w = {.slots = 7};
    assert_false(parse("slot=3,parts=x,spot_loss=1,order=lifo,type=c5,parts=1,parts=2", &w));
    assert_int_equal(faults.n, 7);
    assert_string_equal(faults.at[0].code, "unknown_key");
    assert_string_equal(faults.at[0].hint, "slots");
    assert_int_equal(faults.at[1].pos.column, 8);
    assert_string_equal(faults.at[5].code, "duplicate");
    assert_int_equal(w.slots, 7); /* written only on success */
}

static void test_what_if__refuses_what_is_out_of_bounds(void **state)
{
    (void)state;
    static const char *const bad[] = {"slots=",
                                      "slots=0",
                                      "slots=-1",
                                      "slots=1000001",
                                      "slots=1e3",
                                      "slots=99999999999999999999",
                                      "spot_loss=1",
                                      "type=",
                                      "type=ml.",
                                      "type=ml.C5.x",
                                      "type=ml.a b",
                                      "order=",
                                      "=3",
                                      "slots",
                                      ",",
                                      "slots=3,,",
                                      "spot_loss=-0.1",
                                      "spot_loss=nan",
                                      "parts=-2",
                                      "parts=",
                                      "budget=",
                                      "budget=-1",
                                      "priority=101",
                                      "priority=none",
                                      "stage=,parts=1",
                                      "stage=download"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct what_if w;
        assert_false(parse(bad[i], &w));
    }
    char text[WHAT_IF_TEXT_MAX + 2];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    struct what_if w;
    assert_false(parse(text, &w));
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_if__reads_every_key),
        cmocka_unit_test(test_what_if__empty_changes_nothing),
        cmocka_unit_test(test_what_if__every_fault_is_told_with_its_column),
        cmocka_unit_test(test_what_if__refuses_what_is_out_of_bounds),
    };
    return cmocka_run_group_tests_name("what_if", tests, NULL, NULL);
}
