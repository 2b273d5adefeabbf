/* drover scaling and drover compare: training runs against each other. */
#include "cli.h"
#include "client.h"
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

/* "12.3 s" below a minute. */
static const char *duration(double s, char buf[static TEXT_N])
{
    if (s >= 59.95) {
        return span(llround(s), buf);
    }
    (void)snprintf(buf, TEXT_N, s < 1 ? "%.3g s" : "%.1f s", s);
    return buf;
}

static const char *verdict(const json_t *row)
{
    if (json_is_true(json_object_get(row, "cheapest"))) {
        return "cheapest";
    }
    return json_is_true(json_object_get(row, "in_time")) ? "" : "too late";
}

/* By the time of whole runs, or by the rate that a metric has. */
static void scaling_table(const struct cli *cli, const json_t *rows, bool rated)
{
    struct text_table t = {0};
    const char *const heads[] = {"INSTANCES",
                                 rated ? "RATE" : "RUN",
                                 rated ? "QUARTILES" : "SPEEDUP",
                                 rated ? "SPEEDUP" : "EFFICIENCY",
                                 rated ? "EFFICIENCY" : "USD",
                                 rated ? "EPOCH" : "",
                                 "USD",
                                 ""};
    size_t n = rated ? 8 : 6;
    for (size_t i = 0; i < n; i++) {
        table_column(&t, heads[i], i + 1 < n);
    }
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        char count[TEXT_N], rate[TEXT_N], low[TEXT_N], high[TEXT_N], up[TEXT_N], eff[TEXT_N];
        char epoch[TEXT_N], usd[TEXT_N];
        const json_t *r = json_object_get(row, "rate");
        AUTO_FREE char *spread =
            xasprintf("%s-%s", figure(real(r, "p25"), low), figure(real(r, "p75"), high));
        (void)snprintf(up, sizeof up, "%.2f", real(row, "speedup"));
        (void)snprintf(eff, sizeof eff, "%.1f %%", 100 * real(row, "efficiency"));
        (void)number(jint(row, "instances"), count);
        (void)figure(real(r, "median"), rate);
        (void)duration(real(row, "epoch_seconds"), epoch);
        (void)money(jint(row, "epoch_micro_usd"), usd);
        const char *const by_rate[] = {count, rate, spread, up, eff, epoch, usd, verdict(row)};
        const char *const by_time[] = {count, epoch, up, eff, usd, verdict(row)};
        table_row(&t, rated ? by_rate : by_time);
    }
    table_print(cli, &t);
}

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
    query_add(&query, "warm_up", cli->opt.warm_up > 0 ? number(cli->opt.warm_up, text) : "");
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/scaling%s", ref.campaign,
                    buf_cstr(&query))) {
        return status;
    }
    if (print_machine(cli, r.json, json_object_get(r.json, "rows"))) {
        return EXIT_OK;
    }
    bool rated = !jnull(r.json, "metric");
    AUTO_FREE char *head = xasprintf("%s/%s: ", ref.campaign, jstr(r.json, "group"));
    AUTO_FREE char *what = rated
                               ? xasprintf("the median of %s after the warm-up; an epoch of %lld",
                                           jstr(r.json, "metric"), (long long)jint(r.json, "epoch"))
                               : xstrdup("the time of whole runs");
    text_print(cli, head, what);
    scaling_table(cli, json_object_get(r.json, "rows"), rated);
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
    query_add(&query, "warm_up", cli->opt.warm_up > 0 ? number(cli->opt.warm_up, text) : "");
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/compare%s", a.campaign, buf_cstr(&query))) {
        return status;
    }
    if (print_machine(cli, r.json, json_object_get(r.json, "metrics"))) {
        return EXIT_OK;
    }
    settings_print(cli, r.json);
    figures_print(cli, r.json);
    break_even_print(r.json);
    return EXIT_OK;
}
