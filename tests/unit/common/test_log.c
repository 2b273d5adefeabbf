/* Aim: one valid line an event, bounded, without secrets; floods are held back and counted.
 * Method: stderr is a pipe; each line is read back as JSON. A pseudo-terminal shows
 * logfmt, or sentences. */
#include "common/cleanup.h"
#include "common/json.h"
#include "common/log.c" /* NOLINT(bugprone-suspicious-include): for its static functions */
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

struct captured {
    int saved;
    int from;
};

static void capture_begin(struct captured *c, int from, int to)
{
    c->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    c->from = from;
    assert_int_equal(dup2(to, STDERR_FILENO), STDERR_FILENO);
    (void)close(to);
}

static void capture_pipe(struct captured *c)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    (void)fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
    capture_begin(c, fds[0], fds[1]);
}

/* Put stderr back and read what was written. */
static void capture_end(struct captured *c, struct buf *out)
{
    (void)dup2(c->saved, STDERR_FILENO);
    (void)close(c->saved);
    for (;;) {
        char chunk[4096];
        ssize_t n = read(c->from, chunk, sizeof chunk);
        if (n <= 0) {
            break;
        }
        buf_add(out, chunk, (size_t)n);
    }
    (void)close(c->from);
}

static json_t *only_line(const struct buf *b)
{
    json_t *o = NULL;
    struct err err = ERR_INIT;
    assert_true(b->n > 0 && b->n <= 4096);
    assert_int_equal(b->p[b->n - 1], '\n');
    assert_ptr_equal(memchr(b->p, '\n', b->n), b->p + b->n - 1);
    if (!json_parse(buf_str(b), 4096, &o, &err)) {
        fail_msg("%s: %s", buf_cstr(b), err.message);
    }
    return o;
}

