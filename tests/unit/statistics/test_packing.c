/* Aim: the slots are filled as evenly as promised: with run times known, told by size within 20 %,
 * and when 3 % of the tries fail; plainer orders do worse. Method: 200 seeded campaigns of 128
 * parts on 18 slots, each worked off by sched_decide on a virtual clock (tests/bench/packing.h). */
#include "tests/bench/packing.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static double mean_of(const char *name, double *ret_bound)
{
    for (size_t i = 0; i < ARRAY_LEN(packing_cases); i++) {
        const struct packing_case *c = &packing_cases[i];
        if (strcmp(c->name, name) == 0) {
            struct packing_result r = packing_run(c, PACKING_SEEDS);
            (void)printf("# %s %.4f, worst of %d seeds %.4f\n", name, r.mean, PACKING_SEEDS,
                         r.worst);
            assert_true(r.mean >= 1);
            *ret_bound = c->bound;
            return r.mean;
        }
    }
    fail_msg("no case '%s'", name);
    return 0;
}

static void test_packing__every_bound_holds(void **state)
{
    (void)state;
    const char *bounded[] = {"makespan_ratio_known", "makespan_ratio_sized", "makespan_ratio_fail3",
                             "makespan_ratio_fail3_late"};
    for (size_t i = 0; i < ARRAY_LEN(bounded); i++) {
        double bound = 0;
        double mean = mean_of(bounded[i], &bound);
        assert_true(bound > 1);
        assert_true(bound <= 1.06);
        assert_true(mean <= bound);
    }
}

static void test_packing__plainer_orders_do_worse(void **state)
{
    (void)state;
    double none = 0;
    double known = mean_of("makespan_ratio_known", &none);
    double longest = mean_of("makespan_ratio_longest_first", &none);
    double fifo = mean_of("makespan_ratio_fifo", &none);
    double notebook = mean_of("makespan_ratio_notebook", &none);
    assert_true(longest > known + 0.01);
    assert_true(fifo > longest + 0.1);
    assert_true(notebook > fifo + 0.1);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packing__every_bound_holds),
        cmocka_unit_test(test_packing__plainer_orders_do_worse),
    };
    return cmocka_run_group_tests_name("packing", tests, NULL, NULL);
}
