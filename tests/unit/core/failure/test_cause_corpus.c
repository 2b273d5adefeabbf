/* Aim: a failure text that no rule was written for gets the cause a person would give it, and what
 * says nothing is called unknown.
 * Method: labelled corpora of public texts. Every third row is held out: no rule is tuned on it,
 * its faults are counted by cause and never shown. Both figures are printed, by cause. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "core/failure/cause.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

struct tally {
    int rows, right, guessed; /* guessed: unknown to a person, not to the rules */
};
/* Of one or more corpora: those the rules were tuned on, and those held out. */
struct figures {
    struct tally of[2][CAUSE_COUNT];
    int said[2][CAUSE_COUNT][CAUSE_COUNT]; /* [held out][a person says][the rules say] */
};

/* \n of the corpus to a line break. */
static void unescape(struct str s, struct buf *out)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\' && i + 1 < s.n && s.p[i + 1] == 'n') {
            buf_add_char(out, '\n');
            i++;
        } else {
            buf_add_char(out, s.p[i]);
        }
    }
}

static void judge(struct figures *f, bool held_out, struct str label, struct str words)
{
    char name[32];
    (void)snprintf(name, sizeof name, STR_FMT, STR_ARG(label));
    enum cause want = cause_parse(name);
    assert_true(want < CAUSE_COUNT);
    AUTO_BUF struct buf text = BUF_INIT(16384);
    unescape(words, &text);
    enum cause got = cause_of_job(JOB_END_FAILED, buf_str(&text), false);
    struct tally *t = &f->of[held_out][want];
    t->rows++;
    t->right += got == want;
    f->said[held_out][want][got]++;
    t->guessed += want == CAUSE_UNKNOWN && got != want;
    if (got != want && !held_out) {
        (void)printf("# wrong: %s, not %s: %.120s\n", name, cause_name(got), buf_cstr(&text));
    }
}

/* Rows "label <tab> text <tab> source". Below a line "# LATE" nothing is held out: those rows were
 * found when the rules stood, and the rules were mended by them. Below "# HELD OUT" all are. */
static void read_corpus(const char *path, struct figures *f)
{
    AUTO_FILE FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[8192];
    bool late = false;
    bool exam = false;
    for (int row = 0; fgets(line, sizeof line, file) != NULL;) {
        struct str rest = str_trim(str_of(line));
        late |= str_eq_cstr(rest, "# LATE");
        exam |= str_eq_cstr(rest, "# HELD OUT");
        if (rest.n == 0 || rest.p[0] == '#' || str_starts(rest, "label\t")) {
            continue;
        }
        struct str label = str_split(&rest, '\t');
        judge(f, exam || (!late && row % 3 == 2), label, str_split(&rest, '\t'));
        row++;
    }
}

static struct tally sum(const struct tally of[CAUSE_COUNT])
{
    struct tally all = {0};
    for (int c = 0; c < CAUSE_COUNT; c++) {
        all.rows += of[c].rows;
        all.right += of[c].right;
        all.guessed += of[c].guessed;
    }
    return all;
}

/* Of a cause's texts how many were known, of those called so how many were; and what the faults
 * among the held out were called. */
