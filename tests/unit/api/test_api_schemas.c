/* Aim: a limit that a schema names is the product's. Method: every number and text of all schemas
 * is looked at, and a retry's volume at and beyond the limit. */
#include "api/server/schemas.h"
#include "common/cleanup.h"
#include "core/model.h"
#include "tests/unit/unit.h"

static int maxima_that_are_text(json_t *v)
{
    const char *key;
    json_t *child;
    size_t i;
    int n = json_is_string(json_object_get(v, "maximum"));
    json_object_foreach(v, key, child)
    {
        n += maxima_that_are_text(child);
    }
    json_array_foreach(v, i, child)
    {
        n += maxima_that_are_text(child);
    }
    return n;
}

static bool retry_takes(const json_t *schemas, int volume_gb)
{
    AUTO_JSON json_t *body = json_pack("{s:{s:s}, s:{s:i}}", "selector", "state", "failed",
                                       "changes", "volume_gb", volume_gb);
    AUTO_FREE struct faults *faults = xcalloc(1, sizeof *faults);
    assert_non_null(body);
    return schema_check(schemas, "Retry", body, faults);
}

static void test_schemas__the_largest_volume_is_the_models(void **state UNUSED)
{
    AUTO_JSON json_t *schemas = schemas_load();
    AUTO_BUF struct buf file = BUF_INIT(1 << 20);
    assert_int_equal(maxima_that_are_text(schemas), 0);
    assert_true(retry_takes(schemas, VOLUME_GB_MAX));
    assert_false(retry_takes(schemas, VOLUME_GB_MAX + 1));
    schemas_campaign(&file);
    assert_null(strstr(buf_cstr(&file), "_MAX"));
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schemas__the_largest_volume_is_the_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
