/* Aim: what people are told of a stage that waits is what the column `told` of wait_reason.def
 * says. Method: a campaign in a real cluster waits for every reason in turn; its own page, the list
 * of campaigns, the facts of its guidance and the notices must agree. */
#include "core/sched/wait_reason.h"
#include "store/api/campaigns.h"
#include "store/api/notices.h"
#include "tests/kit/pg_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PARTS 1
#include "led_world.h"

static void guide(struct buf *b, int64_t campaign_id UNUSED, const char *facts_json)
{
    buf_add_cstr(b, facts_json != NULL ? "[1]" : "[]");
}

static void check(const char *reason, const char *json, bool told)
{
    bool shown = strstr(json, "\"waits_for\" : null") == NULL;
    bool guided = strstr(json, "[1]") != NULL;
    if (shown != told || guided != told) {
        fail_msg("%s: %s told, but waits_for is %s and guidance is %s", reason, told ? "is" : "not",
                 shown ? "set" : "null", guided ? "given" : "empty");
    }
}

static void test_waits__every_reason_is_told_as_its_row_says(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *s = pg_open(w->db, STORE_API);
    for (int i = 0; i < WAIT_REASON_COUNT; i++) {
        bool told = wait_reason_row((enum wait_reason)i)->told != WAIT_TOLD_PASSES;
        const char *name = wait_reason_name((enum wait_reason)i);
        AUTO_BUF struct buf one = BUF_INIT(64 * 1024);
        AUTO_BUF struct buf page = BUF_INIT(64 * 1024);
        struct apidb_page rows = {.rows = page};
        int64_t version;
        pg_sql(w->db, "UPDATE stage_run SET wait_reason = '%s'", name);
        pg_good(apidb_campaign_get(s, w->c.campaign_id, guide, &version, &one, &err), &err);
        check(name, buf_cstr(&one), told);
        const struct apidb_campaign_query all = {.after_us = 1, .projects = "", .n = 10};
        pg_good(apidb_campaign_list(s, &all, guide, &rows, &err), &err);
        page = rows.rows;
        check(name, buf_cstr(&page), told);
        pg_good(store_notice_stuck(s, USEC_PER_DAY, &err), &err);
        assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM notice_watch WHERE what = 'stuck'"),
                         told);
    }
    store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_waits__every_reason_is_told_as_its_row_says, set_up,
                                        tear_down),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store waits", tests, NULL, NULL);
}
