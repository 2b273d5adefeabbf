/* Aim: an output is looked at where its stage says, and judged good only when it is there and
 * whole. Method: every kind of verify for an attempt by hand; listings and answers as tables. */
#include "core/failure/retry_policy.h"
#include "core/leader/output_plan.h"
#include "leader_world.h"
#include "worker_protocol.h"
#include <time.h>

#define MIB INT64_C(1048576)

static struct live_attempt *attempt(struct leader_world *w, enum spec_verify kind)
{
    leader_world_init(w);
    w->spec.name = "shards";
    w->spec.verify = kind;
    w->spec.output = "s3://out/c{campaign}/{part:05d}";
    w->spec.verify_target = "s3://out/done-{part}.txt";
    w->spec.verify_count = 3;
    struct live_attempt *a = leader_world_attempt(w, 4, 1);
    a->row.uri = xstrdup("s3://in/part-4.parquet");
    (void)snprintf(a->artifacts, sizeof a->artifacts, "s3://out/model.tar.gz");
    return a;
}

static void test_output_plan__where_each_kind_is_looked_at(void **state)
{
    (void)state;
    static const struct {
        enum spec_verify kind;
        const char *place, *input;
    } cases[] = {
        {VERIFY_MANIFEST, "s3://out/c7/00004/", "s3://in/part-4.parquet"},
        {VERIFY_IMG2DATASET, "s3://out/c7/00004/", "s3://in/part-4.parquet"},
        {VERIFY_EXISTS, "s3://out/done-4.txt", ""},
        {VERIFY_COUNT, "s3://out/done-4.txt", ""},
        {VERIFY_ARTIFACTS, "s3://out/model.tar.gz", ""},
    };
    struct output_verdict v;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        struct output_plan p;
        struct err err = ERR_INIT;
        struct live_attempt *a = attempt(&w, cases[i].kind);
        output_plan_attempt(a, &p, &err);
        assert_true(p.told);
        assert_string_equal(p.place, cases[i].place);
        assert_string_equal(p.input, cases[i].input);
        assert_string_equal(p.task_id, "1004");
        assert_int_equal(p.count, 3);
        assert_int_equal(p.input_size, 300 * MIB);
        assert_false(output_judge_unseen(&p, &v));
        leader_world_done(&w);
    }
}

/* `output_compression: off`: there is no object of the name that SageMaker tells. */
static void test_output_plan__artifacts_that_are_not_packed(void **state)
{
    (void)state;
    static const char *const told[] = {"s3://out/j/output/model", "s3://out/j/output/model/"};
    struct spec_training training = {.uncompressed = true};
    struct leader_world w;
    struct output_plan p;
    struct err err = ERR_INIT;
    struct live_attempt *a = attempt(&w, VERIFY_ARTIFACTS);
    w.spec.training = &training;
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        (void)snprintf(a->artifacts, sizeof a->artifacts, "%s", told[i]);
        output_plan_attempt(a, &p, &err);
        assert_string_equal(p.place, "s3://out/j/output/model/");
        assert_int_equal(output_first(&p), OUTPUT_COUNT);
        assert_int_equal(p.count, 1);
    }
    training.uncompressed = false;
    output_plan_attempt(a, &p, &err);
    assert_int_equal(output_first(&p), OUTPUT_HEAD);
    training.uncompressed = true;
    w.spec.verify = VERIFY_EXISTS; /* as its file says */
    output_plan_attempt(a, &p, &err);
    assert_int_equal(output_first(&p), OUTPUT_HEAD);
    assert_string_equal(p.place, "s3://out/done-4.txt");
    leader_world_done(&w);
}

