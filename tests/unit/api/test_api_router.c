/* Aim: a path finds its row of routes.def and no other, and the table is in order. Method: every
 * row with its ids filled in, and paths that are nearly right. */
#include "api/server/request.h"
#include "api/server/router.h"
#include "tests/unit/unit.h"

static void fill(const char *pattern, const char *with, struct buf *out)
{
    buf_reset(out);
    for (const char *p = pattern; *p != '\0'; p++) {
        if (*p == '{') {
            buf_add_cstr(out, with);
            p = strchr(p, '}');
        } else {
            buf_add_char(out, *p);
        }
    }
}

static void test_router__every_row_is_found_by_its_own_path(void **state)
{
    (void)state;
    AUTO_BUF struct buf path = BUF_INIT(256);
    for (size_t i = 0; i < route_table_n; i++) {
        struct str params[API_PARAMS_MAX];
        fill(route_table[i].pattern, "c-1", &path);
        const struct route *found = route_find(route_table[i].method, buf_cstr(&path), params);
        assert_ptr_equal(found, &route_table[i]);
        assert_non_null(route_table[i].handler);
        assert_true(route_table[i].summary[0] != '\0');
        buf_add_char(&path, '/');
        assert_null(route_find(route_table[i].method, buf_cstr(&path), params));
    }
}

static void test_router__params_are_cut_out(void **state)
{
    (void)state;
    struct str params[API_PARAMS_MAX];
    assert_non_null(route_find("GET", "/v1/parts/c-12/345", params));
    assert_str_view(params[0], "c-12");
    assert_str_view(params[1], "345");
    assert_non_null(route_find("POST", "/v1/campaigns/c-7:pause", params));
    assert_str_view(params[0], "c-7");
    assert_non_null(route_find("HEAD", "/v1/campaigns", params));
    assert_non_null(route_find("PATCH", "/v1/projects/laion.v2", params));
    assert_str_view(params[0], "laion.v2");
}

static void test_router__nearly_right_is_wrong(void **state)
{
    (void)state;
    static const char *const paths[] = {"",
                                        "/",
                                        "/v1",
                                        "/v1/",
                                        "/v1/campaigns/",
                                        "/v1/campaigns/c-1/",
                                        "/v1/campaigns/c-1:",
                                        "/v1/campaigns/c-1:Pause",
                                        "/v1/campaigns/c 1",
                                        "/v1/campaigns/../livez",
                                        "/V1/campaigns",
                                        "//v1/campaigns",
                                        "/v1/parts/c-1",
                                        "/v1/endpoints/a.b",
                                        "/livez/"};
    struct str params[API_PARAMS_MAX];
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        assert_null(route_find("GET", paths[i], params));
    }
    assert_null(route_find("DELETE", "/v1/quotas", params));
    assert_null(route_find("DELETE", "/v1/tokens/viewer-1.secret", params));
    assert_null(route_find("PATCH", "/v1/projects/a.b/", params));
    char methods[ROUTE_METHODS_MAX];
    route_methods("/v1/quotas", methods);
    assert_string_equal(methods, "GET, HEAD");
    route_methods("/v1/campaigns/c-1", methods);
    assert_string_equal(methods, "GET, HEAD, PATCH");
    route_methods("/v1/campaigns/c-1:pause", methods);
    assert_string_equal(methods, "POST");
    route_methods("/v1/nothing", methods);
    assert_string_equal(methods, "");
    assert_null(route_find("get", "/v1/quotas", params));
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_router__every_row_is_found_by_its_own_path),
        cmocka_unit_test(test_router__params_are_cut_out),
        cmocka_unit_test(test_router__nearly_right_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
