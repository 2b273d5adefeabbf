/* Aim: settings of download are taken in every spelling img2dataset's users have in their scripts,
 * mean what its defaults mean, and every fault of a set is told in one message. Method: values and
 * whole sets, as hyperparameters and as flags. */
#include "common/cleanup.h"
#include "common/json.h"
#include "common/setting_value.h"
#include "download/part/img2dataset.h"
#include "download/part/options.h"
#include "download/part/pipeline.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define FAULTS_MAX 16384

static void test_worker_options__numbers(void **state UNUSED)
{
    static const struct {
        const char *text;
        int64_t want;
    } good[] = {
        {"0", 0},        {"7", 7},       {" 7 ", 7},          {"1e6", 1000000}, {"1E+2", 100},
        {"1_000", 1000}, {"256.0", 256}, {"2.5e1", 25},       {"-1", -1},       {"-1.0", -1},
        {"+5", 5},       {"1e-0", 1},    {"1000000", 1000000}};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        int64_t v = 99;
        if (!value_int(good[i].text, -1, 1000000, &v) || v != good[i].want) {
            fail_msg("'%s' is %lld", good[i].text, (long long)v);
        }
    }
    static const char *const bad[] = {"",
                                      " ",
                                      "x",
                                      "1x",
                                      "0x10",
                                      "1e7",
                                      "1000001",
                                      "-2",
                                      "1.5",
                                      "1__0",
                                      "_1",
                                      "1_",
                                      "inf",
                                      "nan",
                                      "1e",
                                      "1e999",
                                      "--1",
                                      "1 2",
                                      "1,000",
                                      "None",
                                      "True",
                                      "1e30",
                                      "9223372036854775808"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t v = 99;
        if (value_int(bad[i], -1, 1000000, &v) || v != 99) {
            fail_msg("'%s' is taken", bad[i]);
        }
    }
    double d = 0;
    assert_true(value_real("1e6", &d) && d == 1e6);
    assert_true(value_real("0.5", &d) && d == 0.5);
    assert_true(value_real("1_000.5", &d) && d == 1000.5);
    assert_true(value_real("inf", &d) && isinf(d));
    assert_true(value_real("Infinity", &d) && isinf(d));
    static const char *const unreal[] = {"", "0", "-1", "-inf", "nan", "0x1p3", "1e999", "1e", "x"};
    for (size_t i = 0; i < ARRAY_LEN(unreal); i++) {
        if (value_real(unreal[i], &d)) {
            fail_msg("'%s' is taken", unreal[i]);
        }
    }
}

static void test_worker_options__flags_and_none(void **state UNUSED)
{
    static const char *const on[] = {"True", "true", "TRUE", "1", "yes"};
    static const char *const off[] = {"False", "false", "0", "no"};
    static const char *const neither[] = {"", "2", "t", "on", "None", "True "};
    bool v = false;
    for (size_t i = 0; i < ARRAY_LEN(on); i++) {
        assert_true(value_flag(on[i], &v) && v);
    }
    for (size_t i = 0; i < ARRAY_LEN(off); i++) {
        assert_true(value_flag(off[i], &v) && !v);
    }
    for (size_t i = 0; i < ARRAY_LEN(neither); i++) {
        assert_false(value_flag(neither[i], &v));
    }
    assert_true(value_is_none("None") && value_is_none("none") && value_is_none("null"));
    assert_true(value_is_none(""));
    assert_false(value_is_none("nothing") || value_is_none("[]") || value_is_none("0"));
}

