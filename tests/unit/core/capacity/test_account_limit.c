/* Aim: what an account allows no job is told by the quota's name and both numbers, the instances of
 * a job first, and a quota that is not known refuses nothing. Method: a table. */
#include "core/capacity/account_limit.h"
#include "tests/unit/unit.h"

static void test_account_limit__names_the_first_that_is_exceeded(void **st)
{
    static const struct quota_ledger_account account = {.total = {{.limit = 30}, {.limit = 4}},
                                                        .per_job = 20,
                                                        .longest_run_s = 432000,
                                                        .volume_gb = 1024};
    static const struct quota_ledger_account unknown = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    static const struct {
        struct account_limit_job job;
        const char *said;
    } rows[] = {
        {{MARKET_ON_DEMAND, 20, 432000, 1024}, ""},
        {{MARKET_ON_DEMAND, 21, 1, 1},
         "the account allows 20 instances a job, one job has 21 (quota \"Maximum number of "
         "instances per training job\")"},
        {{MARKET_ON_DEMAND, 31, 432001, 1025},
         "the account allows 20 instances a job, one job has 31 (quota \"Maximum number of "
         "instances per training job\")"},
        {{MARKET_SPOT, 4, 1, 1}, ""},
        {{MARKET_SPOT, 5, 1, 1},
         "the account allows 4 instances in all, one job has 5 (quota \"Number of instances across "
         "all spot training jobs\")"},
        {{MARKET_ON_DEMAND, 1, 432001, 1025},
         "the account allows 1024 GB of volume, one job has 1025 (quota \"Size of EBS volume for a "
         "training job instance\")"},
        {{MARKET_ON_DEMAND, 1, 432001, 1024},
         "the account allows 432000 s of run time, one job has 432001 (quota \"Longest run time "
         "for a training job\")"},
    };
    (void)st;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char said[240] = "?";
        bool exceeded = account_limit_exceeded(&account, &rows[i].job, said, sizeof said);
        assert_string_equal(said, rows[i].said);
        assert_int_equal(exceeded, rows[i].said[0] != '\0');
        assert_false(account_limit_exceeded(&unknown, &rows[i].job, said, sizeof said));
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_account_limit__names_the_first_that_is_exceeded),
    };
    return cmocka_run_group_tests_name("account_limit", tests, NULL, NULL);
}
