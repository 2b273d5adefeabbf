/* Aim: the last words of a download are right in every case a real run seldom reaches: names of
 * second passes, quoting, narrow terminals, long and hostile texts. Method: the pure functions. */
#include "tests/unit/unit.h"

#include "common/cleanup.h"
#include "common/json.h"
#include "download/part/second_pass.h"
#include "download/part/summary.h"

static void load(struct download_options *o, size_t argc, const char *const *argv)
{
    struct buf faults = BUF_INIT(4096);
    char *args[32];
    for (size_t i = 0; i < argc; i++) {
        args[i] = (char *)(uintptr_t)argv[i];
    }
    if (!options_load(NULL, (int)argc, args, o, &faults)) {
        fail_msg("%s", buf_cstr(&faults));
    }
}

static void test_second_pass__folders(void **state UNUSED)
{
    static const struct {
        const char *output, *want;
    } cases[] = {{"out", "out-retry"},
                 {"out///", "out-retry"},
                 {"out-retry", "out-retry2"},
                 {"out-retry2/", "out-retry3"},
                 {"out-retry99", "out-retry100"},
                 {"out-2", "out-2-retry"},
                 {"retry7", "retry7-retry"},
                 {".", "./retry"},
                 {"a/..", "a/../retry"},
                 {"/", "/retry"},
                 {"s3://", "s3://retry"}, /* refused when it is opened */
                 {"s3:////", "s3://retry"},
                 {"s3://b", "s3://b/retry"},
                 {"s3://b/", "s3://b/retry"},
                 {"s3://b/x/", "s3://b/x-retry"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *got = second_pass_folder(cases[i].output);
        assert_string_equal(got, cases[i].want);
    }
}

static void test_second_pass__has_what_differs_from_the_defaults(void **state UNUSED)
{
    static const char *const argv[] = {"--parquet=p",
                                       "--output=o o",
                                       "--url_col=LINK",
                                       "--image_size=384",
                                       "--caption_col=alt",
                                       "--noextract_exif",
                                       "--input_format=csv",
                                       "--max_aspect_ratio=3",
                                       "--compute_hash=None",
                                       "--timeout=10",
                                       "--incremental_mode=overwrite"};
    struct download_options o;
    AUTO_BUF struct buf b = BUF_INIT(4096);
    load(&o, ARRAY_LEN(argv), argv);
    assert_true(second_pass_command(&o, "drover-worker", 0, &b));
    assert_string_equal(buf_cstr(&b),
                        "drover-worker download --url_list 'o o' --output_folder 'o o-retry' "
                        "--retry_failed --image_size 384 --max_aspect_ratio 3 --extract_exif false "
                        "--compute_hash None");
    buf_reset(&b);
    assert_true(second_pass_command(&o, "drover-worker", 60, &b));
    assert_string_equal(buf_cstr(&b), "drover-worker download --url_list 'o o' \\\n"
                                      "      --output_folder 'o o-retry' --retry_failed \\\n"
                                      "      --image_size 384 --max_aspect_ratio 3 \\\n"
                                      "      --extract_exif false --compute_hash None");
    options_done(&o);
}

static void test_second_pass__captions_and_hashes(void **state UNUSED)
{
    static const struct {
        const char *argv[4];
        const char *has;
        bool drops;
    } cases[] = {{{"--output=o", "--caption_col=None", "", ""}, " --caption_col None", false},
                 {{"--output=o", "--save_additional_columns=text,b", "", ""},
                  " --caption_col caption",
                  false},
                 {{"--output=o", "--verify_hash=sum,sha256", "", ""}, " --retry_failed", true},
                 {{"--output=o", "--verify_hash=sum,sha256", "--save_additional_columns=sum", ""},
                  " --verify_hash sum,sha256",
                  false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct download_options o;
        AUTO_BUF struct buf b = BUF_INIT(4096);
        size_t n = 0;
        while (cases[i].argv[n][0] != '\0') {
            n++;
        }
        load(&o, n, cases[i].argv);
        assert_true(second_pass_command(&o, "w", 0, &b));
        if (strstr(buf_cstr(&b), cases[i].has) == NULL) {
            fail_msg("%s", buf_cstr(&b));
        }
        assert_int_equal(second_pass_drops_hash(&o), cases[i].drops);
        assert_true(!cases[i].drops || strstr(buf_cstr(&b), "verify_hash") == NULL);
        options_done(&o);
    }
}

static void test_summary__fits_every_width(void **state UNUSED)
{
    static const char *const argv[] = {"--output=o", "--output_format=dummy"};
    struct download_options o;
    struct stats t = {0};
    load(&o, ARRAY_LEN(argv), argv);
    for (int i = 0; i < 12; i++) {
        AUTO_FREE char *text = xasprintf("HTTP Error %d: \xc3\xa9\033[2J%0200d", 500 + i, 1);
        stats_add(&t, STATUS_FAILED_TO_DOWNLOAD, text);
    }
    stats_sort(&t);
    struct summary s = {.o = &o, .total = &t, .shards = 1, .seconds = 61};
    for (int width = 0; width < 300; width++) {
        AUTO_BUF struct buf b = BUF_INIT(SUMMARY_BYTES_MAX);
        summary_text(&s, width, &b);
        assert_null(strchr(buf_cstr(&b), '\033'));
        assert_non_null(strstr(buf_cstr(&b), "Finished in 1m01s."));
        assert_non_null(strstr(buf_cstr(&b), "(2 other texts)\n"));
        struct str rest = buf_str(&b);
        while (rest.n > 0) {
            struct str line = str_split(&rest, '\n');
            assert_true(str_is_utf8(line) || line.n == 0);
            bool ours = memmem(line.p, line.n, "HTTP", 4) == NULL;
            assert_true(ours || line.n <= (size_t)MAX(width, SUMMARY_WIDTH_LEAST));
        }
    }
    stats_done(&t);
    options_done(&o);
}

static void test_summary__json_is_one_line(void **state UNUSED)
{
    static const char *const argv[] = {"--output=o"};
    struct download_options o;
    struct stats t = {0};
    AUTO_BUF struct buf b = BUF_INIT(SUMMARY_BYTES_MAX);
    load(&o, 1, argv);
    stats_add(&t, STATUS_SUCCESS, "success");
    stats_add(&t, STATUS_FAILED_TO_RESIZE, "a\n\"b\"\xff");
    struct summary s = {.o = &o, .total = &t, .rows_before = 1, .shards = 1, .second_pass = "x"};
    summary_json(&s, &b);
    assert_true(memchr(b.p, '\n', b.n) == b.p + b.n - 1);
    json_t *v = NULL;
    assert_true(json_parse(buf_str(&b), SUMMARY_BYTES_MAX, &v, NULL));
    assert_int_equal(json_integer_value(json_object_get(v, "failed_to_resize")), 1);
    assert_true(json_is_null(json_object_get(v, "second_pass"))); /* no row could come */
    json_decref(v);
    stats_done(&t);
    options_done(&o);
}

static void test_summary__no_second_pass_for_what_stays_lost(void **state UNUSED)
{
    static const struct {
        const char *text;
        bool final;
    } cases[] = {{"HTTP Error 404: Not Found", true},
                 {"HTTP Error 410: Gone", true},
                 {"Use of image disallowed by X-Robots-Tag directive", true},
                 {"unknown url type: 'x'", true},
                 {"HTTP Error 4040: x", false},
                 {"not HTTP Error 404: x", false},
                 {"HTTP Error 503: Busy", false},
                 {"timed out", false},
                 {"hash mismatch", false}};
    static const char *const argv[] = {"--output=o"};
    struct download_options o;
    load(&o, 1, argv);
    for (size_t i = 0; i <= ARRAY_LEN(cases); i++) {
        struct stats t = {0};
        AUTO_BUF struct buf b = BUF_INIT(SUMMARY_BYTES_MAX);
        bool offered = i < ARRAY_LEN(cases) && !cases[i].final;
        stats_add(&t, STATUS_FAILED_TO_DOWNLOAD, "HTTP Error 404: Not Found");
        stats_add(&t, STATUS_FAILED_TO_RESIZE, "Image decoding error");
        if (i < ARRAY_LEN(cases)) {
            assert_int_equal(second_pass_is_final(cases[i].text), cases[i].final);
            stats_add(&t, STATUS_FAILED_TO_DOWNLOAD, cases[i].text);
        }
        stats_sort(&t);
        struct summary s = {.o = &o, .total = &t, .shards = 1, .second_pass = "the command"};
        summary_text(&s, 80, &b);
        assert_int_equal(strstr(buf_cstr(&b), "the command") != NULL, offered);
        buf_reset(&b);
        summary_json(&s, &b);
        assert_int_equal(strstr(buf_cstr(&b), "the command") != NULL, offered);
        stats_done(&t);
    }
    options_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_pass__folders),
        cmocka_unit_test(test_second_pass__has_what_differs_from_the_defaults),
        cmocka_unit_test(test_second_pass__captions_and_hashes),
        cmocka_unit_test(test_summary__no_second_pass_for_what_stays_lost),
        cmocka_unit_test(test_summary__fits_every_width),
        cmocka_unit_test(test_summary__json_is_one_line),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
