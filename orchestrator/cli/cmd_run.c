/* drover scaling and drover compare: training runs against each other. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <math.h>
#include <stdio.h>

static double real(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static const char *figure(double v, char buf[static TEXT_N])
{
    (void)snprintf(buf, TEXT_N, "%.4g", v);
    return buf;
}

static char *verdict(const struct cli *cli, const json_t *row)
{
    (void)cli;
    if (json_is_true(json_object_get(row, "cheapest"))) {
        return xstrdup("cheapest");
    }
    return xstrdup(json_is_true(json_object_get(row, "in_time")) ? "" : "too late");
}

static char *rate_text(const struct cli *cli, const json_t *row)
{
    char rate[TEXT_N];
    (void)cli;
    return xstrdup(figure(real(json_object_get(row, "rate"), "median"), rate));
}

static char *spread_text(const struct cli *cli, const json_t *row)
{
    char low[TEXT_N], high[TEXT_N];
    const json_t *r = json_object_get(row, "rate");
    (void)cli;
    return xasprintf("%s-%s", figure(real(r, "p25"), low), figure(real(r, "p75"), high));
}

static char *speedup_text(const struct cli *cli, const json_t *row)
{
    (void)cli;
    return xasprintf("%.2f", real(row, "speedup"));
}

/* By the time of whole runs. */
static const struct list_column run_columns[] = {
    {"INSTANCES", COLUMN_NUMBER, .path = "instances"},
    {"RUN", COLUMN_SPAN, .path = "epoch_seconds"},
    {"SPEEDUP", COLUMN_REAL, .path = "speedup", .text = speedup_text},
    {"EFFICIENCY", COLUMN_RATIO, .path = "efficiency"},
    {"USD", COLUMN_USD, .path = "epoch_micro_usd"},
    {"NOTE", COLUMN_TEXT, .text = verdict},
    {"STAGE", COLUMN_TEXT, .path = "stage", .wide = true},
    {"TYPE", COLUMN_TEXT, .path = "instance_type", .wide = true},
};
/* By the rate that a metric has. */
static const struct list_column rate_columns[] = {
    {"INSTANCES", COLUMN_NUMBER, .path = "instances"},
    {"RATE", COLUMN_REAL, .path = "rate.median", .text = rate_text},
    {"QUARTILES", COLUMN_REAL, .text = spread_text},
    {"SPEEDUP", COLUMN_REAL, .path = "speedup", .text = speedup_text},
    {"EFFICIENCY", COLUMN_RATIO, .path = "efficiency"},
    {"EPOCH", COLUMN_SPAN, .path = "epoch_seconds"},
    {"USD", COLUMN_USD, .path = "epoch_micro_usd"},
    {"NOTE", COLUMN_TEXT, .text = verdict},
    {"STAGE", COLUMN_TEXT, .path = "stage", .wide = true},
    {"TYPE", COLUMN_TEXT, .path = "instance_type", .wide = true},
};
static const struct api_list by_run = LIST(run_columns, "stage");
static const struct api_list by_rate = LIST(rate_columns, "stage");

int cmd_scaling(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    AUTO_BUF struct buf query = BUF_INIT(8192);
    char text[TEXT_N];
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    query_add(&query, "group", cli->opt.group != NULL ? cli->opt.group : ref.stage);
    query_add(&query, "metric", cli->opt.metric != NULL ? cli->opt.metric : "");
    query_add(&query, "deadline", cli->opt.deadline != NULL ? cli->opt.deadline : "");
    query_add(&query, "epoch", cli->opt.epoch > 0 ? number(cli->opt.epoch, text) : "");
    query_add(&query, "warm_up", cli->opt.warm_up >= 0 ? number(cli->opt.warm_up, text) : "");
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/scaling%s", ref.campaign,
                    buf_cstr(&query))) {
        return status;
    }
    bool rated = !jnull(r.json, "metric");
    const json_t *rows = json_object_get(r.json, "rows");
    const struct api_list *l = rated ? &by_rate : &by_run;
    if (list_machine(cli, l, r.json, rows, &status)) {
        return status;
    }
    AUTO_FREE char *head = xasprintf("%s/%s: ", ref.campaign, jstr(r.json, "group"));
    AUTO_FREE char *what = rated
                               ? xasprintf("the median of %s after the warm-up; an epoch of %lld",
                                           jstr(r.json, "metric"), (long long)jint(r.json, "epoch"))
                               : xstrdup("the time of whole runs");
    text_print(cli, head, what);
    if (cli->opt.deadline != NULL) {
        say("cheapest: of those that need no more than %s", cli->opt.deadline);
    }
    list_table(cli, l, rows);
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(r.json, "left_out"), i, v)
    {
        say("left out: %s: %s", jstr(v, "stage"), jstr(v, "reason"));
    }
    return EXIT_OK;
}