static void test_worker_options__lists(void **state UNUSED)
{
    static const struct {
        const char *text, *want; /* words, each with a | behind it */
    } good[] = {{"a", "a|"},
                {"a,b", "a|b|"},
                {" a , b ", "a|b|"},
                {"[\"a\",\"b\"]", "a|b|"},
                {"[ 'a' , \"b\" ]", "a|b|"},
                {"('a', 'b',)", "a|b|"},
                {"[a, b c]", "a|b c|"},
                {"['a']", "a|"},
                {"[]", ""},
                {"[ ]", ""},
                {"()", ""},
                {"", ""},
                {"[\"a,b\",\"c]d\"]", "a,b|c]d|"},
                {"['it\\'s', 'a\\\\b']", "it's|a\\b|"},
                {"[\"\\u00e9\"]", "\xc3\xa9|"},
                {"[\"a\", \"\"]", "a|"},
                {"[::1]:80,127.0.0.1:81", "[::1]:80|127.0.0.1:81|"},
                {"[\"a\", \"b\", \"c\"]", "a|b|c|"}};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        char *words[3];
        char got[100] = "";
        AUTO_FREE char *store = NULL;
        const char *why = "";
        int n = value_list(good[i].text, &store, words, ARRAY_LEN(words), &why);
        for (int k = 0; k < n; k++) {
            size_t at = strlen(got);
            (void)snprintf(got + at, sizeof got - at, "%s|", words[k]);
        }
        if (n < 0 || strcmp(got, good[i].want) != 0) {
            fail_msg("%s: %d %s %s", good[i].text, n, got, why);
        }
    }
    static const char *const bad[] = {
        "[\"a\"",        "['a",    "a]",   "['a' 'b']", "[a,[b]]",
        "[\"a\" \"b\"]", "['a'b]", "it's", "a,b,c,d",   "[\"a\",\"b\",\"c\",\"d\"]",
        "['a\\"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char *words[3];
        AUTO_FREE char *store = NULL;
        const char *why = NULL;
        if (value_list(bad[i], &store, words, ARRAY_LEN(words), &why) >= 0 || why == NULL) {
            fail_msg("%s is taken", bad[i]);
        }
    }
}

static bool load(struct download_options *o, struct buf *faults, const char *hyper, size_t argc,
                 const char *const *argv)
{
    AUTO_JSON json_t *h = hyper != NULL ? json_loads(hyper, 0, NULL) : NULL;
    char *args[64];
    assert_true(hyper == NULL || h != NULL);
    for (size_t i = 0; i < argc; i++) {
        args[i] = (char *)(uintptr_t)argv[i];
    }
    buf_reset(faults);
    return options_load(h, (int)argc, args, o, faults);
}

static void test_worker_options__defaults_are_img2datasets(void **state UNUSED)
{
    struct download_options o;
    struct buf faults = BUF_INIT(FAULTS_MAX);
    static const char *const argv[] = {"--output", "o"};
    assert_true(load(&o, &faults, NULL, 2, argv));
    assert_string_equal(o.url_col, "url");
    assert_int_equal(o.extra_columns_n, 0);
    assert_int_equal(o.number_sample_per_shard, 10000);
    assert_int_equal(o.oom_shard_count, 5);
    assert_int_equal(o.thread_count, 256);
    assert_int_equal(o.timeout_s, 10);
    assert_int_equal(o.retries, 0);
    assert_int_equal(o.mode, MODE_INCREMENTAL);
    assert_int_equal(o.robots.n, 4);
    assert_true(str_eq_cstr(o.robots.directives[3], "noimageindex"));
    assert_int_equal(o.robots.token.n, 0);
    assert_null(o.verify_col);
    const struct image_options *im = &o.image;
    assert_int_equal(im->size, 256);
    assert_int_equal(im->mode, RESIZE_BORDER);
    assert_int_equal(im->up, FILTER_LANCZOS);
    assert_int_equal(im->down, FILTER_AREA);
    assert_int_equal(im->format, IMAGE_JPEG);
    assert_int_equal(im->quality, 95);
    assert_int_equal(im->hash, HASH_SHA256);
    assert_int_equal(im->min_size, 0);
    assert_true(isinf(im->max_area) && isinf(im->max_aspect));
    assert_true(im->exif);
    assert_false(im->only_if_bigger || im->keep_same || im->keep_all || im->orient || im->fast);
    assert_false(o.ignore_ssl_certificate || o.retry_failed);
    /* Where ours differ. */
    assert_string_equal(o.caption_col, "auto");
    assert_string_equal(o.url_list, "");
    assert_int_equal(o.processes_count, 0);
    options_done(&o);
    buf_done(&faults);
}

static void test_worker_options__none_means_not_given(void **state UNUSED)
{
    struct download_options o;
    struct buf faults = BUF_INIT(FAULTS_MAX);
    assert_true(load(&o, &faults,
                     "{\"output_folder\":\"o\",\"caption_col\":\"None\",\"compute_hash\":\"None\","
                     "\"verify_hash\":\"None\",\"save_additional_columns\":\"None\","
                     "\"user_agent_token\":\"None\",\"disallowed_header_directives\":\"None\","
                     "\"bbox_col\":\"None\",\"url_list\":\"None\",\"dns\":\"None\"}",
                     0, NULL));
    assert_string_equal(o.caption_col, "");
    assert_int_equal(o.image.hash, HASH_NONE);
    assert_null(o.verify_col);
    assert_int_equal(o.extra_columns_n, 0);
    assert_int_equal(o.robots.token.n, 0);
    assert_int_equal(o.robots.n, 4);
    assert_string_equal(o.url_list, "");
    options_done(&o);
    assert_true(load(&o, &faults,
                     "{\"output_folder\":\"o\",\"disallowed_header_directives\":\"[]\","
                     "\"save_additional_columns\":\"[]\"}",
                     0, NULL));
    assert_int_equal(o.robots.n, 0);
    assert_int_equal(o.extra_columns_n, 0);
    options_done(&o);
    buf_done(&faults);
}

