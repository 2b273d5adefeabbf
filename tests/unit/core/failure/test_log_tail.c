/* Aim: the last lines of a job's log say why it failed and on which host, as a person reads them.
 * Method: a labelled corpus of tails (tests/vectors/log_tails.txt), every third held out; then what
 * no corpus shows: junk, bounds, one host among many. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "core/failure/log_tail.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define LINES_MAX 100

struct tail { /* one of the corpus; strings owned */
    char label[24], host[64], source[64];
    struct log_line lines[LINES_MAX];
    char *owned[2 * LINES_MAX];
    size_t n;
};
struct score {
    int tails, causes, hosts;
};

static void tail_done(struct tail *t)
{
    for (size_t i = 0; i < 2 * t->n; i++) {
        free(t->owned[i]);
    }
    t->n = 0;
}

static void add_line(struct tail *t, char *line)
{
    char *rest = line;
    long host = strtol(line, &rest, 10);
    double second = strtod(rest, &rest);
    char name[32];
    assert_true(t->n < LINES_MAX && *rest == ' ');
    rest[strcspn(rest, "\n")] = '\0';
    (void)snprintf(name, sizeof name, "algo-%ld", host);
    t->owned[2 * t->n] = xstrdup(name);
    t->owned[2 * t->n + 1] = xstrdup(rest + 1);
    t->lines[t->n] = (struct log_line){.time = (usec_t)(second * (double)USEC_PER_SEC),
                                       .host = str_of(t->owned[2 * t->n]),
                                       .text = str_of(t->owned[2 * t->n + 1])};
    t->n++;
}

static void judge(struct tail *t, struct score score[2])
{
    struct log_tail_evidence e;
    log_tail_read(t->lines, t->n, &e);
    bool held_out = (score[0].tails + score[1].tails) % 3 == 2;
    struct score *s = &score[held_out];
    bool cause = strcmp(cause_name(e.cause), t->label) == 0;
    bool host = strcmp(t->host, "algo-0") == 0 || strcmp(e.host, t->host) == 0;
    s->tails++;
    s->causes += cause;
    s->hosts += host;
    if (!held_out && !(cause && host)) {
        (void)printf("# wrong: %s on %s (%s), not %s on %s: %.100s\n", t->label, t->host, t->source,
                     cause_name(e.cause), e.host, e.text);
    }
    tail_done(t);
}

static void test_log_tail__corpus_is_read(void **state)
{
    (void)state;
    static struct tail t;
    struct score score[2] = {{0}, {0}};
    AUTO_FILE FILE *f = fopen("tests/vectors/log_tails.txt", "r");
    assert_non_null(f);
    char line[2048];
    bool open = false;
    while (fgets(line, sizeof line, f) != NULL) {
        if (line[0] == '=') {
            if (open) {
                judge(&t, score);
            }
            int host = 0;
            open = true;
            assert_true(sscanf(line, "= %23s %d %63[^\n]", t.label, &host, t.source) == 3);
            (void)snprintf(t.host, sizeof t.host, "algo-%d", host);
        } else if (line[0] != '#') {
            add_line(&t, line);
        }
    }
    judge(&t, score);
    for (int i = 0; i < 2; i++) {
        (void)printf("# %s: of %d tails %d causes and %d hosts right\n",
                     i ? "held out" : "tuned on", score[i].tails, score[i].causes, score[i].hosts);
        assert_true(score[i].causes * 10 >= score[i].tails * 9);
        assert_true(score[i].hosts * 10 >= score[i].tails * 9);
    }
    assert_true(score[0].tails + score[1].tails >= 140);
}

static struct log_line at(int second, const char *host, const char *text)
{
    return (struct log_line){
        .time = second * USEC_PER_SEC, .host = str_of(host), .text = str_of(text)};
}

static void test_log_tail__junk_says_nothing(void **state)
{
    (void)state;
    struct log_tail_evidence e;
    log_tail_read(NULL, 0, &e);
    assert_int_equal(e.cause, CAUSE_UNKNOWN);
    assert_string_equal(e.text, "");
    const struct log_line lines[] = {at(1, "", ""), at(2, "h", "\x01\xff[rank"), at(3, "h", "[1,"),
                                     at(4, "h", "Traceback (most recent call last):")};
    log_tail_read(lines, ARRAY_LEN(lines), &e);
    assert_int_equal(e.cause, CAUSE_UNKNOWN);
    assert_string_equal(e.host, "");
}