static void test_output_plan__rows_are_those_of_the_file_that_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *url_list, *more, *value;
        bool compared;
    } rows[] = {{"{uri}", NULL, NULL, true},
                {"{uri}", "input_format", "parquet", true},
                {"{uri}", "input_format", "csv", false},
                {"{uri}", "retry_failed", "False", true},
                {"{uri}", "retry_failed", "false", true},
                {"{uri}", "retry_failed", "0", true},
                {"{uri}", "retry_failed", "True", false},
                {"s3://out/img/{part:05d}/", "retry_failed", "true", false},
                {"s3://out/clean/{file_name}", NULL, NULL, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct leader_world w;
        struct output_plan p, before;
        struct err err = ERR_INIT;
        struct live_attempt *a = attempt(&w, VERIFY_MANIFEST);
        const struct task_input t = {.id = 9, .uri = (char[]){"s3://in/a.parquet"}};
        w.spec.worker = WORKER_DOWNLOAD;
        w.spec.hyperparameters[0] = (struct spec_pair){"url_list", rows[i].url_list};
        w.spec.hyperparameters[1] = (struct spec_pair){rows[i].more, rows[i].value};
        w.spec.hyperparameters_n = rows[i].more != NULL ? 2 : 1;
        w.spec.done_if = "s3://out/{part}";
        w.spec.done_if_kind = VERIFY_MANIFEST;
        output_plan_attempt(a, &p, &err);
        output_plan_done_if(w.lc, w.ls, &t, &before, &err);
        assert_string_equal(p.input, rows[i].compared ? "s3://in/part-4.parquet" : "");
        assert_string_equal(before.input, rows[i].compared ? "s3://in/a.parquet" : "");
        leader_world_done(&w);
    }
}

static void test_output_plan__a_place_that_cannot_be_told_is_not_good(void **state)
{
    (void)state;
    struct leader_world w;
    struct output_plan p;
    struct output_verdict v;
    struct err err = ERR_INIT;
    struct live_attempt *a = attempt(&w, VERIFY_ARTIFACTS);
    a->artifacts[0] = '\0';
    output_plan_attempt(a, &p, &err);
    assert_false(p.told);
    assert_true(output_judge_unseen(&p, &v));
    assert_true(v.checked && !v.good);
    assert_int_equal(v.cause, CAUSE_SHORT_OUTPUT);
    w.spec.verify = VERIFY_MANIFEST;
    w.spec.output = NULL;
    output_plan_attempt(a, &p, &err);
    assert_false(p.told);
    w.spec.output = "s3://out/{nobody_knows}";
    output_plan_attempt(a, &p, &err);
    assert_false(p.told);
    w.spec.verify = VERIFY_NONE; /* nothing is asked for */
    output_plan_attempt(a, &p, &err);
    assert_true(output_judge_unseen(&p, &v));
    assert_true(v.checked && v.good);
    assert_int_equal(v.cause, CAUSE_NONE);
    leader_world_done(&w);
}

static void test_output_plan__folders_end_in_a_slash(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"s3://out/x", "s3://out/x/"}, {"s3://out/x/", "s3://out/x/"}, {"s3://out/", "s3://out/"},
        {"s3://out", "s3://out"},      {"https://out/x", NULL},        {"s3://", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        char uri[OUTPUT_URI_MAX];
        struct err err = ERR_INIT;
        struct live_attempt *a = attempt(&w, VERIFY_MANIFEST);
        w.spec.output = cases[i][0];
        assert_int_equal(output_plan_folder(a, uri, &err), cases[i][1] != NULL);
        if (cases[i][1] != NULL) {
            assert_string_equal(uri, cases[i][1]);
        }
        leader_world_done(&w);
    }
}

static void test_output_plan__done_if_is_of_any_task(void **state)
{
    (void)state;
    struct leader_world w;
    struct output_plan p;
    struct err err = ERR_INIT;
    const struct task_input t = {.id = 9,
                                 .seq = 2,
                                 .size = 5,
                                 .uri = (char[]){"s3://in/a.csv"},
                                 .vars_json = (char[]){"{\"v\":\"x\"}"}};
    attempt(&w, VERIFY_NONE);
    w.spec.done_if = "s3://out/{v}/{part}";
    w.spec.done_if_kind = VERIFY_MANIFEST;
    output_plan_done_if(w.lc, w.ls, &t, &p, &err);
    assert_true(p.told);
    assert_string_equal(p.place, "s3://out/x/2/");
    assert_string_equal(p.task_id, "");
    assert_string_equal(p.input, ""); /* no Parquet file */
    w.spec.done_if_kind = VERIFY_EXISTS;
    output_plan_done_if(w.lc, w.ls, &t, &p, &err);
    assert_string_equal(p.place, "s3://out/x/2");
    leader_world_done(&w);
}