static void test_worker_options__flags_in_every_spelling(void **state UNUSED)
{
    struct download_options o;
    struct buf faults = BUF_INIT(FAULTS_MAX);
    static const char *const argv[] = {"--output-folder=o",
                                       "--image-size",
                                       "384",
                                       "--resize_mode='keep_ratio'",
                                       "--resize-only-if-bigger",
                                       "--noextract_exif",
                                       "--skip_reencode=True",
                                       "--fast_decode",
                                       "False",
                                       "--number_sample_per_shard",
                                       "1e3",
                                       "--max_image_area=1e6",
                                       "--upscale_interpolation",
                                       "lanczos4",
                                       "--downscale_interpolation=bilinear",
                                       "--save-additional-columns",
                                       "['NSFW', \"similarity\"]",
                                       "--verify_hash",
                                       "[\"sum\",\"md5\"]",
                                       "--compute_hash=md5",
                                       "--max_shard_retry=1",
                                       "--subjob_size",
                                       "1000",
                                       "--enable_wandb",
                                       "False",
                                       "--image_size",
                                       "512"};
    if (!load(&o, &faults, "{\"output\":\"other\",\"retries\":\"2\"}", ARRAY_LEN(argv), argv)) {
        fail_msg("%s", buf_cstr(&faults));
    }
    assert_string_equal(o.output_folder, "o");
    assert_int_equal(o.image.size, 512); /* the last one */
    assert_int_equal(o.image.mode, RESIZE_KEEP);
    assert_true(o.image.only_if_bigger && o.image.keep_same);
    assert_false(o.image.exif || o.image.fast);
    assert_int_equal(o.number_sample_per_shard, 1000);
    assert_true(o.image.max_area == 1e6);
    assert_int_equal(o.image.up, FILTER_LANCZOS);
    assert_int_equal(o.image.down, FILTER_LINEAR);
    assert_int_equal(o.extra_columns_n, 2);
    assert_string_equal(o.extra_columns[0], "NSFW");
    assert_string_equal(o.verify_col, "sum");
    assert_int_equal(o.retries, 2);
    options_done(&o);
    static const struct {
        const char *name;
        enum resize_filter filter;
    } filters[] = {{"nearest", FILTER_NEAREST}, {"linear", FILTER_LINEAR},
                   {"bilinear", FILTER_LINEAR}, {"cubic", FILTER_CUBIC},
                   {"bicubic", FILTER_CUBIC},   {"area", FILTER_AREA},
                   {"lanczos", FILTER_LANCZOS}, {"lanczos4", FILTER_LANCZOS}};
    for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
        const char *const named[] = {"--output", "o", "--upscale_interpolation", filters[i].name};
        assert_true(load(&o, &faults, NULL, 4, named));
        assert_int_equal(o.image.up, filters[i].filter);
        options_done(&o);
    }
    buf_done(&faults);
}

/* Every setting with a bound, just inside and just outside. */
static void test_worker_options__bounds(void **state UNUSED)
{
    static const struct {
        const char *name, *least, *most, *below, *above;
    } bounds[] = {{"image_size", "1", "8192", "0", "8193"},
                  {"number_sample_per_shard", "1", "100000", "0", "100001"},
                  {"oom_shard_count", "1", "10", "0", "11"},
                  {"encode_quality", "0", "100", "-1", "102"},
                  {"min_image_size", "0", "16384", "-1", "16385"},
                  {"timeout", "1", "600", "0", "601"},
                  {"retries", "0", "10", "-1", "11"},
                  {"thread_count", "1", "1024", "0", "1025"},
                  {"fetch_threads", "0", "32", "-1", "33"},
                  {"host_connections", "0", "1024", "-1", "1025"},
                  {"processes_count", "0", "256", "-1", "257"},
                  {"progress_interval", "1", "3600", "0", "3601"},
                  {"stop_seconds", "2", "115", "1", "116"},
                  {"max_image_area", "1e-9", "inf", "0", "nan"},
                  {"max_aspect_ratio", "1", "inf", "-1", "1e999"}};
    struct download_options o;
    struct buf faults = BUF_INIT(FAULTS_MAX);
    for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
        const char *const values[] = {bounds[i].least, bounds[i].most, bounds[i].below,
                                      bounds[i].above};
        for (size_t k = 0; k < 4; k++) {
            AUTO_FREE char *flag = xasprintf("--%s=%s", bounds[i].name, values[k]);
            const char *const argv[] = {"--output=o", flag};
            bool ok = load(&o, &faults, NULL, 2, argv);
            if (ok != (k < 2) || (!ok && strstr(buf_cstr(&faults), bounds[i].name) == NULL)) {
                fail_msg("%s: %d %s", flag, ok, buf_cstr(&faults));
            }
            if (ok) {
                options_done(&o);
            }
        }
    }
    buf_done(&faults);
}

