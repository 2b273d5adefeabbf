/* Aim: a product of AWS Pricing becomes the price of what drover rents or none, whatever else it
 * says and however broken it is; all pages of all kinds are read, or the reading fails. Method:
 * products as texts, one of them damaged at random; build/bin/drover-local with more types than a
 * page has. */
#include "common/clock.h"
#include "common/rng.h"
#include "orchestrator/aws/pricing.c" /* NOLINT(bugprone-suspicious-include): its statics */
#include "tests/kit/local.h"
#include "tests/unit/unit.h"

#define TYPES 230 /* pages of 100 */

static struct local local;
static struct loop *l;
static struct aws_client *c;

#define OFFER(UNIT, USD)                                                                           \
    "\"terms\":{\"Reserved\":{\"x\":{\"priceDimensions\":{\"y\":{\"unit\":\"Hrs\","                \
    "\"pricePerUnit\":{\"USD\":\"9\"}}}}},\"OnDemand\":{\"S.O\":{\"priceDimensions\":{\"S.O.R\":"  \
    "{\"unit\":\"" UNIT "\",\"pricePerUnit\":{\"USD\":\"" USD "\"}}}}}}}"
#define PRODUCT(FAMILY, ATTRIBUTES, UNIT, USD)                                                     \
    "{\"product\":{\"sku\":\"S\",\"productFamily\":\"" FAMILY "\",\"attributes\":{" ATTRIBUTES     \
    "}}," OFFER(UNIT, USD)
#define TRAINING                                                                                   \
    "\"regionCode\":\"us-east-1\",\"instanceName\":\"ml.m5.large\",\"platoinstancetype\":"         \
    "\"Training\""

static void test_product__what_is_rented_has_a_price(void **state)
{
    static const struct {
        const char *text, *key;
        musd_t musd;
    } rows[] = {
        {PRODUCT("ML Instance", TRAINING, "Hrs", "0.1150000000"), "ml.m5.large", 115000},
        {PRODUCT("ML Instance", TRAINING, "hours", "7"), "ml.m5.large", 7000000},
        {PRODUCT("ML Instance", TRAINING, "Hrs", "0.0000005000"), "ml.m5.large", 1},
        {PRODUCT("ML Instance", TRAINING, "Hrs", "0.1234565"), "ml.m5.large", 123457},
        {PRODUCT("ML Instance",
                 "\"instanceType\":\"ml.p6-b200.48xlarge-Hosting\",\"component\":\"Hosting\"",
                 "Hrs", "117.5"),
         "hosting:ml.p6-b200.48xlarge", 117500000},
        {PRODUCT("ML Instance",
                 "\"platoinstancename\":\"ml.u-6tb1.metal\",\"platoinstancetype\":\"training\"",
                 "Hrs", "1"),
         "ml.u-6tb1.metal", 1000000},
        {PRODUCT(
             "Storage",
             "\"fileSystemType\":\"Lustre\",\"storageType\":\"SSD\",\"usagetype\":\"USE1-Scratch\"",
             "GB-Mo", "0.1400000000"),
         "storage:SCRATCH_2", 140000},
        {PRODUCT("Storage", "\"fileSystemType\":\"Lustre\",\"deploymentOption\":\"Persistent_2\"",
                 "GB-month", "0.2"),
         "storage:PERSISTENT_2", 200000},
        {PRODUCT("Storage", "\"fileSystemType\":\"Lustre\",\"throughputCapacity\":\"125 MB/s/TiB\"",
                 "GB-Mo", "0.145"),
         "storage:PERSISTENT_2/125", 145000},
        {PRODUCT("Storage",
                 "\"fileSystemType\":\"Lustre\",\"usagetype\":\"USE1-Persistent_2\","
                 "\"throughputCapacity\":\"1,000MBps\"",
                 "GB-Mo", "0.6"),
         "storage:PERSISTENT_2/1000", 600000},
        {PRODUCT("Storage",
                 "\"fileSystemType\":\"Lustre\",\"usagetype\":\"USE1-Persistent_1\","
                 "\"throughputCapacity\":\"200\"",
                 "GB-Mo", "0.29"),
         "storage:PERSISTENT_1/200", 290000},
        {PRODUCT("Storage",
                 "\"fileSystemType\":\"Lustre\",\"usagetype\":\"USE1-Persistent_2\","
                 "\"throughputCapacity\":\"50\"",
                 "GB-Mo", "0.2"),
         "storage:PERSISTENT_2", 200000}, /* which has none of 50 */
        {PRODUCT("Storage",
                 "\"fileSystemType\":\"Lustre\",\"usagetype\":\"USE1-Scratch\","
                 "\"throughputCapacity\":\"200\"",
                 "GB-Mo", "0.14"),
         "storage:SCRATCH_2", 140000},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct price_value v;
        struct err err = ERR_INIT;
        assert_int_equal(price_product_read(str_of(rows[i].text), "us-east-1", &v, &err),
                         PRICE_PRODUCT_READ);
        assert_string_equal(v.key, rows[i].key);
        assert_int_equal(v.musd, rows[i].musd);
    }
}