static const char *get(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static void test_log__a_line_is_json_with_its_fields(void **state)
{
    (void)state;
    struct captured c;
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    struct err err = {.code = ERR_AWS, .message = "boom \"quoted\""};
    log_set_program("droverd");
    capture_pipe(&c);
    log_event(LOG_INFO, "job_launched", LF_S("job", "a\nb\x01"), LF_I("wait_us", -5),
              LF_B("warm", true), LF_S("none", NULL), LF_ERR(&err));
    capture_end(&c, &b);
    AUTO_JSON json_t *o = only_line(&b);
    assert_string_equal(get(o, "level"), "info");
    assert_string_equal(get(o, "event"), "job_launched");
    assert_string_equal(get(o, "program"), "droverd");
    assert_string_equal(get(o, "job"), "a\nb\x01");
    assert_int_equal(json_integer_value(json_object_get(o, "wait_us")), -5);
    assert_true(json_is_true(json_object_get(o, "warm")));
    assert_true(json_is_null(json_object_get(o, "none")));
    assert_string_equal(get(o, "error_code"), "aws");
    assert_string_equal(get(o, "error"), "boom \"quoted\"");
    assert_int_equal(strlen(get(o, "ts")), 27);
}

static void test_log__an_event_without_fields(void **state)
{
    (void)state;
    struct captured c;
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    capture_pipe(&c);
    log_event_at(LOG_ERROR, "bare", NULL, 0);
    capture_end(&c, &b);
    AUTO_JSON json_t *o = only_line(&b);
    assert_string_equal(get(o, "event"), "bare");
}

static void test_log__secrets_never_show(void **state)
{
    (void)state;
    struct captured c;
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    capture_pipe(&c);
    log_event(LOG_INFO, "x", LF_S("aws_secret_access_key", "HUSH1"), LF_S("Session-Token", "HUSH2"),
              LF_S("authorization", "HUSH3"), LF_S("db_password", "HUSH4"),
              LF_S("x_signature", "HUSH5"), LF_I("token_id", 987654321), LF_B("secret_set", true),
              LF_S("shown", "visible"));
    capture_end(&c, &b);
    assert_null(strstr(buf_cstr(&b), "HUSH"));
    assert_null(strstr(buf_cstr(&b), "987654321"));
    AUTO_JSON json_t *o = only_line(&b);
    assert_string_equal(get(o, "Session-Token"), "***");
    assert_string_equal(get(o, "secret_set"), "***");
    assert_string_equal(get(o, "shown"), "visible");
}

static void test_log__long_lines_stay_valid_and_under_4_kib(void **state)
{
    (void)state;
    char text[9000];
    memset(text, '"', sizeof text - 1); /* each byte becomes two */
    text[sizeof text - 1] = '\0';
    for (size_t n = 1; n < sizeof text; n += 97) {
        struct captured c;
        AUTO_BUF struct buf b = BUF_INIT(1 << 20);
        char *part = xstrndup(text, n);
        capture_pipe(&c);
        log_event(LOG_WARN, "long", LF_S("a", part), LF_S("b", part), LF_S("c", part),
                  LF_I("last", 1));
        capture_end(&c, &b);
        free(part);
        AUTO_JSON json_t *o = only_line(&b);
        assert_int_equal(json_integer_value(json_object_get(o, "last")), 1);
        assert_int_equal(json_object_get(o, "c") == NULL,
                         json_is_true(json_object_get(o, "truncated")));
    }
}

static void test_log__levels(void **state)
{
    (void)state;
    struct captured c;
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    enum log_level level = LOG_INFO;
    assert_true(log_parse_level("warn", &level));
    assert_int_equal(level, LOG_WARN);
    assert_false(log_parse_level("WARN", &level));
    assert_false(log_parse_level("", &level));
    assert_int_equal(level, LOG_WARN);
    capture_pipe(&c);
    log_event(LOG_DEBUG, "unseen", LF_I("n", 1));
    log_set_level(LOG_ERROR);
    log_event(LOG_WARN, "unseen", LF_I("n", 1));
    log_event(LOG_ERROR, "seen", LF_I("n", 1));
    log_set_level(LOG_DEBUG);
    log_event(LOG_DEBUG, "seen", LF_I("n", 2));
    log_set_level(LOG_INFO);
    capture_end(&c, &b);
    assert_null(strstr(buf_cstr(&b), "unseen"));
    struct str rest = buf_str(&b);
    assert_true(str_find(str_split(&rest, '\n'), STR("\"n\":1")) > 0);
    assert_true(str_find(str_split(&rest, '\n'), STR("\"n\":2")) > 0);
    assert_int_equal(rest.n, 0);
}

static void test_log__what_repeats_is_told_ever_more_seldom(void **state)
{
    (void)state;
    struct log_rate r = {.held = 0};
    int64_t told_us[16] = {0};
    int told = 0;
    for (int64_t now_us = 5000000; now_us < 3 * 3600 * USEC_PER_SEC && told < 16;
         now_us += 100000) {
        if (rate_pass(&r, now_us)) {
            told_us[told++] = now_us;
        }
    }
    for (int i = 1; i < 16; i++) {
        int64_t pause_s = i > 10 ? 600 : 1 << (i - 1);
        assert_int_equal(told_us[i] - told_us[i - 1], MIN(pause_s, 600) * USEC_PER_SEC);
    }
    assert_true(rate_pass(&r, told_us[15] + 1201 * USEC_PER_SEC)); /* over for long: anew */
    assert_true(rate_pass(&r, told_us[15] + 1202 * USEC_PER_SEC));
}

static void test_log__what_was_held_back_is_counted(void **state)
{
    (void)state;
    struct captured c;
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    capture_pipe(&c);
    assert_true(log_allow("flood"));
    log_event(LOG_INFO, "first", LF_I("n", 1));
    log_rates[hash_crc32("flood", 5) % LOG_KEYS_MAX].next_us = INT64_MAX;
    for (int i = 0; i < 7; i++) {
        assert_false(log_allow("flood"));
    }
    log_rates[hash_crc32("flood", 5) % LOG_KEYS_MAX].next_us = 0;
    assert_true(log_allow("flood"));
    log_event(LOG_INFO, "second", LF_I("n", 2));
    capture_end(&c, &b);
    assert_non_null(strstr(buf_cstr(&b), "\"suppressed\":7,"));
}

/* stderr is a pipe that is full. */
static void test_log__a_full_pipe_stops_nobody(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    int fds[2], kept = dup(STDERR_FILENO);
    static char page[65536];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    memset(page, '\n', sizeof page);
    while (write(fds[1], page, sizeof page) > 0) {
    }
    assert_int_equal(fcntl(fds[1], F_SETFL, 0), 0);
    assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
    (void)close(fds[1]);
    int64_t before = log_dropped();
    assert_true(log_start_writer(&err));
    for (int i = 0; i < 5000; i++) {
        log_event(LOG_INFO, "unread", LF_I("i", i));
    }
    assert_in_range(log_dropped() - before, 1000, 4999);
    log_stop_writer(); /* within its second, though nothing is read */
    log_event(LOG_INFO, "still_dropped", LF_I("i", 0));
    assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    bool last = false;
    while (!last) { /* somebody reads: what was kept comes, in order */
        ssize_t n = read(fds[0], page, sizeof page - 1);
        page[MAX(n, 0)] = '\0';
        (void)pthread_mutex_lock(&ring.lock);
        last = n <= 0 && ring.n == 0 && !ring.writing;
        (void)pthread_mutex_unlock(&ring.lock);
    }
    log_stop_writer();
    assert_false(ring.on);
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    (void)close(kept);
    (void)close(fds[0]);
}

static void test_log__a_full_disk_is_counted(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    int kept = dup(STDERR_FILENO), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    int64_t before = log_dropped();
    assert_true(full >= 0);
    assert_int_equal(dup2(full, STDERR_FILENO), STDERR_FILENO);
    assert_true(log_start_writer(&err));
    log_event(LOG_INFO, "nowhere", LF_I("i", 1));
    log_event(LOG_INFO, "nowhere", LF_I("i", 2));
    log_stop_writer();
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(log_dropped() - before, 2);
    (void)close(kept);
    (void)close(full);
}

static void *write_lines(void *arg)
{
    const char *who = arg;
    for (int i = 0; i < 500; i++) {
        log_event(LOG_INFO, "threaded", LF_S("who", who), LF_I("i", i));
    }
    return NULL;
}

static void test_log__lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    struct captured c;
    AUTO_BUF struct buf b = BUF_INIT(4 << 20);
    pthread_t t[4];
    char names[4][2] = {"a", "b", "c", "d"};
    capture_pipe(&c);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, write_lines, names[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        (void)pthread_join(t[i], NULL);
    }
    capture_end(&c, &b);
    struct str rest = buf_str(&b);
    int lines = 0;
    while (rest.n > 0) {
        json_t *o = NULL;
        assert_true(json_parse(str_split(&rest, '\n'), 4096, &o, NULL));
        json_decref(o);
        lines++;
    }
    assert_int_equal(lines, 2000);
}