static void settings_print(const struct cli *cli, const json_t *answer)
{
    struct text_table t = {0};
    const json_t *list = json_object_get(answer, "settings");
    long long n = (long long)json_array_size(list);
    (void)printf("A %s  B %s  %lld of %lld settings differ\n",
                 jstr(json_object_get(answer, "a"), "run"),
                 jstr(json_object_get(answer, "b"), "run"), n,
                 n + (long long)jint(answer, "settings_equal"));
    if (n == 0) {
        return;
    }
    table_column(&t, "SETTING", false);
    table_column(&t, "A", false);
    table_column(&t, "B", false);
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        table_row(&t, (const char *const[]){jstr(v, "key"), jnull(v, "a") ? "-" : jstr(v, "a"),
                                            jnull(v, "b") ? "-" : jstr(v, "b")});
    }
    table_print(cli, &t);
}

static const char *percent(double a, double b, char buf[static TEXT_N])
{
    if (!(fabs(a) > 0)) {
        return "-";
    }
    (void)snprintf(buf, TEXT_N, "%+.1f %%", 100 * (b - a) / fabs(a));
    return buf;
}

/* A row of what was measured many times: mean and spread, and whether they differ by more than
 * chance. */
static void sample_row(struct text_table *t, const char *name, const json_t *v)
{
    char texts[3][TEXT_N], p[TEXT_N];
    const json_t *a = json_object_get(v, "a"), *b = json_object_get(v, "b");
    const char *says = "too few values";
    (void)snprintf(texts[0], TEXT_N, "%.4g (%.2g)", real(a, "mean"), real(a, "stddev"));
    (void)snprintf(texts[1], TEXT_N, "%.4g (%.2g)", real(b, "mean"), real(b, "stddev"));
    if (json_is_true(json_object_get(v, "significant"))) {
        (void)snprintf(p, sizeof p, "p %.2g", real(v, "p"));
        says = real(v, "p") < 0.001 ? "p < 0.001" : p;
    } else if (!jnull(v, "significant")) {
        says = "not significant";
    }
    table_row(t, (const char *const[]){name, texts[0], texts[1],
                                       percent(real(a, "mean"), real(b, "mean"), texts[2]), says});
}

static void figures_print(const struct cli *cli, const json_t *answer)
{
    struct text_table t = {0};
    static const char *const heads[] = {"MEAN (DEVIATION)", "A", "B", "DELTA", ""};
    const json_t *a = json_object_get(answer, "a"), *b = json_object_get(answer, "b");
    const json_t *pace = json_object_get(answer, "pace");
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i >= 1 && i <= 3);
    }
    char x[TEXT_N], y[TEXT_N], d[TEXT_N];
    table_row(&t, (const char *const[]){"time", duration(real(a, "seconds"), x),
                                        duration(real(b, "seconds"), y),
                                        percent(real(a, "seconds"), real(b, "seconds"), d), ""});
    table_row(&t, (const char *const[]){
                      "USD", money(jint(a, "micro_usd"), x), money(jint(b, "micro_usd"), y),
                      percent(real(a, "micro_usd"), real(b, "micro_usd"), d), ""});
    if (!jnull(answer, "pace")) {
        table_row(&t, (const char *const[]){"overhead", duration(real(a, "overhead_seconds"), x),
                                            duration(real(b, "overhead_seconds"), y), "", ""});
        if (!jnull(pace, "step_seconds")) {
            sample_row(&t, "seconds a step", json_object_get(pace, "step_seconds"));
        }
    }
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(answer, "metrics"), i, v)
    {
        if (!jnull(v, "a")) {
            sample_row(&t, jstr(v, "name"), v);
        }
    }
    table_print(cli, &t);
}

