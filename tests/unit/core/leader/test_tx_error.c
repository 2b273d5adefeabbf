/* Aim: each error in a leader's transaction has the meaning that design and manual give it.
 * Method: a table of SQLSTATEs; errors without one; every class with a dead connection. */
#include "core/leader/tx_error.h"
#include "tests/unit/unit.h"
#include <stdio.h>

static enum tx_meaning meaning(enum err_code code, const char *sqlstate, bool alive)
{
    struct err e = {.code = code};
    (void)snprintf(e.sqlstate, sizeof e.sqlstate, "%s", sqlstate);
    return tx_error_meaning(&e, alive);
}

static const struct {
    const char *sqlstate;
    enum tx_meaning meaning;
} states[] = {
    {"08006", TX_LOST},    {"08003", TX_LOST},    {"57P01", TX_LOST},    {"57P02", TX_LOST},
    {"57P03", TX_LOST},    {"57P05", TX_LOST},    {"25006", TX_LOST},    {"25P03", TX_LOST},
    {"40003", TX_LOST},    {"26000", TX_LOST},    {"0A000", TX_LOST},    {"28000", TX_LOST},
    {"55P03", TX_BUSY},    {"57014", TX_BUSY},    {"40001", TX_BUSY},    {"40P01", TX_BUSY},
    {"53100", TX_BUSY},    {"53200", TX_BUSY},    {"53300", TX_BUSY},    {"58030", TX_BUSY},
    {"42501", TX_BUSY},    {"42P01", TX_BUSY},    {"55006", TX_BUSY},    {"22003", TX_REFUSED},
    {"22P02", TX_REFUSED}, {"22P05", TX_REFUSED}, {"23505", TX_REFUSED}, {"23514", TX_REFUSED},
    {"23502", TX_REFUSED}, {"21000", TX_REFUSED}, {"P0001", TX_REFUSED}, {"XX000", TX_REFUSED},
    {"54001", TX_REFUSED}, {"40002", TX_REFUSED}, {"25P02", TX_REFUSED}, {"99999", TX_REFUSED},
};

static void test_tx_error__each_sqlstate(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        if (meaning(ERR_DATABASE, states[i].sqlstate, true) != states[i].meaning) {
            fail_msg("%s means %d", states[i].sqlstate,
                     (int)meaning(ERR_DATABASE, states[i].sqlstate, true));
        }
        assert_int_equal(meaning(ERR_DATABASE, states[i].sqlstate, false), TX_LOST);
    }
}

static void test_tx_error__without_a_sqlstate(void **state)
{
    (void)state;
    assert_int_equal(meaning(ERR_NOT_LEADER, "", true), TX_LOST);
    assert_int_equal(meaning(ERR_UNAVAILABLE, "", true), TX_LOST);
    assert_int_equal(meaning(ERR_TIMEOUT, "", true), TX_BUSY);
    assert_int_equal(meaning(ERR_CONFLICT, "", true), TX_REFUSED);
    assert_int_equal(meaning(ERR_INTERNAL, "", true), TX_REFUSED);
    assert_int_equal(meaning(ERR_INTERNAL, "", false), TX_LOST);
}

static void test_tx_error__a_commit_without_an_answer_is_unknown(void **state)
{
    (void)state;
    struct err e = {.code = ERR_DATABASE};
    assert_int_equal(tx_commit_meaning(&e, true), TX_LOST);
    (void)snprintf(e.sqlstate, sizeof e.sqlstate, "40001");
    assert_int_equal(tx_commit_meaning(&e, true), TX_BUSY);
    assert_int_equal(tx_commit_meaning(&e, false), TX_LOST);
    (void)snprintf(e.sqlstate, sizeof e.sqlstate, "23505"); /* a deferred constraint: one by one */
    assert_int_equal(tx_commit_meaning(&e, true), TX_BUSY);
}

/* A batch that failed for one of its subjects is written one by one, whatever was wrong. */
static void test_tx_error__after_a_batch(void **state)
{
    (void)state;
    assert_int_equal(tx_batch_after(TX_DONE), TX_BATCH_WRITTEN);
    assert_int_equal(tx_batch_after(TX_BUSY), TX_BATCH_EACH);
    assert_int_equal(tx_batch_after(TX_REFUSED), TX_BATCH_EACH);
    assert_int_equal(tx_batch_after(TX_LOST), TX_BATCH_LEFT);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tx_error__each_sqlstate),
        cmocka_unit_test(test_tx_error__without_a_sqlstate),
        cmocka_unit_test(test_tx_error__a_commit_without_an_answer_is_unknown),
        cmocka_unit_test(test_tx_error__after_a_batch),
    };
    return cmocka_run_group_tests_name("tx_error", tests, NULL, NULL);
}