/* An eighth, 32 to 64; a sixteenth where that is more. */
static void test_worker_options__a_host_has_a_share_of_the_transfers(void **state UNUSED)
{
    static const struct {
        int64_t transfers, share;
    } cases[] = {{1, 32},   {256, 32},  {264, 33},  {511, 63},  {512, 64},
                 {520, 64}, {1024, 64}, {1039, 64}, {1040, 65}, {18432, 1152}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(pipeline_host_share(cases[i].transfers), cases[i].share);
    }
}

static void test_worker_options__all_faults_in_one_message(void **state UNUSED)
{
    struct download_options o;
    struct buf faults = BUF_INIT(FAULTS_MAX);
    static const char *const argv[] = {"--resize_mode=stretch",
                                       "--encode_format",
                                       "gif",
                                       "--compute_hash=crc",
                                       "--upscale_interpolation=x",
                                       "--downscale_interpolation=None",
                                       "--image_size=0",
                                       "--max_image_area=0",
                                       "--extract_exif=maybe",
                                       "--incremental_mode=x",
                                       "--save_additional_columns=['url','a','a']",
                                       "--verify_hash=['h','md5']",
                                       "--imagesize=3",
                                       "--allow_net=nonsense",
                                       "stray",
                                       "--output_format=zip",
                                       "--disallowed_header_directives=['a",
                                       "--timeout"};
    static const char *const words[] = {"resize_mode 'stretch'",
                                        "encode_format 'gif'",
                                        "compute_hash 'crc'",
                                        "upscale_interpolation 'x'",
                                        "downscale_interpolation 'None'",
                                        "image_size '0'",
                                        "max_image_area '0'",
                                        "extract_exif 'maybe'",
                                        "incremental_mode 'x'",
                                        "'url' is a name of the output's own",
                                        "'a' is there twice",
                                        "verify_hash '['h','md5']'",
                                        "did you mean 'image_size'?",
                                        "allow_net: ",
                                        "unexpected argument 'stray'",
                                        "output_format 'zip': expected one of webdataset, files",
                                        "disallowed_header_directives '['a': brackets",
                                        "--timeout needs a value",
                                        "output_folder is missing",
                                        "retrys"};
    assert_false(load(&o, &faults, "{\"retrys\":\"1\"}", ARRAY_LEN(argv), argv));
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strstr(buf_cstr(&faults), words[i]) == NULL) {
            fail_msg("no '%s' in: %s", words[i], buf_cstr(&faults));
        }
    }
    size_t lines = 0;
    for (const char *p = buf_cstr(&faults); *p != '\0'; p++) {
        lines += *p == '\n' ? 1 : 0;
    }
    assert_int_equal(lines, ARRAY_LEN(words)); /* each once */
    static const char *const no_hash[] = {"--output=o", "--compute_hash=None",
                                          "--verify_hash=h,sha256"};
    assert_false(load(&o, &faults, NULL, 3, no_hash));
    assert_non_null(strstr(buf_cstr(&faults), "compute_hash is None"));
    buf_done(&faults);
}

