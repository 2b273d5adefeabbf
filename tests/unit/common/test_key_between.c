/* Aim: the key lies between, whatever the two are, and divides numbers near their middle. Method:
 * examples, and random pairs of keys over small and large alphabets. */
#include "common/key_between.h"
#include "common/rng.h"
#include "common/str.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <string.h>

static const char *between(const char *low, const char *high, size_t fixed_n)
{
    static char ret[64];
    return key_between(low, high, fixed_n, ret, sizeof ret) ? ret : "(none)";
}

static void test_key_between__numbers_are_halved(void **state)
{
    (void)state;
    assert_string_equal(between("part-0000999.parquet", "", 5), "part-5");
    assert_string_equal(between("part-0000999.parquet", "part-5", 5), "part-2");
    assert_string_equal(between("part-0000999.parquet", "part-1", 5), "part-05");
    assert_string_equal(between("part-7", "", 5), "part-8");
    assert_string_equal(between("part-9", "", 5), "part-\\"); /* letters may follow */
    assert_string_equal(between("a/", "", 2), "a/O");
    assert_string_equal(between("c0ffee", "d", 0), "c5");
}

static void test_key_between__longer_characters_stay_whole(void **state)
{
    (void)state;
    assert_string_equal(between("k\xC3\xA4", "", 1), "k\xC3\xA4O");
    assert_string_equal(between("k\xC3\xA4x1", "k\xC3\xA5", 1), "k\xC3\xA4y");
    assert_string_equal(between("k1", "k\xC3\xA5", 1), "kX");
}

static void test_key_between__there_may_be_none(void **state)
{
    (void)state;
    char small[4];
    assert_string_equal(between("k", "k ", 0), "(none)");
    assert_false(key_between("abcd", "abce", 0, small, sizeof small));
}

static void random_key(struct rng *r, unsigned from, unsigned letters, char *ret)
{
    size_t n = 1 + rng_below(r, 8);
    for (size_t i = 0; i < n; i++) {
        ret[i] = (char)(from + rng_below(r, letters));
    }
    ret[n] = '\0';
}

static void test_key_between__it_lies_between(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 7);
    int none = 0;
    for (int i = 0; i < 200000; i++) {
        char a[16], b[16], got[32];
        unsigned wide = i % 2 == 0 ? 95 : 3;
        random_key(&r, wide == 95 ? ' ' : 'a', wide, a);
        random_key(&r, wide == 95 ? ' ' : 'a', wide, b);
        int order = strcmp(a, b);
        const char *low = order < 0 ? a : b;
        const char *high = order < 0 ? b : i % 16 == 0 ? "" : a;
        if (order == 0) {
            continue;
        }
        if (!key_between(low, high, 0, got, sizeof got)) {
            none++; /* "k" and "k ..." only: a byte below the space is never put in */
            assert_true(high[0] != '\0' && strncmp(low, high, strlen(low)) == 0);
            continue;
        }
        assert_true(strcmp(low, got) < 0);
        assert_true(high[0] == '\0' || strcmp(got, high) < 0);
    }
    assert_true(none < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_between__numbers_are_halved),
        cmocka_unit_test(test_key_between__longer_characters_stay_whole),
        cmocka_unit_test(test_key_between__there_may_be_none),
        cmocka_unit_test(test_key_between__it_lies_between),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("key between", tests, NULL, NULL);
}
