/* Aim: two campaign files differ in exactly the keys that have other values, each with its place
 * and both values; secrets stay away from who may not see them. Method: pairs of small texts. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "core/spec/spec_diff.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* "pointer|message|code|line" of every difference, by blanks. */
static char *diff_of(const char *before, const char *after, bool secrets)
{
    struct faults *f = xcalloc(1, sizeof *f);
    struct buf b = BUF_INIT(65536);
    spec_diff(str_of(before), str_of(after), secrets, f);
    for (int i = 0; i < f->n; i++) {
        buf_addf(&b, "%s%s|%s|%s|%d", i == 0 ? "" : "; ", f->at[i].pointer, f->at[i].message,
                 f->at[i].code, f->at[i].pos.line);
    }
    if (f->dropped > 0) {
        buf_addf(&b, " +%d", f->dropped);
    }
    free(f);
    buf_add_cstr(&b, "");
    char *text = xstrdup(buf_cstr(&b));
    buf_done(&b);
    return text;
}

static void assert_diff(const char *before, const char *after, const char *want)
{
    AUTO_FREE char *got = diff_of(before, after, true);
    assert_string_equal(got, want);
}

static void test_spec_diff__form_is_no_difference(void **state)
{
    (void)state;
    assert_diff("a: 1\nb: {c: x, d: [1, 2]}\n",
                "# note\n{\"b\": {\"d\": [1, 2], \"c\": \"x\"}, a: 1}", "");
    assert_diff("a: &x 1\nb: *x\n", "a: 1\nb: 1\n", "");
    assert_diff("a: [", "a: 1", "");
}

static void test_spec_diff__values_and_places(void **state)
{
    (void)state;
    assert_diff("a: 1\nb: 2\n", "a: 1\nb: 3\n", "b|2 -> 3|changed|2");
    assert_diff("a: 1\n", "a: 1\nl: {p: 4, q: 5}\n",
                "l.p|(none) -> 4|added|2; l.q|(none) -> 5|added|2");
    assert_diff("a: 1\nb: 2\n", "a: 1\n", "b|2 -> (none)|removed|0");
    assert_diff("t: x\n", "t: [x, y]\n", "t|x -> [x, y]|changed|1");
    assert_diff("t: [x, y]\n", "t: []\n", "t|[x, y] -> []|changed|1");
    assert_diff("r: [{a: 1}]\n", "r: [{a: 2}]\n", "r|[...] -> [...]|changed|1");
    assert_diff("v: 1\n", "v: {a: 1}\n", "v|changed|changed|1");
}

static void test_spec_diff__entries_are_matched_by_name(void **state)
{
    (void)state;
    assert_diff("stages:\n- {name: a, n: 1}\n- {name: b, n: 1}\n",
                "stages:\n- {name: b, n: 2}\n- {name: c, n: 1}\n",
                "stages.b.n|1 -> 2|changed|2; stages.c|added|added|3; "
                "stages.a|removed|removed|0");
}

static void test_spec_diff__secrets_are_left_out(void **state)
{
    (void)state;
    const char *before = "vars: {k: s1}\nstages: [{name: a, environment: {E: s1}, vars: 1}]\n";
    const char *after = "vars: {k: s2}\nstages: [{name: a, environment: {F: s2}, vars: 2}]\n";
    AUTO_FREE char *got = diff_of(before, after, false);
    assert_string_equal(got, "vars.k|changed|changed|1; stages.a.environment.F|added|added|2; "
                             "stages.a.environment.E|removed|removed|0; "
                             "stages.a.vars|1 -> 2|changed|2");
    AUTO_FREE char *all = diff_of(before, after, true);
    assert_non_null(strstr(all, "vars.k|s1 -> s2|"));
}

static void test_spec_diff__long_values_are_cut(void **state)
{
    (void)state;
    struct buf a = BUF_INIT(65536);
    struct buf b = BUF_INIT(65536);
    buf_add_cstr(&a, "a: x");
    for (int i = 0; i < 300; i++) {
        buf_add_cstr(&a, "\xc3\xa4");
        buf_addf(&b, "k%d: 1\n", i);
    }
    AUTO_FREE char *got = diff_of(buf_cstr(&a), "a: y\n", true);
    assert_true(str_is_utf8(str_of(got)));
    assert_true(strlen(got) < 160);
    assert_non_null(strstr(got, "... -> y|"));
    AUTO_FREE char *many = diff_of("z: 1\n", buf_cstr(&b), true);
    assert_non_null(strstr(many, " +237"));
    buf_done(&a);
    buf_done(&b);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_diff__form_is_no_difference),
        cmocka_unit_test(test_spec_diff__values_and_places),
        cmocka_unit_test(test_spec_diff__entries_are_matched_by_name),
        cmocka_unit_test(test_spec_diff__secrets_are_left_out),
        cmocka_unit_test(test_spec_diff__long_values_are_cut),
    };
    return cmocka_run_group_tests_name("spec_diff", tests, NULL, NULL);
}