static void print_figures(const char *what, const struct figures *f)
{
    (void)printf("# %-34s %11s %11s %11s\n", what, "tuned on", "held out", "called so");
    for (int c = 0; c < CAUSE_COUNT; c++) {
        const struct tally *a = &f->of[0][c];
        const struct tally *b = &f->of[1][c];
        int called = 0;
        for (int w = 0; w < CAUSE_COUNT; w++) {
            called += f->said[1][w][c];
        }
        if (a->rows + b->rows > 0) {
            (void)printf("#   %-32s %5d/%-5d %5d/%-5d %5d/%-5d\n", cause_name((enum cause)c),
                         a->right, a->rows, b->right, b->rows, b->right, called);
        }
    }
    for (int w = 0; w < CAUSE_COUNT; w++) {
        for (int g = 0; g < CAUSE_COUNT; g++) {
            if (w != g && f->said[1][w][g] > 0) {
                (void)printf("#   held out: %d of %s called %s\n", f->said[1][w][g],
                             cause_name((enum cause)w), cause_name((enum cause)g));
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        struct tally t = sum(f->of[i]);
        if (t.rows == 0) { /* of an examination all are held out */
            continue;
        }
        (void)printf("# %s, %s: %d of %d right (%.1f %%)\n", what, i ? "held out" : "tuned on",
                     t.right, t.rows, 100.0 * t.right / t.rows);
    }
}

/* Shares in thousandths. */
static void assert_share(const struct figures *f, int at_least_rows, int held_out_share)
{
    struct tally seen = sum(f->of[0]);
    struct tally held_out = sum(f->of[1]);
    assert_true(seen.rows + held_out.rows >= at_least_rows);
    assert_true(seen.right * 1000 >= seen.rows * 980);
    assert_true(held_out.right * 1000 >= held_out.rows * held_out_share);
    assert_int_equal(seen.guessed, 0);
}

/* What is retried for ever, though the cause is another: a paid failure, again and again. */
static int looping(const struct figures *f)
{
    static const enum cause ever[] = {CAUSE_QUOTA, CAUSE_THROTTLED, CAUSE_CAPACITY};
    int n = 0;
    for (int w = 0; w < CAUSE_COUNT; w++) {
        for (size_t i = 0; i < ARRAY_LEN(ever); i++) {
            n += w != (int)ever[i] ? f->said[0][w][ever[i]] : 0;
        }
    }
    return n;
}

static void test_cause_corpus__texts_of_programs_and_services(void **state)
{
    (void)state;
    struct figures f = {0};
    read_corpus("tests/vectors/causes.tsv", &f);
    print_figures("texts of programs and services", &f);
    assert_share(&f, 300, 1000);
    assert_int_equal(sum(f.of[1]).guessed, 0);
}

static void test_cause_corpus__texts_found_since(void **state)
{
    (void)state;
    struct figures f = {0};
    read_corpus("tests/vectors/causes_found.tsv", &f);
    print_figures("texts found since", &f);
    /* The aim, 950, is not reached: 324 of 340 when measured. Raise it, never lower it. */
    assert_share(&f, 1080, 950);
}

static void test_cause_corpus__texts_as_people_paste_them(void **state)
{
    (void)state;
    struct figures f = {0};
    read_corpus("tests/vectors/causes_pasted.tsv", &f);
    print_figures("texts as people paste them", &f);
    /* The aim, 950, is not reached: 74 of 79 when measured. Raise it, never lower it. */
    assert_share(&f, 230, 930);
}

static void test_cause_corpus__texts_of_public_issues(void **state)
{
    (void)state;
    struct figures f = {0};
    read_corpus("tests/vectors/causes_issues.tsv", &f);
    print_figures("texts of public issues", &f);
    /* The aim, 950, is not reached: 18 of 21 when measured. Raise it, never lower it. */
    assert_share(&f, 440, 850);
}

static void test_cause_corpus__texts_of_later_waves(void **state)
{
    (void)state;
    struct figures f = {0};
    read_corpus("tests/vectors/causes_waves.tsv", &f);
    print_figures("texts of later waves", &f);
    /* The aim, 950, is not reached: 59 of 64 when measured. Raise it, never lower it. */
    assert_share(&f, 190, 920);
}

static void test_cause_corpus__fresh_texts(void **state)
{
    (void)state;
    struct figures f = {0};
    read_corpus("tests/vectors/causes_fresh.tsv", &f);
    print_figures("fresh texts", &f);
    /* The aim, 950, is not reached: 75 of 90 when measured. Raise it, never lower it. */
    assert_share(&f, 272, 830);
}

static void test_cause_corpus__texts_spread_over_kinds(void **state)
{
    (void)state;
    struct figures f = {0};
    read_corpus("tests/vectors/causes_spread.tsv", &f);
    print_figures("texts spread over kinds", &f);
    /* The aim, 950, is not reached: 68 of 77 when measured. Raise it, never lower it. */
    assert_share(&f, 280, 880);
}

static void test_cause_corpus__texts_of_jobs(void **state)
{
    (void)state;
    struct figures f = {0};
    read_corpus("tests/vectors/causes_jobs.tsv", &f);
    print_figures("texts of jobs", &f);
    /* The aim, 950, is not reached: 56 of 71 when measured. Raise it, never lower it. */
    assert_share(&f, 215, 780);
}

static void test_cause_corpus__further_texts_of_issues(void **state)
{
    (void)state;
    struct figures f = {0};
    read_corpus("tests/vectors/causes_further.tsv", &f);
    print_figures("further texts of issues", &f);
    /* The aim, 950, is not reached: 48 of 75 when measured. Raise it, never lower it. */
    assert_share(&f, 225, 640);
}

static void test_cause_corpus__texts_from_memory(void **state)
{
    (void)state;
    struct figures f = {0};
    read_corpus("tests/vectors/causes_recalled.tsv", &f);
    print_figures("texts from memory", &f);
    assert_share(&f, 401, 950);
}

static void test_cause_corpus__texts_again(void **state)
{
    (void)state;
    struct figures f = {0};
    read_corpus("tests/vectors/causes_again.tsv", &f);
    print_figures("texts again", &f);
    /* 72 of 75 when measured. Raise it, never lower it. */
    assert_share(&f, 286, 950);
    assert_int_equal(looping(&f), 0);
    for (int w = 0; w < CAUSE_COUNT; w++) { /* a pull that may work next time is tried again */
        bool passes = w == CAUSE_NETWORK || w == CAUSE_THROTTLED || w == CAUSE_INTERNAL;
        assert_true(!passes || f.said[0][w][CAUSE_BAD_IMAGE] == 0);
    }
}

static void test_cause_corpus__texts_written_down(void **state)
{
    (void)state;
    struct figures f = {0};
    read_corpus("tests/vectors/causes_written.tsv", &f);
    print_figures("texts written down", &f);
    struct tally seen = sum(f.of[0]);
    struct tally held_out = sum(f.of[1]);
    /* 2,608 of 2,673, 1,104 of 1,334 and 13 guessed when measured: many are of programs that no job
     * of a campaign runs, and some say unknown where another corpus does not. Raise these. */
    assert_true(seen.right * 1000 >= seen.rows * 975);
    assert_true(held_out.right * 1000 >= held_out.rows * 825);
    assert_in_range(seen.guessed, 0, 13);
}

/* What no rule was written from, as campaigns would meet it. */
static void test_cause_corpus__an_examination(void **state)
{
    (void)state;
    struct figures f = {0};
    read_corpus("tests/vectors/causes_exam.tsv", &f);
    print_figures("an examination", &f);
    assert_share(&f, 1229, 960);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cause_corpus__texts_of_programs_and_services),
        cmocka_unit_test(test_cause_corpus__texts_as_people_paste_them),
        cmocka_unit_test(test_cause_corpus__texts_found_since),
        cmocka_unit_test(test_cause_corpus__texts_of_public_issues),
        cmocka_unit_test(test_cause_corpus__texts_of_later_waves),
        cmocka_unit_test(test_cause_corpus__fresh_texts),
        cmocka_unit_test(test_cause_corpus__texts_spread_over_kinds),
        cmocka_unit_test(test_cause_corpus__texts_of_jobs),
        cmocka_unit_test(test_cause_corpus__further_texts_of_issues),
        cmocka_unit_test(test_cause_corpus__texts_from_memory),
        cmocka_unit_test(test_cause_corpus__texts_again),
        cmocka_unit_test(test_cause_corpus__texts_written_down),
        cmocka_unit_test(test_cause_corpus__an_examination),
    };
    return cmocka_run_group_tests_name("cause_corpus", tests, NULL, NULL);
}
