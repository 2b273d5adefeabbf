/* Aim: the names and edges of every state table are what the design says. Method: every FROM x TO
 * pair is asked and compared with the edges written down here a second time, as words; names go
 * out and back; numbers and words outside the tables are refused. */
#include "core/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct machine {
    int n;
    const char *(*name)(int s);
    bool (*edge)(int from, int to);
    bool (*terminal)(int s);
    const char *const *edges; /* "from > to to to", NULL at the end */
    const char *const *back;  /* ends that a person's retry leads out of, NULL at the end */
};

#define MACHINE(word, COUNT)                                                                       \
    static const char *word##_name_i(int s)                                                        \
    {                                                                                              \
        return word##_state_name((enum word##_state)s);                                            \
    }                                                                                              \
    static bool word##_edge_i(int from, int to)                                                    \
    {                                                                                              \
        return word##_edge((enum word##_state)from, (enum word##_state)to);                        \
    }                                                                                              \
    static bool word##_terminal_i(int s)                                                           \
    {                                                                                              \
        return word##_state_terminal((enum word##_state)s);                                        \
    }                                                                                              \
    static const struct machine word##_machine = {                                                 \
        COUNT, word##_name_i, word##_edge_i, word##_terminal_i, word##_list, word##_back}

static const char *const attempt_back[] = {NULL};
static const char *const task_back[] = {"failed", NULL};
static const char *const stage_back[] = {"succeeded", "failed", "skipped", NULL};
static const char *const campaign_back[] = {"succeeded", "failed", NULL};
static const char *const endpoint_back[] = {NULL};
static const char *const filesystem_back[] = {NULL};

static const char *const attempt_list[] = {
    "intended > unknown submitted failed conflict void",
    /* NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one row takes two lines */
    "unknown > submitted starting running uploading stopping verifying failed stopped conflict "
    "void",
    "submitted > starting running uploading stopping verifying failed stopped conflict",
    "starting > running uploading stopping verifying failed stopped conflict",
    "running > starting uploading stopping verifying failed stopped conflict",
    "uploading > starting stopping verifying failed stopped conflict",
    "stopping > verifying failed stopped conflict",
    "verifying > succeeded failed",
    NULL,
};
static const char *const task_list[] = {
    "waiting > active held failed skipped cancelled",
    "active > waiting done failed skipped cancelled",
    "held > waiting failed skipped cancelled",
    "failed > waiting skipped",
    NULL,
};
static const char *const stage_list[] = {
    "blocked > running held failed skipped cancelled",
    "running > held succeeded failed skipped cancelled",
    "held > running succeeded failed skipped cancelled",
    "succeeded > running",
    "failed > running",
    "skipped > blocked",
    NULL,
};
static const char *const campaign_list[] = {
    "planned > running draining paused held failed cancelled",
    "running > draining paused held succeeded failed cancelled",
    "draining > running paused held succeeded failed cancelled",
    "paused > running draining held succeeded failed cancelled",
    "held > running draining paused succeeded failed cancelled",
    "succeeded > running",
    "failed > running",
    NULL,
};
static const char *const endpoint_list[] = {
    "intended > creating deleting",   "creating > in_service deleting",
    "in_service > updating deleting", "updating > in_service deleting",
    "deleting > deleted failed",      NULL,
};
static const char *const filesystem_list[] = {
    "intended > creating deleting",   "creating > available deleting",
    "available > exporting deleting", "exporting > deleting",
    "deleting > deleted failed",      NULL,
};
MACHINE(attempt, ATTEMPT_STATE_COUNT);
MACHINE(task, TASK_STATE_COUNT);
MACHINE(stage, STAGE_STATE_COUNT);
MACHINE(campaign, CAMPAIGN_STATE_COUNT);
MACHINE(endpoint, ENDPOINT_STATE_COUNT);
MACHINE(filesystem, FILESYSTEM_STATE_COUNT);

static bool listed(const char *const *edges, const char *from, const char *to)
{
    char head[40];
    char word[40];
    (void)snprintf(head, sizeof head, "%s >", from);
    (void)snprintf(word, sizeof word, " %s ", to);
    for (int i = 0; edges[i] != NULL; i++) {
        char line[200];
        (void)snprintf(line, sizeof line, "%s ", edges[i]);
        if (strncmp(line, head, strlen(head)) == 0 && strstr(line, word) != NULL) {
            return true;
        }
    }
    return false;
}

static bool among(const char *const *words, const char *word)
{
    while (*words != NULL && strcmp(*words, word) != 0) {
        words++;
    }
    return *words != NULL;
}

static void walk(const struct machine *m)
{
    int edges_n = 0;
    for (int from = -1; from <= m->n; from++) {
        for (int to = -1; to <= m->n; to++) {
            bool inside = from >= 0 && from < m->n && to >= 0 && to < m->n;
            bool want = inside && listed(m->edges, m->name(from), m->name(to));
            if (m->edge(from, to) != want) {
                fail_msg("%s -> %s: the code says %d", m->name(from), m->name(to), !want);
            }
            edges_n += want;
        }
        if (from >= 0 && from < m->n && m->terminal(from)) {
            for (int to = 0; to < m->n; to++) { /* no way out of an end but a person's */
                assert_true(!m->edge(from, to) || among(m->back, m->name(from)));
            }
        }
    }
    assert_true(edges_n > 8);
    assert_false(m->terminal(-1));
    assert_false(m->terminal(m->n));
}

static void test_lifecycle__every_pair_of_attempt_states(void **state)
{
    (void)state;
    walk(&attempt_machine);
}

static void test_lifecycle__every_pair_of_task_states(void **state)
{
    (void)state;
    walk(&task_machine);
}

