/* What a Pipe channel sends. Aim: an epoch's order is a permutation that its seed and number give,
 * hosts share a sharded one without gaps; the value of an attribute is found whatever stands around
 * it in its line. Method: tables, and all lines of random JSON against jansson's reading. */
#include "tests/unit/unit.h"

#include "common/rng.h"
#include "local/jobs/feed_plan.h"

#define UNITS 97

/* `channel` must outlive the plan. */
static struct feed_plan plan_of(const json_t *channel)
{
    struct feed_plan p;
    assert_non_null(channel);
    feed_plan_init(&p, channel);
    for (int i = 0; i < UNITS; i++) {
        AUTO_FREE char *unit = xasprintf("unit-%d", i);
        feed_plan_add(&p, str_of(unit));
    }
    assert_string_equal(feed_plan_unit(&p, UNITS - 1), "unit-96");
    return p;
}

/* How often each unit comes in an epoch, over all hosts; *ret_same: the first host's order is that
 * of the units. */
static void count_units(const struct feed_plan *p, int64_t epoch, int hosts, int *count,
                        bool *ret_same)
{
    memset(count, 0, UNITS * sizeof *count);
    for (int k = 1; k <= hosts; k++) {
        size_t n;
        AUTO_FREE size_t *order = feed_plan_order(p, epoch, k, hosts, &n);
        for (size_t i = 0; i < n; i++) {
            assert_true(order[i] < UNITS);
            count[order[i]]++;
            *ret_same = k == 1 && i == 0 ? order[i] == 0 : *ret_same && (k > 1 || order[i] == i);
        }
    }
}