static void test_product__others_and_broken_ones_have_none(void **state)
{
#define OTHER  PRICE_PRODUCT_OTHER
#define BROKEN PRICE_PRODUCT_BROKEN
    static const struct {
        const char *text;
        enum price_product how;
    } rows[] = {
        {PRODUCT("ML Instance",
                 "\"regionCode\":\"eu-west-1\",\"instanceName\":\"ml.m5.large\","
                 "\"platoinstancetype\":\"Training\"",
                 "Hrs", "1"),
         OTHER},
        {PRODUCT("ML Instance",
                 "\"instanceName\":\"ml.m5.large\",\"platoinstancetype\":\"Notebook\"", "Hrs", "1"),
         OTHER},
        {PRODUCT("ML Instance",
                 "\"instanceName\":\"ml.m5.large\",\"platoinstancetype\":"
                 "\"SpotTraining\"",
                 "Hrs", "1"),
         OTHER},
        {PRODUCT("ML Instance", "\"instanceName\":\"m5.large\",\"platoinstancetype\":\"Training\"",
                 "Hrs", "1"),
         OTHER},
        {PRODUCT("ML Instance",
                 "\"instanceName\":\"ml.a-type-of-which-the-name-is-too.long\","
                 "\"platoinstancetype\":\"Training\"",
                 "Hrs", "1"),
         OTHER},
        {PRODUCT("ML Instance", TRAINING, "Hrs", "0.0000000000"), OTHER},
        {PRODUCT("ML Instance", TRAINING, "GB-Mo", "1"), OTHER},
        {PRODUCT("ML Instance", "\"instanceName\":7,\"platoinstancetype\":[]", "Hrs", "1"), OTHER},
        {PRODUCT("Storage", "\"fileSystemType\":\"Windows\",\"usagetype\":\"Scratch\"", "GB-Mo",
                 "1"),
         OTHER},
        {PRODUCT("Storage",
                 "\"fileSystemType\":\"Lustre\",\"storageType\":\"HDD\",\"usagetype\":"
                 "\"Persistent_1\"",
                 "GB-Mo", "1"),
         OTHER},
        {PRODUCT("Storage", "\"fileSystemType\":\"Lustre\"", "GB-Mo", "1"), OTHER},
        {"{\"product\":{\"attributes\":{" TRAINING "}}}", OTHER},
        {"{\"product\":{\"attributes\":{" TRAINING "}},\"terms\":{\"OnDemand\":[]}}", OTHER},
        {PRODUCT("ML Instance", TRAINING, "Hrs", "cheap"), BROKEN},
        {PRODUCT("ML Instance", TRAINING, "Hrs", "-1"), BROKEN},
        {PRODUCT("ML Instance", TRAINING, "Hrs", "1.2.3"), BROKEN},
        {PRODUCT("ML Instance", TRAINING, "Hrs", "99999999999999999999"), BROKEN},
        {PRODUCT("ML Instance", TRAINING, "Hrs", "."), BROKEN},
        {"", BROKEN},
        {"{}", BROKEN},
        {"[]", BROKEN},
        {"{\"product\":{\"attributes\":[]}}", BROKEN},
        {"{\"product\":", BROKEN},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct price_value v;
        struct err err = ERR_INIT;
        assert_int_equal(price_product_read(str_of(rows[i].text), "us-east-1", &v, &err),
                         rows[i].how);
        assert_int_equal(err.message[0] != '\0', rows[i].how == BROKEN);
    }
}