static void test_worker_options__help_tells_of_all(void **state UNUSED)
{
    struct buf help = BUF_INIT(64u << 10);
    options_help(&help);
    static const char *const img2dataset[] = {"url_list",
                                              "output_folder",
                                              "input_format",
                                              "url_col",
                                              "caption_col",
                                              "bbox_col",
                                              "save_additional_columns",
                                              "output_format",
                                              "number_sample_per_shard",
                                              "oom_shard_count",
                                              "processes_count",
                                              "thread_count",
                                              "subjob_size",
                                              "distributor",
                                              "image_size",
                                              "resize_mode",
                                              "resize_only_if_bigger",
                                              "upscale_interpolation",
                                              "downscale_interpolation",
                                              "encode_format",
                                              "encode_quality",
                                              "skip_reencode",
                                              "disable_all_reencoding",
                                              "min_image_size",
                                              "max_image_area",
                                              "max_aspect_ratio",
                                              "extract_exif",
                                              "compute_hash",
                                              "verify_hash",
                                              "timeout",
                                              "retries",
                                              "max_shard_retry",
                                              "incremental_mode",
                                              "user_agent_token",
                                              "disallowed_header_directives",
                                              "ignore_ssl_certificate",
                                              "enable_wandb",
                                              "wandb_project"};
    for (size_t i = 0; i < ARRAY_LEN(img2dataset); i++) {
        AUTO_FREE char *line = xasprintf("\n  --%s ", img2dataset[i]);
        if (i > 0 && strstr(buf_cstr(&help), line) == NULL) {
            fail_msg("nothing on %s", img2dataset[i]);
        }
    }
    size_t n;
    (void)img2dataset_options(&n);
    assert_int_equal(n, ARRAY_LEN(img2dataset)); /* and no others */
    assert_non_null(strstr(buf_cstr(&help),
                           "--caption_col              same name; default there None, here auto;"));
    assert_non_null(
        strstr(buf_cstr(&help), "--processes_count          same name; default there 1, here 0;"));
    struct str rest = buf_str(&help);
    while (rest.n > 0) {
        assert_true(str_split(&rest, '\n').n < 80); /* of a terminal */
    }
    buf_done(&help);
}

/* What the table says is what settings do. */
static void test_worker_options__the_table_of_img2datasets_is_true(void **state UNUSED)
{
    struct buf faults = BUF_INIT(FAULTS_MAX);
    size_t n;
    size_t rows_n;
    const struct img2dataset_option *theirs = img2dataset_options(&n);
    const struct setting *rows = options_rows(&rows_n);
    for (size_t i = 0; i < n; i++) {
        const struct setting *row = NULL;
        struct download_options o;
        for (size_t k = 0; k < rows_n; k++) {
            row = strcmp(rows[k].name, theirs[i].name) == 0 ? &rows[k] : row;
        }
        if (theirs[i].refused != (row == NULL) || (row == NULL && theirs[i].why == NULL)) {
            fail_msg("%s", theirs[i].name);
        }
        bool required = strcmp(theirs[i].dflt, "required") == 0;
        const char *value = required ? "x" : theirs[i].dflt;
        AUTO_FREE char *flag = xasprintf("--%s=%s", theirs[i].name, value);
        const char *const argv[] = {"--output_folder=o", flag};
        if (!load(&o, &faults, NULL, 2, argv)) { /* their default is a value here */
            fail_msg("%s: %s", flag, buf_cstr(&faults));
        }
        options_done(&o);
        if (theirs[i].refused) {
            AUTO_FREE char *other = xasprintf("--%s=other", theirs[i].name);
            AUTO_FREE char *want =
                xasprintf("%s 'other' is not possible: %s\n", theirs[i].name, theirs[i].why);
            const char *const bad[] = {"--output_folder=o", other};
            assert_false(load(&o, &faults, NULL, 2, bad));
            assert_string_equal(buf_cstr(&faults), want);
        } else if (row != NULL && theirs[i].why == NULL) { /* nothing differs */
            const char *dflt = row->dflt[0] != '\0' ? row->dflt : "None";
            assert_string_equal(dflt, theirs[i].dflt);
        }
    }
    buf_done(&faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_options__numbers),
        cmocka_unit_test(test_worker_options__flags_and_none),
        cmocka_unit_test(test_worker_options__lists),
        cmocka_unit_test(test_worker_options__defaults_are_img2datasets),
        cmocka_unit_test(test_worker_options__none_means_not_given),
        cmocka_unit_test(test_worker_options__flags_in_every_spelling),
        cmocka_unit_test(test_worker_options__bounds),
        cmocka_unit_test(test_worker_options__a_host_has_a_share_of_the_transfers),
        cmocka_unit_test(test_worker_options__all_faults_in_one_message),
        cmocka_unit_test(test_worker_options__help_tells_of_all),
        cmocka_unit_test(test_worker_options__the_table_of_img2datasets_is_true),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