/* A terminal to log to; the reader's end is returned. */
static int terminal_begin(struct captured *c)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(master >= 0);
    assert_int_equal(grantpt(master), 0);
    assert_int_equal(unlockpt(master), 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    capture_begin(c, master, slave);
    return master;
}

/* Reads until `lines` lines are there: the kernel passes on what is written when it has time. */
static void terminal_end(struct captured *c, int master, int lines, char text[static 1024])
{
    ssize_t n = 0;
    ssize_t got = 1;
    while (lines > 0 && got > 0) {
        got = read(master, text + n, (size_t)(1023 - n));
        for (ssize_t i = n; i < n + got; i++) {
            lines -= text[i] == '\n';
        }
        n += MAX(got, 0);
    }
    (void)dup2(c->saved, STDERR_FILENO);
    (void)close(c->saved);
    (void)close(master);
    assert_true(n > 0);
    text[n] = '\0';
}

static void test_log__a_terminal_gets_logfmt(void **state)
{
    (void)state;
    struct captured c;
    char text[1024];
    int master = terminal_begin(&c);
    log_people("nothing");
    log_event(LOG_INFO, "seen", LF_S("word", "plain"), LF_S("text", "two words"), LF_S("empty", ""),
              LF_I("n", 3), LF_S("token", "HUSH"));
    terminal_end(&c, master, 1, text);
    assert_true(str_starts(str_of(text), "ts=2"));
    assert_non_null(
        strstr(text, " event=seen word=plain text=\"two words\" empty=\"\" n=3 token=***"));
}