/* A damaged product has a price within bounds or none. */
static void test_product__damage_is_survived(void **state)
{
    static const char good[] = PRODUCT("ML Instance", TRAINING, "Hrs", "0.1150000000");
    struct rng rng;
    char text[sizeof good];
    (void)state;
    rng_seed(&rng, 11);
    for (int i = 0; i < 20000; i++) {
        struct price_value v;
        struct err err = ERR_INIT;
        memcpy(text, good, sizeof good);
        size_t n = i % 2 == 0 ? (size_t)rng_below(&rng, sizeof good) : sizeof good - 1;
        for (int k = i % 4; k > 0; k--) {
            text[rng_below(&rng, sizeof good - 1)] = "{}[]\":,\\0.9e-\x01\xff"[rng_below(&rng, 15)];
        }
        if (price_product_read((struct str){text, n}, "us-east-1", &v, &err) ==
            PRICE_PRODUCT_READ) {
            assert_true(v.musd > 0 && v.musd <= INT64_C(1000000) * MUSD_PER_USD);
            assert_true(strlen(v.key) < sizeof v.key && v.key[0] != '\0');
        }
    }
}

static void test_reading__a_key_is_there_once_and_their_number_is_bounded(void **state)
{
    struct price_reading r = {.n = 0};
    struct price_value v = {.key = "ml.m5.large", .musd = 2};
    (void)state;
    assert_true(price_reading_add(&r, &v));
    v.musd = 3;
    assert_true(price_reading_add(&r, &v));
    v.musd = 1;
    assert_true(price_reading_add(&r, &v));
    assert_int_equal(r.n, 1);
    assert_int_equal(r.list[0].musd, 3);
    for (int i = 1; i < PRICE_VALUES_MAX; i++) {
        (void)snprintf(v.key, sizeof v.key, "ml.%d", i);
        assert_true(price_reading_add(&r, &v));
    }
    (void)snprintf(v.key, sizeof v.key, "ml.more");
    assert_false(price_reading_add(&r, &v));
    assert_int_equal(r.n, PRICE_VALUES_MAX);
    free(r.list);
}

struct got {
    int n;
    bool failed;
    struct aws_failure failure;
    struct price_reading reading; /* its list: a copy */
};

static void on_prices(void *ctx, const struct price_reading *r, const struct aws_failure *f)
{
    struct got *g = ctx;
    g->n++;
    g->failed = f != NULL;
    if (f != NULL) {
        g->failure = *f;
        return;
    }
    g->reading = *r;
    g->reading.list = xmalloc(r->n * sizeof *r->list);
    memcpy(g->reading.list, r->list, r->n * sizeof *r->list);
}

static bool open_gate_fn(void *ctx)
{
    (void)ctx;
    return true;
}
static const struct aws_gate open_gate = {open_gate_fn, NULL};

static struct got ask(const char *region)
{
    struct got g = {.n = 0};
    int64_t deadline_us = clock_mono_us() + 60 * USEC_PER_SEC;
    (void)pricing_read(c, open_gate, region, on_prices, &g);
    while (g.n == 0) {
        assert_true(clock_mono_us() < deadline_us);
        loop_run_once(l, 200 * USEC_PER_MSEC);
    }
    assert_int_equal(g.n, 1);
    return g;
}

static musd_t price_of(const struct price_reading *r, const char *key)
{
    musd_t musd = -1;
    for (size_t i = 0; i < r->n; i++) {
        musd = strcmp(r->list[i].key, key) == 0 ? r->list[i].musd : musd;
    }
    return musd;
}

static void test_pricing__is_read_over_pages_and_kinds(void **state)
{
    (void)state;
    struct got g = ask("us-east-1");
    assert_false(g.failed);
    assert_int_equal(g.reading.n, TYPES + 5);
    assert_int_equal(g.reading.products, TYPES + 4); /* the filters leave out what is not rented */
    assert_int_equal(g.reading.unreadable, 0);
    for (int i = 0; i < TYPES; i++) {
        char type[32];
        (void)snprintf(type, sizeof type, "ml.t%d.large", i);
        assert_int_equal(price_of(&g.reading, type), 1000 * (i + 1));
    }
    assert_int_equal(price_of(&g.reading, "hosting:ml.t1.large"), 36000000);
    assert_int_equal(price_of(&g.reading, "storage:SCRATCH_2"), 140000);
    assert_int_equal(price_of(&g.reading, "storage:PERSISTENT_2/125"), 145000);
    assert_int_equal(price_of(&g.reading, "storage:PERSISTENT_2/500"), 340000);
    assert_int_equal(price_of(&g.reading, "storage:PERSISTENT_2"), 340000); /* the dearest */
    free(g.reading.list);
}