static void test_lifecycle__every_pair_of_stage_states(void **state)
{
    (void)state;
    walk(&stage_machine);
}

static void test_lifecycle__every_pair_of_campaign_states(void **state)
{
    (void)state;
    walk(&campaign_machine);
}

static void test_lifecycle__every_pair_of_endpoint_states(void **state)
{
    (void)state;
    walk(&endpoint_machine);
}

static void test_lifecycle__every_pair_of_filesystem_states(void **state)
{
    (void)state;
    walk(&filesystem_machine);
}

static void test_lifecycle__no_state_leads_to_itself(void **state)
{
    (void)state;
    for (int s = 0; s < ATTEMPT_STATE_COUNT; s++) {
        assert_false(attempt_machine.edge(s, s));
    }
    for (int s = 0; s < CAMPAIGN_STATE_COUNT; s++) {
        assert_false(campaign_machine.edge(s, s));
    }
}

#define ROUND_TRIP(word, COUNT)                                                                    \
    do {                                                                                           \
        for (int i = 0; i < COUNT; i++) {                                                          \
            const char *name = word##_name((enum word)i);                                          \
            assert_true(name[0] != '\0' && name[0] != '?');                                        \
            assert_int_equal(word##_parse(name), i);                                               \
        }                                                                                          \
        assert_int_equal(word##_parse("nonsense"), COUNT);                                         \
        assert_int_equal(word##_parse(""), COUNT);                                                 \
        assert_int_equal(word##_parse("Running"), COUNT);                                          \
        assert_int_equal(word##_parse(NULL), COUNT);                                               \
        assert_string_equal(word##_name((enum word)COUNT), "?");                                   \
        assert_string_equal(word##_name((enum word)(COUNT + 1000)), "?");                          \
    } while (0)

static void test_lifecycle__names_round_trip_and_unknown_words_give_count(void **state)
{
    (void)state;
    ROUND_TRIP(campaign_state, CAMPAIGN_STATE_COUNT);
    ROUND_TRIP(stage_state, STAGE_STATE_COUNT);
    ROUND_TRIP(task_state, TASK_STATE_COUNT);
    ROUND_TRIP(attempt_state, ATTEMPT_STATE_COUNT);
    ROUND_TRIP(operation_state, OPERATION_STATE_COUNT);
    ROUND_TRIP(cause, CAUSE_COUNT);
    ROUND_TRIP(wanted, WANTED_COUNT);
}

static void test_lifecycle__every_cause_and_wait_reason_has_words(void **state)
{
    (void)state;
    for (int c = 1; c < CAUSE_COUNT; c++) {
        assert_true(strlen(cause_remedy((enum cause)c)) > 3);
    }
    for (int r = 0; r < WAIT_REASON_COUNT; r++) {
        assert_true(strlen(wait_reason_name((enum wait_reason)r)) > 1);
        assert_true(strlen(wait_reason_text((enum wait_reason)r)) > 3);
    }
    assert_string_equal(cause_remedy(CAUSE_NONE), "");
    assert_string_equal(cause_remedy(CAUSE_COUNT), "");
    assert_string_equal(wait_reason_name(WAIT_REASON_COUNT), "?");
    assert_string_equal(wait_reason_text(WAIT_REASON_COUNT), "");
}

static void test_lifecycle__a_slot_is_held_from_intent_until_the_end_is_seen(void **state)
{
    (void)state;
    static const bool holds[ATTEMPT_STATE_COUNT] = {
        [ATTEMPT_INTENDED] = true, [ATTEMPT_UNKNOWN] = true, [ATTEMPT_SUBMITTED] = true,
        [ATTEMPT_STARTING] = true, [ATTEMPT_RUNNING] = true, [ATTEMPT_UPLOADING] = true,
        [ATTEMPT_STOPPING] = true,
    };
    for (int s = 0; s < ATTEMPT_STATE_COUNT; s++) {
        assert_int_equal(attempt_holds_slot((enum attempt_state)s), holds[s]);
    }
    assert_false(attempt_holds_slot(ATTEMPT_STATE_COUNT));
}

static void test_lifecycle__the_numbers_stored_in_sql_stay(void **state)
{
    (void)state;
    assert_int_equal(ATTEMPT_INTENDED, 0);
    assert_int_equal(ATTEMPT_SUCCEEDED, 8); /* the index of live attempts says state < 8 */
    assert_int_equal(ATTEMPT_VOID, 12);
    assert_int_equal(TASK_WAITING, 0);
    assert_int_equal(TASK_CANCELLED, 6);
    assert_int_equal(CAUSE_UNKNOWN, 17);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lifecycle__every_pair_of_attempt_states),
        cmocka_unit_test(test_lifecycle__every_pair_of_task_states),
        cmocka_unit_test(test_lifecycle__every_pair_of_stage_states),
        cmocka_unit_test(test_lifecycle__every_pair_of_campaign_states),
        cmocka_unit_test(test_lifecycle__every_pair_of_endpoint_states),
        cmocka_unit_test(test_lifecycle__every_pair_of_filesystem_states),
        cmocka_unit_test(test_lifecycle__no_state_leads_to_itself),
        cmocka_unit_test(test_lifecycle__names_round_trip_and_unknown_words_give_count),
        cmocka_unit_test(test_lifecycle__every_cause_and_wait_reason_has_words),
        cmocka_unit_test(test_lifecycle__a_slot_is_held_from_intent_until_the_end_is_seen),
        cmocka_unit_test(test_lifecycle__the_numbers_stored_in_sql_stay),
    };
    return cmocka_run_group_tests_name("lifecycle", tests, NULL, NULL);
}