static void test_log_tail__the_deciding_line_is_kept_without_its_marks(void **state)
{
    (void)state;
    struct log_tail_evidence e;
    const struct log_line lines[] = {at(1, "algo-1", "[rank3]: Traceback (most recent call last):"),
                                     at(1, "algo-1", "[rank3]:   File \"t.py\", line 1"),
                                     at(1, "algo-1", "[rank3]: ValueError: bad shape  ")};
    log_tail_read(lines, ARRAY_LEN(lines), &e);
    assert_string_equal(e.text, "ValueError: bad shape");
    assert_string_equal(e.host, "algo-1");
    assert_true(e.alone);
    assert_int_equal(e.cause, CAUSE_USER_CODE);
}

/* Colours and the marks of launchers stand before a line and inside it; a chain is one failure. */
static void test_log_tail__colours_marks_and_chains(void **state)
{
    (void)state;
    struct log_tail_evidence e;
    const struct log_line coloured[] = {
        at(1, "algo-1", "\x1b[36m(train pid=77, ip=10.0.0.7)\x1b[0m \x1b[31mMemoryError: x\x1b[0m"),
        at(2, "algo-2", "stderr: ValueError: told to stop")};
    log_tail_read(coloured, ARRAY_LEN(coloured), &e);
    assert_int_equal(e.cause, CAUSE_OOM);
    assert_string_equal(e.host, "algo-1");
    assert_string_equal(e.text, "MemoryError: x");
    const struct log_line chain[] = {
        at(1, "algo-1", "Traceback (most recent call last):"),
        at(1, "algo-1", "  File \"t.py\", line 1, in save"),
        at(1, "algo-1", "ConnectionResetError: [Errno 104] Connection reset by peer"),
        at(1, "algo-1", ""),
        at(1, "algo-1", "During handling of the above exception, another exception occurred:"),
        at(1, "algo-1", ""),
        at(1, "algo-1", "Traceback (most recent call last):"),
        at(1, "algo-1", "  File \"t.py\", line 9, in main"),
        at(1, "algo-1", "OSError: [Errno 28] No space left on device")};
    log_tail_read(chain, ARRAY_LEN(chain), &e);
    assert_int_equal(e.cause, CAUSE_DISK_FULL);
}

/* One host was killed, which it cannot say; the others were told to stop since it had died. */
static void test_log_tail__who_is_told_to_stop_did_not_fail(void **state)
{
    (void)state;
    static const char *const told[] = {
        "{\"ts\":\"2026-11-24T04:25:16Z\",\"level\":\"info\",\"program\":\"drover-worker\","
        "\"event\":\"stop_asked\",\"signal\":15}",
        "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 47 closing signal "
        "SIGTERM"};
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        struct log_tail_evidence e;
        const struct log_line lines[] = {at(1, "algo-1", told[i]), at(1, "algo-2", "step 50"),
                                         at(2, "algo-3", told[i])};
        log_tail_read(lines, ARRAY_LEN(lines), &e);
        assert_int_equal(e.cause, CAUSE_UNKNOWN);
        assert_string_equal(e.host, "algo-1");
    }
}

static void test_log_tail__long_lines_and_many_hosts_are_bounded(void **state)
{
    (void)state;
    struct log_tail_evidence e;
    static struct log_line lines[200];
    static char names[200][24];
    AUTO_FREE char *big = xmalloc(100001);
    memset(big, 'x', 100000);
    big[100000] = '\0';
    memcpy(big, "ValueError: \xe2\x82\xac", 15);
    for (int i = 0; i < 200; i++) {
        (void)snprintf(names[i], sizeof names[i], "algo-%d", i);
        lines[i] = at(200 - i, names[i], big);
    }
    log_tail_read(lines, ARRAY_LEN(lines), &e);
    assert_int_equal(strlen(e.text), LOG_TAIL_TEXT_MAX);
    assert_string_equal(e.host, "algo-63"); /* the earliest of those that are looked at */
    assert_false(e.alone);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_tail__corpus_is_read),
        cmocka_unit_test(test_log_tail__junk_says_nothing),
        cmocka_unit_test(test_log_tail__the_deciding_line_is_kept_without_its_marks),
        cmocka_unit_test(test_log_tail__colours_marks_and_chains),
        cmocka_unit_test(test_log_tail__who_is_told_to_stop_did_not_fail),
        cmocka_unit_test(test_log_tail__long_lines_and_many_hosts_are_bounded),
    };
    return cmocka_run_group_tests_name("log_tail", tests, NULL, NULL);
}