static void test_pricing__a_region_without_prices_is_a_failure(void **state)
{
    (void)state;
    struct got g = ask("eu-west-1");
    assert_true(g.failed);
    assert_non_null(strstr(g.failure.message, "no price"));
}

static void test_pricing__an_answer_is_read_whole_or_not(void **state)
{
    static const char *const texts[] = {"{}", "{\"PriceList\":{}}", "{\"PriceList\":\"x\"}",
                                        "{\"PriceList\":[7, \"{\", null]}"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct got g = {.n = 0};
        AUTO_JSON json_t *o = NULL;
        struct pricing_call *p = xcalloc(1, sizeof *p);
        *p = (struct pricing_call){.cb = on_prices, .ctx = &g, .kind = ARRAY_LEN(kinds) - 1};
        assert_true(json_parse(str_of(texts[i]), 4096, &o, NULL));
        on_page(p, o, NULL);
        assert_true(g.n == 1 && g.failed);
    }
}

static void test_pricing__a_cancelled_call_is_silent(void **state)
{
    struct got g = {.n = 0};
    (void)state;
    pricing_cancel(pricing_read(c, open_gate, "us-east-1", on_prices, &g));
    struct got other = ask("us-east-1");
    assert_int_equal(g.n, 0);
    free(other.reading.list);
}

static void test_pricing__regions_have_one_that_answers(void **state)
{
    (void)state;
    assert_string_equal(pricing_region("us-west-2"), "us-east-1");
    assert_string_equal(pricing_region("eu-north-1"), "eu-central-1");
    assert_string_equal(pricing_region("af-south-1"), "eu-central-1");
    assert_string_equal(pricing_region("ap-northeast-2"), "ap-south-1");
    assert_string_equal(pricing_region("cn-north-1"), "cn-northwest-1");
    static const char *const other[] = {"cn-north-1", "us-gov-west-1", "us-iso-east-1",
                                        "eusc-de-east-1"};
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        assert_false(pricing_covers(other[i]));
    }
    assert_true(pricing_covers("us-east-1") && pricing_covers("eu-north-1"));
}

static char *config(void)
{
    AUTO_BUF struct buf b = BUF_INIT(65536);
    buf_add_cstr(&b, "{\"prices\":{");
    for (int i = 0; i < TYPES; i++) {
        buf_addf(&b, "\"ml.t%d.large\":\"0.%03d\",", i, i + 1);
    }
    buf_add_cstr(&b, "\"hosting:ml.t1.large\":\"36\",\"storage:SCRATCH_2\":\"0.14\","
                     "\"storage:PERSISTENT_2/500\":\"0.34\","
                     "\"storage:PERSISTENT_2/125\":\"0.145\"}}");
    return xstrdup(buf_cstr(&b));
}

static int setup(void **state)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *text = config();
    (void)state;
    local_start(&local, text);
    bool ok =
        loop_new(&l, &err) && aws_client_new(l, &(struct aws_config){.region = NULL}, &c, &err);
    return ok ? 0 : 1;
}

static int teardown(void **state)
{
    (void)state;
    aws_client_free(c);
    loop_free(l);
    local_stop(&local);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product__what_is_rented_has_a_price),
        cmocka_unit_test(test_product__others_and_broken_ones_have_none),
        cmocka_unit_test(test_product__damage_is_survived),
        cmocka_unit_test(test_reading__a_key_is_there_once_and_their_number_is_bounded),
        cmocka_unit_test(test_pricing__is_read_over_pages_and_kinds),
        cmocka_unit_test(test_pricing__a_region_without_prices_is_a_failure),
        cmocka_unit_test(test_pricing__an_answer_is_read_whole_or_not),
        cmocka_unit_test(test_pricing__a_cancelled_call_is_silent),
        cmocka_unit_test(test_pricing__regions_have_one_that_answers),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("aws pricing", tests, setup, teardown);
}