static void test_output_plan__what_an_answer_means(void **state)
{
    (void)state;
    static const struct {
        enum aws_outcome outcome;
        int status;
        enum err_code why;
        enum output_answer want;
    } cases[] = {{AWS_OK, 200, ERR_NONE, OUTPUT_READ},
                 {AWS_REFUSED, 404, ERR_NOT_FOUND, OUTPUT_ABSENT},
                 {AWS_REFUSED, 403, ERR_FORBIDDEN, OUTPUT_DENIED},
                 {AWS_REFUSED, 400, ERR_AWS, OUTPUT_DENIED},
                 {AWS_REFUSED, 412, ERR_PRECONDITION, OUTPUT_REFUSED},
                 {AWS_REFUSED, 405, ERR_AWS, OUTPUT_REFUSED},
                 {AWS_REFUSED, 301, ERR_AWS, OUTPUT_REFUSED},     /* another region */
                 {AWS_UNKNOWN, 307, ERR_NETWORK, OUTPUT_REFUSED}, /* told without a word */
                 {AWS_REFUSED, 200, ERR_LIMIT, OUTPUT_TOO_LARGE}, /* more keys than are read */
                 {AWS_UNKNOWN, 200, ERR_TOO_LARGE, OUTPUT_TOO_LARGE},
                 {AWS_UNKNOWN, 502, ERR_TOO_LARGE, OUTPUT_AGAIN}, /* the page of a proxy */
                 {AWS_THROTTLED, 503, ERR_THROTTLED, OUTPUT_AGAIN},
                 {AWS_THROTTLED, 429, ERR_THROTTLED, OUTPUT_AGAIN},
                 {AWS_UNKNOWN, 408, ERR_NETWORK, OUTPUT_AGAIN},
                 {AWS_UNKNOWN, 500, ERR_UNAVAILABLE, OUTPUT_AGAIN},
                 {AWS_UNSENT, 0, ERR_NETWORK, OUTPUT_AGAIN},
                 {AWS_CREDENTIALS, 403, ERR_UNAUTHENTICATED, OUTPUT_AGAIN},
                 {AWS_CREDENTIALS, 400, ERR_UNAUTHENTICATED, OUTPUT_AGAIN}};
    struct output_verdict v;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(output_answer(cases[i].outcome, cases[i].status, cases[i].why),
                         cases[i].want);
    }
    output_judge_no_manifest(&v);
    assert_true(v.checked && !v.good && v.cause == CAUSE_SHORT_OUTPUT);
    output_judge_key(false, &v);
    assert_true(v.checked && !v.good && v.cause == CAUSE_SHORT_OUTPUT);
    output_judge_key(true, &v);
    assert_true(v.checked && v.good && v.cause == CAUSE_NONE);
}

/* With the words of S3; and no cause that is tried again by itself, since that is paid. */
static void test_output_plan__a_refusal_for_good_ends_it(void **state)
{
    (void)state;
    static const struct {
        enum output_step end;
        enum cause cause;
    } rows[] = {{OUTPUT_END_DENIED, CAUSE_ACCESS_DENIED},
                {OUTPUT_END_REFUSED, CAUSE_BAD_REQUEST},
                {OUTPUT_END_TOO_LARGE, CAUSE_BAD_INPUT}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct output_verdict v;
        output_judge_refused(rows[i].end, "PermanentRedirect: to eu-west-1", &v);
        assert_true(v.checked && !v.good);
        assert_int_equal(v.cause, rows[i].cause);
        assert_int_equal(retry_default(v.cause)->times, 0);
        assert_non_null(strstr(v.text, "PermanentRedirect: to eu-west-1"));
    }
}

static void test_output_plan__counts(void **state)
{
    (void)state;
    const struct output_plan p = {.kind = VERIFY_COUNT, .told = true, .count = 3};
    struct output_verdict v;
    for (int64_t n = 2; n <= 4; n++) {
        const struct output_seen seen = {.counted = n, .rows_in = -1};
        output_judge(&p, &seen, &v);
        assert_true(v.checked);
        assert_int_equal(v.good, n >= 3);
        assert_int_equal(v.cause, n >= 3 ? CAUSE_NONE : CAUSE_SHORT_OUTPUT);
    }
}

/* A million objects are more than is kept of them; and beyond those asked for none is listed. */
static void test_output_plan__counts_no_more_pages_than_it_needs(void **state)
{
    (void)state;
    const struct output_plan p = {.kind = VERIFY_COUNT, .told = true, .count = 1000000};
    struct output_seen seen = {.rows_in = -1};
    assert_true(output_next_page(&p, &seen));
    seen.counted = 999999;
    assert_true(output_next_page(&p, &seen));
    seen.counted = 1000000;
    assert_false(output_next_page(&p, &seen));
    seen.counted = 7;
    seen.counted_all = true;
    assert_false(output_next_page(&p, &seen));
}

