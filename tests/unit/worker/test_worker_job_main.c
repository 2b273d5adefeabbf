/* Aim: what the worker tells of itself is true and fits: the bar in every width, the speed over its
 * window, the JSON of _progress.json. Method: drawn into a buffer, measured in columns by a counter
 * of this file's own. */
#include "tests/unit/unit.h"

#include "common/json.h"
#include "job/memory.h"
#include "job/progress_bar.h"
#include "job/progress_report.h"
#include <sys/mman.h>

/* Columns, without escape sequences; every character drawn is one column wide. */
static int columns(const char *s)
{
    int n = 0;
    for (; *s != '\0'; s++) {
        if (*s == '\033') {
            s += strcspn(s, "mK");
        } else if (*s != '\r' && ((unsigned char)*s & 0xc0) != 0x80) {
            n++;
        }
    }
    return n;
}

static const struct progress_bar_view half = {.unit = "rows",
                                              .done = 1234567,
                                              .total = 2469134,
                                              .eta_s = 3723,
                                              .failed = 1200,
                                              .transfers = 256,
                                              .bytes = INT64_C(130000000000),
                                              .rate = 412.4};

static const char *draw(const struct progress_bar_view *v, const struct progress_bar_screen *s,
                        int width)
{
    static char text[8192];
    AUTO_BUF struct buf b = BUF_INIT(sizeof text - 1);
    progress_bar_line(v, s, width, &b);
    (void)snprintf(text, sizeof text, "%s", buf_cstr(&b));
    return text;
}

/* The same without colour: no escape code, blanks up to the last column but one, here cut off. */
static const char *draw_plain(const struct progress_bar_view *v, int width)
{
    static char text[2048];
    const struct progress_bar_screen plain = {.on = true};
    (void)snprintf(text, sizeof text, "%s", draw(v, &plain, width));
    assert_null(strchr(text, '\033'));
    assert_int_equal(columns(text), width - 1);
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == ' ') {
        text[--n] = '\0';
    }
    return text;
}

static void test_bar__says_everything_in_a_wide_terminal(void **state UNUSED)
{
    assert_string_equal(
        draw_plain(&half, 140),
        "\r 50 %  ####################--------------------  1,234,567/2,469,134 rows"
        "  412/s  1,200 failed  256 open  130 GB  ETA 1h02m");
    struct progress_bar_screen fine = {.on = true, .utf8 = true, .color = true};
    const char *drawn = draw(&half, &fine, 140);
    assert_non_null(strstr(drawn, "\033[32m█"));
    assert_non_null(strstr(drawn, "█\033[2m░"));
    assert_string_equal(drawn + strlen(drawn) - 3, "\033[K");
    int wide = columns(drawn);
    assert_int_equal(wide, (int)strlen(draw_plain(&half, 140)) - 1);
}

static void test_bar__fits_every_width_and_leaves_out_the_least_needed(void **state UNUSED)
{
    struct progress_bar_screen screens[] = {{.on = true},
                                            {.on = true, .utf8 = true, .color = true}};
    struct progress_bar_view huge = {.unit = "shards",
                                     .done = INT64_MAX,
                                     .total = INT64_MAX,
                                     .eta_s = INT64_MAX,
                                     .failed = INT64_MAX,
                                     .transfers = INT64_MAX,
                                     .bytes = INT64_MAX,
                                     .rate = 1e18};
    for (size_t s = 0; s < ARRAY_LEN(screens); s++) {
        for (int width = 0; width <= PROGRESS_BAR_WIDTH_MAX; width++) {
            assert_true(columns(draw(&half, &screens[s], width)) <= MAX(width - 1, 0));
            assert_true(columns(draw(&huge, &screens[s], width)) <= MAX(width - 1, 0));
        }
    }
    assert_string_equal(draw_plain(&half, 6), "\r 50 %");
    assert_string_equal(draw_plain(&half, 18), "\r 50 %  ETA 1h02m");
    assert_string_equal(draw_plain(&half, 45), "\r 50 %  1,234,567/2,469,134 rows  ETA 1h02m");
    assert_string_equal(draw_plain(&half, 80),
                        "\r 50 %  #######-------  1,234,567/2,469,134 rows  412/s  1,200 failed"
                        "  ETA 1h02m");
}