static void break_even_print(const json_t *answer)
{
    const json_t *pace = json_object_get(answer, "pace");
    if (jnull(answer, "pace")) {
        (void)printf("no pace: it takes a metric of both runs at two steps and two instants\n");
        return;
    }
    const char *who = strcmp(jstr(pace, "quicker"), "b") == 0 ? "B" : "A";
    if (jnull(pace, "step_seconds") ||
        !json_is_true(json_object_get(json_object_get(pace, "step_seconds"), "significant"))) {
        (void)printf("neither makes its steps quicker, as far as this can be told\n");
    } else if (!jnull(pace, "break_even_step")) {
        (void)printf("%s is ahead from step %lld on\n", who,
                     (long long)jint(pace, "break_even_step"));
    } else {
        (void)printf("%s is ahead from the start\n", who);
    }
}

static void place(struct buf *query, const char *name, const struct ref *ref)
{
    AUTO_FREE char *text = xasprintf("%s/%s/%lld/%lld", ref->campaign, ref->stage,
                                     (long long)MAX(ref->part, 0), (long long)ref->attempt);
    query_add(query, name, text);
}

/* Settings, figures and metrics as rows of one list, figures as numbers without their spread. */
static const struct list_column compare_columns[] = {
    {"WHAT", COLUMN_TEXT, .path = "what"},
    {"A", COLUMN_TEXT, .path = "a"},
    {"B", COLUMN_TEXT, .path = "b"},
    {"SIGNIFICANT", COLUMN_TEXT, .path = "significant", .wide = true},
};
static const struct api_list comparison = LIST(compare_columns, "what");

static void compare_row(json_t *rows, const char *what, const char *key, const json_t *of)
{
    const json_t *a = json_object_get(of, "a"), *b = json_object_get(of, "b");
    AUTO_FREE char *x = json_dumps(json_object_get(a, key), JSON_ENCODE_ANY);
    AUTO_FREE char *y = json_dumps(json_object_get(b, key), JSON_ENCODE_ANY);
    const json_t *s = json_object_get(of, "significant");
    (void)json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s}", "what", what, "a",
                                                x != NULL ? x : "", "b", y != NULL ? y : "",
                                                "significant",
                                                json_is_true(s)    ? "yes"
                                                : json_is_false(s) ? "no"
                                                                   : ""));
}

/* The caller owns it. */
static json_t *compare_rows(const json_t *answer)
{
    json_t *rows = json_array(), *v;
    size_t i;
    json_array_foreach(json_object_get(answer, "settings"), i, v)
    {
        (void)json_array_append_new(rows, json_pack("{s:s, s:s, s:s}", "what", jstr(v, "key"), "a",
                                                    jstr(v, "a"), "b", jstr(v, "b")));
    }
    compare_row(rows, "seconds", "seconds", answer);
    compare_row(rows, "micro_usd", "micro_usd", answer);
    if (!jnull(answer, "pace")) {
        compare_row(rows, "overhead_seconds", "overhead_seconds", answer);
        compare_row(rows, "step_seconds", "mean",
                    json_object_get(json_object_get(answer, "pace"), "step_seconds"));
    }
    json_array_foreach(json_object_get(answer, "metrics"), i, v)
    {
        compare_row(rows, jstr(v, "name"), "mean", v);
    }
    return rows;
}

int cmd_compare(struct cli *cli)
{
    int status;
    struct ref a, b;
    char text[TEXT_N];
    CLEANUP(reply_done)
    struct client_reply r = {0};
    AUTO_BUF struct buf query = BUF_INIT(8192);
    if (!ref_read(cli, cli->args[0], &a, &status) || !ref_read(cli, cli->args[1], &b, &status)) {
        return status;
    }
    if (a.stage[0] == '\0' || b.stage[0] == '\0') {
        return fail(EXIT_USAGE, "drover compare c-7/train-1 c-7/train-2",
                    "a run is CAMPAIGN/STAGE[/PART[/ATTEMPT]]");
    }
    place(&query, "a", &a);
    place(&query, "b", &b);
    query_add(&query, "warm_up", cli->opt.warm_up >= 0 ? number(cli->opt.warm_up, text) : "");
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/compare%s", a.campaign, buf_cstr(&query))) {
        return status;
    }
    status = EXIT_OK;
    AUTO_JSON json_t *rows = compare_rows(r.json);
    if (print_machine(cli, r.json, json_object_get(r.json, "metrics")) ||
        list_machine(cli, &comparison, r.json, rows, &status)) {
        return status;
    }
    if (cli->opt.columns != NULL) {
        list_table(cli, &comparison, rows);
        return EXIT_OK;
    }
    settings_print(cli, r.json);
    figures_print(cli, r.json);
    break_even_print(r.json);
    return EXIT_OK;
}