static void test_output_plan__one_of_many_is_asked_again(void **state)
{
    (void)state;
    struct rng rng;
    int64_t pause_us = 0;
    rng_seed(&rng, 7);
    for (int s = OUTPUT_GET_MANIFEST; s <= OUTPUT_END_UNCHECKED; s++) {
        bool many = s == OUTPUT_COUNT || s == OUTPUT_GET_STATS;
        for (int a = OUTPUT_READ; a <= OUTPUT_AGAIN; a++) {
            for (int tries = 1; tries <= 8; tries++) {
                bool again = output_again((enum output_step)s, (enum output_answer)a, tries, &rng,
                                          &pause_us);
                assert_int_equal(again, many && a == OUTPUT_AGAIN && tries < 6);
                assert_true(!again || (pause_us >= 100000 && pause_us <= 3000000));
            }
        }
    }
}

static void test_output_plan__tars_that_are_counted_are_there(void **state)
{
    (void)state;
    const struct output_plan p = {.kind = VERIFY_IMG2DATASET, .told = true};
    struct verify_object objects[] = {
        {.key = "00000.tar", .size = 9, .etag = ""},
        {.key = "00001.tar", .size = 9, .etag = ""},
        {.key = "00000_stats.json", .size = 9, .etag = ""},
    };
    struct output_seen seen = {.objects = objects,
                               .objects_n = 3,
                               .stats = {.n = 1, .count = 2, .successes = 2},
                               .rows_in = 2};
    struct output_verdict v;
    output_judge(&p, &seen, &v);
    assert_true(v.good);
    assert_int_equal(v.rows_in, 2);
    assert_int_equal(v.successes, 2);
    seen.rows_in = 3; /* by the part's own footer */
    output_judge(&p, &seen, &v);
    assert_false(v.good);
    seen.rows_in = -1;
    objects[0].size = 0;
    output_judge(&p, &seen, &v);
    assert_false(v.good);
    assert_non_null(strstr(v.text, "00000.tar"));
    objects[0].size = 9;
    objects[0].key = "00007.tar";
    output_judge(&p, &seen, &v);
    assert_false(v.good);
    objects[0].key = objects[1].key = "00000.parquet"; /* another form: no tars at all */
    output_judge(&p, &seen, &v);
    assert_true(v.good);
}

#define SHARDS_MOST 66000 /* as many as a listing may have */