static void test_bar__without_a_total_there_is_no_bar(void **state UNUSED)
{
    struct progress_bar_view v = {.unit = "rows", .done = 5, .total = -1, .eta_s = -1};
    assert_string_equal(draw_plain(&v, 80), "\r5 rows");
    v = (struct progress_bar_view){.unit = "rows", .done = 0, .total = 0, .eta_s = 0};
    assert_string_equal(draw_plain(&v, 40), "\r100 %  --------------  0/0 rows  ETA 0s");
}

static void test_heartbeat__speed_is_that_of_the_window(void **state UNUSED)
{
    struct progress_report_speed s = {.n = 0};
    assert_true(progress_report_rate(&s, 5, 5) == 0);
    progress_report_mark(&s, 1000000, 100); /* rows of an earlier run */
    assert_true(progress_report_rate(&s, 1000000, 100) == 0);
    assert_true(progress_report_rate(&s, 3000000, 100) == 0);
    assert_true(progress_report_rate(&s, 3000000, 120) == 10);
    /* Slow at first, then ten times as fast: once the window has passed only the latter counts. */
    int64_t at = 1000000;
    int64_t done = 100;
    for (int i = 0; i < 100; i++) {
        progress_report_mark(&s, at += 1000000, done += 10);
    }
    for (int i = 0; i < PROGRESS_REPORT_MARKS; i++) {
        progress_report_mark(&s, at += 1000000, done += 100);
    }
    assert_true(progress_report_rate(&s, at + 1000000, done + 100) == 100);
    assert_true(progress_report_rate(&s, at + 1000000, done - 100000) == 0);
}

static void test_heartbeat__json_adds_up(void **state UNUSED)
{
    struct progress p = {.rows_in = -1, .shards_in = 7, .shards_done = 2};
    struct progress_report_config c = {.progress = &p, .task = "12", .attempt = "34"};
    struct progress_report_view v = {.rows_rate = 2.5, .eta_s = -1, .memory = 4096};
    AUTO_BUF struct buf b = BUF_INIT(4096);
    p.successes = 5;
    p.failed_to_download = 3;
    p.failed_to_resize = 1;
    p.transfers = 17;
    p.waiting = 3;
    p.waiting_silent = 2;
    p.waiting_one = 1;
    p.network_away = true;
    p.fetched = 99;
    progress_report_json(&c, &v, INT64_C(1767323045000000), &b);
    assert_string_equal(buf_cstr(&b),
                        "{\"version\":1,\"task\":\"12\",\"attempt\":\"34\",\"rows_in\":null,"
                        "\"rows_done\":9,\"shards_in\":7,\"shards_done\":2,\"successes\":5,"
                        "\"failed_to_download\":3,\"failed_to_resize\":1,\"bytes\":0,"
                        "\"bytes_fetched\":99,\"transfers\":17,\"rows_waiting\":3,"
                        "\"rows_waiting_for_silent_hosts\":2,\"rows_waiting_for_one_host\":1,"
                        "\"network_away\":true,\"rows_per_second\":2.5,"
                        "\"eta_seconds\":null,\"memory_bytes\":4096,"
                        "\"updated\":\"2026-01-02T03:04:05Z\"}");
}

static void test_memory__grows_by_what_is_taken(void **state UNUSED)
{
    size_t n = 64u << 20;
    int64_t before = memory_of_all();
    char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    memset(p, 1, n);
    int64_t with = memory_of_all();
    (void)munmap(p, n);
    assert_true(before > 0);
    assert_true(with - before > (int64_t)n * 9 / 10);
    assert_true(with - before < (int64_t)n * 2);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bar__says_everything_in_a_wide_terminal),
        cmocka_unit_test(test_bar__fits_every_width_and_leaves_out_the_least_needed),
        cmocka_unit_test(test_bar__without_a_total_there_is_no_bar),
        cmocka_unit_test(test_heartbeat__speed_is_that_of_the_window),
        cmocka_unit_test(test_heartbeat__json_adds_up),
        cmocka_unit_test(test_memory__grows_by_what_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