static void test_log__a_terminal_gets_sentences_when_asked(void **state)
{
    (void)state;
    struct captured c;
    char text[1024];
    struct err err = ERR_INIT;
    assert_false(err_set(&err, ERR_IO, "cannot open 'a\033[31mb'"));
    log_set_program(NULL);
    log_set_terminal_style(LOG_STYLE_SENTENCE);
    int master = terminal_begin(&c);
    log_event(LOG_INFO, "not_told", LF_I("n", 1));
    log_event(LOG_ERROR, "job_failed", LF_S("cause", "disk_full"), LF_ERR(&err));
    log_event(LOG_WARN, "file_late", LF_I("times_asked", 3), LF_S("token", "HUSH"));
    log_people("%d rows.", 7);
    terminal_end(&c, master, 3, text);
    assert_string_equal(text, "job failed: cannot open 'a?[31mb'\r\n"
                              "warning: file late (times asked 3, token ***)\r\n"
                              "7 rows.\r\n");
    log_set_terminal_style(LOG_STYLE_JSON);
    master = terminal_begin(&c);
    log_people("nothing");
    log_event(LOG_INFO, "seen", LF_I("n", 1));
    terminal_end(&c, master, 1, text);
    assert_true(str_starts(str_of(text), "{\"ts\":"));
    log_set_terminal_style(LOG_STYLE_LOGFMT);
}

static void test_log__sentences_change_nothing_in_a_pipe(void **state)
{
    (void)state;
    struct captured c;
    AUTO_BUF struct buf b = BUF_INIT(1 << 16);
    log_set_terminal_style(LOG_STYLE_SENTENCE);
    capture_pipe(&c);
    log_people("nothing");
    log_event(LOG_INFO, "seen", LF_I("n", 1));
    capture_end(&c, &b);
    log_set_terminal_style(LOG_STYLE_LOGFMT);
    json_t *o = only_line(&b);
    assert_string_equal(get(o, "event"), "seen");
    json_decref(o);
}

static void test_log__what_is_printable(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"plain", "plain"},
        {"a\tb\nc\r\033[1m\x7f", "a?b?c??[1m?"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xc2\x9b"
         "31m",
         "?31m"},
        {"\xff(\xc3.\xe2\x82", "?(?.?"
                               "?"},
        {"", ""}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf b = BUF_INIT(256);
        log_add_printable(&b, str_of(cases[i].text));
        assert_string_equal(buf_cstr(&b), cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log__a_line_is_json_with_its_fields),
        cmocka_unit_test(test_log__an_event_without_fields),
        cmocka_unit_test(test_log__secrets_never_show),
        cmocka_unit_test(test_log__long_lines_stay_valid_and_under_4_kib),
        cmocka_unit_test(test_log__levels),
        cmocka_unit_test(test_log__what_repeats_is_told_ever_more_seldom),
        cmocka_unit_test(test_log__what_was_held_back_is_counted),
        cmocka_unit_test(test_log__a_full_pipe_stops_nobody),
        cmocka_unit_test(test_log__a_full_disk_is_counted),
        cmocka_unit_test(test_log__lines_of_threads_do_not_mix),
        cmocka_unit_test(test_log__a_terminal_gets_logfmt),
        cmocka_unit_test(test_log__a_terminal_gets_sentences_when_asked),
        cmocka_unit_test(test_log__sentences_change_nothing_in_a_pipe),
        cmocka_unit_test(test_log__what_is_printable),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