/* CPU time of the judgement of so many shards, each a tar and its figures. */
static int64_t judging_ns(const struct verify_object *objects, size_t shards)
{
    const struct output_plan p = {.kind = VERIFY_IMG2DATASET, .told = true};
    const struct output_seen seen = {.objects = objects,
                                     .objects_n = 2 * shards,
                                     .stats = {.n = 1, .count = 1, .successes = 1},
                                     .rows_in = -1};
    struct output_verdict v;
    struct timespec from, to;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    output_judge(&p, &seen, &v);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    assert_true(v.good);
    return (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec;
}

/* The leader's loop waits for it: 16 times the shards take about 16 times as long, not 256 times.
 * The best of three, since the first touches new memory. */
static void test_output_plan__many_shards_are_judged_in_a_moment(void **state)
{
    (void)state;
    static char keys[2 * SHARDS_MOST][24];
    static struct verify_object objects[2 * SHARDS_MOST];
    int64_t few = INT64_MAX, many = INT64_MAX;
    for (int i = 0; i < SHARDS_MOST; i++) {
        (void)snprintf(keys[2 * i], sizeof keys[0], "%06d.tar", i);
        (void)snprintf(keys[2 * i + 1], sizeof keys[0], "%06d_stats.json", i);
    }
    for (int i = 0; i < 2 * SHARDS_MOST; i++) {
        objects[i] = (struct verify_object){.key = keys[i], .size = 9, .etag = ""};
    }
    for (int i = 0; i < 3; i++) {
        few = MIN(few, judging_ns(objects, SHARDS_MOST / 16));
        many = MIN(many, judging_ns(objects, SHARDS_MOST));
    }
    print_message("# %lld us for %d shards, %lld us for %d\n", (long long)few / 1000,
                  SHARDS_MOST / 16, (long long)many / 1000, SHARDS_MOST);
    assert_true(many < 64 * few);
}

static void test_output_plan__a_manifest_of_another_task(void **state)
{
    (void)state;
    static const char *const manifest =
        "{\"version\":1,\"task\":\"1005\",\"rows_in\":0,\"rows_out\":0,\"successes\":0,"
        "\"failed_to_download\":0,\"failed_to_resize\":0,\"bytes\":0,\"objects\":[]}";
    struct output_plan p = {.kind = VERIFY_MANIFEST, .told = true, .task_id = "1004"};
    const struct output_seen seen = {.manifest = str_of(manifest), .rows_in = -1};
    struct output_verdict v;
    output_judge(&p, &seen, &v);
    assert_false(v.good);
    assert_non_null(strstr(v.text, "1005"));
    p.task_id[0] = '\0'; /* done_if: any task's; what is wrong now is something else */
    output_judge(&p, &seen, &v);
    assert_null(strstr(v.text, "is of task"));
}

static struct output_plan plan_of(enum spec_verify kind, bool rows)
{
    struct output_plan p = {.kind = kind, .told = true, .input_size = rows ? 1000 : 8};
    (void)snprintf(p.input, sizeof p.input, "s3://in/p.parquet");
    return p;
}

static void test_output_plan__what_is_asked_first(void **state)
{
    (void)state;
    static const struct {
        enum spec_verify kind;
        enum output_step first;
    } rows[] = {
        {VERIFY_MANIFEST, OUTPUT_GET_MANIFEST}, {VERIFY_EXISTS, OUTPUT_HEAD},
        {VERIFY_ARTIFACTS, OUTPUT_HEAD},        {VERIFY_COUNT, OUTPUT_COUNT},
        {VERIFY_IMG2DATASET, OUTPUT_LIST},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct output_plan p = plan_of(rows[i].kind, true);
        assert_int_equal(output_first(&p), rows[i].first);
    }
}

/* Ends of a check, as the table names them. */
enum { DENIED = OUTPUT_END_DENIED, REFUSED = OUTPUT_END_REFUSED, LARGE = OUTPUT_END_TOO_LARGE };
enum { LATER = OUTPUT_END_UNCHECKED };

static void test_output_plan__what_comes_after_each_answer(void **state)
{
    (void)state;
    static const struct {
        enum spec_verify kind;
        bool rows; /* of the part are counted */
        enum output_step done;
        int next[6]; /* by answer: read, absent, denied, refused, too large, again */
    } rows[] = {
        {VERIFY_MANIFEST,
         true,
         OUTPUT_GET_MANIFEST,
         {OUTPUT_LIST, OUTPUT_END_NO_MANIFEST, DENIED, REFUSED, LARGE, LATER}},
        {VERIFY_MANIFEST,
         true,
         OUTPUT_LIST,
         {OUTPUT_GET_TAIL, REFUSED, DENIED, REFUSED, LARGE, LATER}},
        {VERIFY_MANIFEST,
         false,
         OUTPUT_LIST,
         {OUTPUT_JUDGE, REFUSED, DENIED, REFUSED, LARGE, LATER}},
        {VERIFY_IMG2DATASET,
         false,
         OUTPUT_LIST,
         {OUTPUT_GET_STATS, REFUSED, DENIED, REFUSED, LARGE, LATER}},
        {VERIFY_MANIFEST,
         true,
         OUTPUT_GET_TAIL,
         {OUTPUT_GET_FOOTER, OUTPUT_JUDGE, OUTPUT_JUDGE, OUTPUT_JUDGE, OUTPUT_JUDGE, LATER}},
        {VERIFY_IMG2DATASET,
         true,
         OUTPUT_GET_TAIL,
         {OUTPUT_GET_FOOTER, OUTPUT_GET_STATS, OUTPUT_GET_STATS, OUTPUT_GET_STATS, OUTPUT_GET_STATS,
          LATER}},
        {VERIFY_MANIFEST,
         true,
         OUTPUT_GET_FOOTER,
         {OUTPUT_JUDGE, OUTPUT_JUDGE, OUTPUT_JUDGE, OUTPUT_JUDGE, OUTPUT_JUDGE, LATER}},
        {VERIFY_IMG2DATASET,
         true,
         OUTPUT_GET_FOOTER,
         {OUTPUT_GET_STATS, OUTPUT_GET_STATS, OUTPUT_GET_STATS, OUTPUT_GET_STATS, OUTPUT_GET_STATS,
          LATER}},
        {VERIFY_IMG2DATASET,
         true,
         OUTPUT_GET_STATS,
         {OUTPUT_GET_STATS, LATER, DENIED, REFUSED, LARGE, LATER}},
        {VERIFY_EXISTS,
         true,
         OUTPUT_HEAD,
         {OUTPUT_END_KEY, OUTPUT_END_KEY, DENIED, REFUSED, LARGE, LATER}},
        {VERIFY_COUNT, true, OUTPUT_COUNT, {OUTPUT_COUNT, REFUSED, DENIED, REFUSED, LARGE, LATER}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct output_plan p = plan_of(rows[i].kind, rows[i].rows);
        for (int a = OUTPUT_READ; a <= OUTPUT_AGAIN; a++) {
            assert_int_equal(output_next(&p, rows[i].done, (enum output_answer)a), rows[i].next[a]);
        }
    }
    struct output_plan p = plan_of(VERIFY_MANIFEST, true);
    p.input[0] = '\0'; /* no Parquet file */
    assert_int_equal(output_next(&p, OUTPUT_LIST, OUTPUT_READ), OUTPUT_JUDGE);
}

static void test_output_plan__each_text_of_figures_is_read_once(void **state)
{
    (void)state;
    const struct verify_object objects[] = {
        {.key = "0.tar"}, {.key = "0_stats.json"}, {.key = "1_stats.json"}, {.key = "1.tar"}};
    struct output_seen seen = {.objects = objects, .objects_n = 4};
    const char *key = NULL;
    size_t cursor = 0;
    assert_true(output_next_stats(&seen, &cursor, &key));
    assert_string_equal(key, "0_stats.json");
    assert_true(output_next_stats(&seen, &cursor, &key));
    assert_string_equal(key, "1_stats.json");
    assert_false(output_next_stats(&seen, &cursor, &key));
    cursor = 0;
    (void)snprintf(seen.stats.bad, sizeof seen.stats.bad, "malformed");
    assert_false(output_next_stats(&seen, &cursor, &key)); /* that decides */
}

/* As many as a listing may have: a whole output is not short, and none of its rows are left out. */
static void test_output_plan__all_figures_are_added_up(void **state)
{
    (void)state;
    static char keys[SHARDS_MOST][24];
    static struct verify_object objects[SHARDS_MOST];
    const struct output_plan p = {.kind = VERIFY_IMG2DATASET, .told = true};
    struct output_seen seen = {
        .objects = objects, .objects_n = SHARDS_MOST, .rows_in = INT64_C(1000) * SHARDS_MOST};
    struct output_verdict v;
    const char *key = NULL;
    size_t cursor = 0;
    for (int i = 0; i < SHARDS_MOST; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "%06d_stats.json", i);
        objects[i] = (struct verify_object){.key = keys[i], .size = 9, .etag = ""};
    }
    while (output_next_stats(&seen, &cursor, &key)) {
        verify_sums_add(&seen.stats, STR("{\"count\":1000,\"successes\":900}"));
    }
    output_judge(&p, &seen, &v);
    assert_true(v.good);
    assert_int_equal(v.successes, 900 * SHARDS_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output_plan__where_each_kind_is_looked_at),
        cmocka_unit_test(test_output_plan__artifacts_that_are_not_packed),
        cmocka_unit_test(test_output_plan__rows_are_those_of_the_file_that_is_read),
        cmocka_unit_test(test_output_plan__a_place_that_cannot_be_told_is_not_good),
        cmocka_unit_test(test_output_plan__folders_end_in_a_slash),
        cmocka_unit_test(test_output_plan__done_if_is_of_any_task),
        cmocka_unit_test(test_output_plan__what_an_answer_means),
        cmocka_unit_test(test_output_plan__a_refusal_for_good_ends_it),
        cmocka_unit_test(test_output_plan__counts),
        cmocka_unit_test(test_output_plan__counts_no_more_pages_than_it_needs),
        cmocka_unit_test(test_output_plan__one_of_many_is_asked_again),
        cmocka_unit_test(test_output_plan__tars_that_are_counted_are_there),
        cmocka_unit_test(test_output_plan__many_shards_are_judged_in_a_moment),
        cmocka_unit_test(test_output_plan__a_manifest_of_another_task),
        cmocka_unit_test(test_output_plan__what_is_asked_first),
        cmocka_unit_test(test_output_plan__what_comes_after_each_answer),
        cmocka_unit_test(test_output_plan__each_text_of_figures_is_read_once),
        cmocka_unit_test(test_output_plan__all_figures_are_added_up),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