static void test_order__is_a_permutation_and_hosts_share_it(void **state UNUSED)
{
    static const struct {
        const char *channel;
        int hosts, each;
        bool same;
    } rows[] = {
        {"{\"ChannelName\":\"c\"}", 1, 1, true},
        {"{\"ChannelName\":\"c\"}", 3, 3, true},
        {"{\"ShuffleConfig\":{\"Seed\":5}}", 1, 1, false},
        {"{\"ShuffleConfig\":{\"Seed\":0}}", 4, 4, false},
        {"{\"ShuffleConfig\":{\"Seed\":-5},\"DataSource\":{\"S3DataSource\":"
         "{\"S3DataDistributionType\":\"ShardedByS3Key\"}}}",
         4, 1, false},
        {"{\"DataSource\":{\"S3DataSource\":{\"S3DataDistributionType\":\"ShardedByS3Key\"}}}", 200,
         1, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON json_t *channel = json_loads(rows[i].channel, 0, NULL);
        CLEANUP(feed_plan_done)
        struct feed_plan p = plan_of(channel);
        for (int64_t epoch = 0; epoch < 5; epoch++) {
            int count[UNITS];
            bool same = true;
            count_units(&p, epoch, rows[i].hosts, count, &same);
            for (int u = 0; u < UNITS; u++) {
                assert_int_equal(count[u], rows[i].each);
            }
            assert_int_equal(same, rows[i].same);
        }
    }
}

static void test_order__comes_from_the_seed_and_the_epoch(void **state UNUSED)
{
    size_t *orders[6];
    size_t n;
    for (int i = 0; i < 6; i++) {
        AUTO_JSON json_t *channel = json_pack("{s:{s:i}}", "ShuffleConfig", "Seed", i / 3);
        CLEANUP(feed_plan_done)
        struct feed_plan p = plan_of(channel);
        CLEANUP(feed_plan_done)
        struct feed_plan q = plan_of(channel);
        orders[i] = feed_plan_order(&p, i % 3, 1, 1, &n);
        AUTO_FREE size_t *again = feed_plan_order(&q, i % 3, 1, 1, &n);
        assert_memory_equal(orders[i], again, n * sizeof *again);
        for (int k = 0; k < i; k++) {
            assert_memory_not_equal(orders[i], orders[k], n * sizeof *again);
        }
    }
    for (int i = 0; i < 6; i++) {
        free(orders[i]);
    }
}

static void test_value__is_what_stands_in_the_line(void **state UNUSED)
{
    static const struct {
        const char *line, *name;
        const char *want; /* NULL: refused */
        bool object;
    } rows[] = {
        {"{\"a\":1}", "a", "1", false},
        {" { \"b\" : [ 1,2 ] , \"a\"\t:\t-1.50e3 } ", "a", "-1.50e3", false},
        {"{\"x\":{\"a\":2},\"a\":{\"a\" :3}}", "a", "{\"a\" :3}", false},
        {"{\"x\":\"\\\"a\\\":4,\",\"a\":null}", "a", "null", false},
        {"{\"x\":\"}\\\\\",\"a\":[\"]\",{}]}", "a", "[\"]\",{}]", false},
        {"{\"\\u0061\":true}", "a", "true", false},
        {"{\"a\":\"\"}", "a", "", false},
        {"{\"a\":\"\\\"\\u00e4\"}", "a", "\"\xc3\xa4", false},
        {"{\"a-ref\":\"s3://b/k\"}", "a-ref", "s3://b/k", true},
        {"{\"-ref\":\"x\"}", "-ref", "x", true},
        {"{\"a-refs\":0}", "a-refs", "0", false},
        {"{\"a-ref\":{}}", "a-ref", NULL, false},
        {"{\"a\":1}", "b", NULL, false},
        {"[\"a\"]", "a", NULL, false},
        {"{}", "a", NULL, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON json_t *parsed = json_loads(rows[i].line, 0, NULL);
        AUTO_FREE char *got = NULL;
        struct err err = ERR_INIT;
        bool object = false;
        bool ok = feed_plan_value(str_of(rows[i].line), parsed, rows[i].name, &object, &got, &err);
        assert_int_equal(ok, rows[i].want != NULL);
        if (ok) {
            assert_string_equal(got, rows[i].want);
            assert_int_equal(object, rows[i].object);
        }
    }
}

static json_t *random_json(struct rng *rng, int depth)
{
    static const char *const texts[] = {"", "a", "\"", "\\", "},", "{\"a\":", "[:]", "\xc3\xa4\n"};
    uint64_t kind = rng_below(rng, depth > 0 ? 7 : 5);
    json_t *v = kind == 5 ? json_array() : json_object();
    if (kind < 5) {
        json_decref(v);
        return kind == 0   ? json_null()
               : kind == 1 ? json_boolean(rng_chance(rng, 0.5))
               : kind == 2 ? json_integer((int64_t)rng_u64(rng))
               : kind == 3 ? json_real(rng_unit(rng))
                           : json_string(texts[rng_below(rng, ARRAY_LEN(texts))]);
    }
    for (uint64_t i = rng_below(rng, 5); i > 0; i--) {
        json_t *inner = random_json(rng, depth - 1);
        if (kind == 5) {
            (void)json_array_append_new(v, inner);
        } else {
            (void)json_object_set_new(v, texts[rng_below(rng, ARRAY_LEN(texts))], inner);
        }
    }
    return v;
}

static void test_value__reads_back_as_it_was(void **state UNUSED)
{
    static const size_t forms[] = {JSON_COMPACT, JSON_INDENT(1), JSON_ENSURE_ASCII,
                                   JSON_ESCAPE_SLASH};
    struct rng rng;
    int n = 0;
    rng_seed(&rng, 11);
    for (int i = 0; i < 3000; i++) {
        AUTO_JSON json_t *line = json_object();
        const char *name;
        json_t *v;
        for (int k = 0; k < 4; k++) {
            AUTO_FREE char *key = xasprintf("%d\"%s", k, k % 2 == 0 ? "}" : "\\");
            (void)json_object_set_new(line, key, random_json(&rng, 3));
        }
        AUTO_FREE char *text = json_dumps(line, forms[i % 4]);
        json_object_foreach(line, name, v)
        {
            AUTO_FREE char *got = NULL;
            struct err err = ERR_INIT;
            bool object;
            assert_true(feed_plan_value(str_of(text), line, name, &object, &got, &err));
            AUTO_JSON json_t *read =
                json_is_string(v) ? json_string(got) : json_loads(got, JSON_DECODE_ANY, NULL);
            assert_true(json_equal(read, v));
            n++;
        }
    }
    (void)printf("# %d values\n", n);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order__is_a_permutation_and_hosts_share_it),
        cmocka_unit_test(test_order__comes_from_the_seed_and_the_epoch),
        cmocka_unit_test(test_value__is_what_stands_in_the_line),
        cmocka_unit_test(test_value__reads_back_as_it_was),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("feed_plan", tests, NULL, NULL);
}
