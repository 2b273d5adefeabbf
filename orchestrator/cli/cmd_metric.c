/* drover metrics: the figures that training jobs print. */
#include "cli.h"
#include "client.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

#define CHART_ROWS 20 /* of one metric on the screen */

static const char *figure(const json_t *o, const char *key, char buf[static TEXT_N])
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_number(v)) {
        return "-";
    }
    (void)snprintf(buf, TEXT_N, "%.6g", json_number_value(v));
    return buf;
}

static void series_print(const struct cli *cli, const json_t *list)
{
    struct text_table t = {0};
    static const char *const heads[] = {"STAGE", "PART", "TRY", "METRIC", "POINTS", "STEP",
                                        "LAST",  "MIN",  "MAX", "MEAN",   "FINAL"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i != 0 && i != 3);
    }
    size_t i;
    json_t *s;
    json_array_foreach(list, i, s)
    {
        char part[TEXT_N], try[TEXT_N], n[TEXT_N], step[TEXT_N];
        char last[TEXT_N], min[TEXT_N], max[TEXT_N], mean[TEXT_N], final[TEXT_N];
        table_row(&t, (const char *const[]){
                          jstr(s, "stage"), number(jint(s, "seq"), part),
                          number(jint(s, "attempt"), try), jstr(s, "name"),
                          number(jint(s, "points"), n), number_or_dash(s, "last_step", step),
                          figure(s, "last", last), figure(s, "min", min), figure(s, "max", max),
                          figure(s, "mean", mean), figure(s, "final", final)});
    }
    table_print(cli, &t);
}

static void notes_print(const json_t *list)
{
    size_t i;
    json_t *s;
    const char *told = "";
    json_array_foreach(list, i, s)
    {
        if (!jnull(s, "note") && strcmp(jstr(s, "part"), told) != 0) {
            told = jstr(s, "part");
            say("%s, stage %s: not whole: %s", told, jstr(s, "stage"), jstr(s, "note"));
        }
    }
}

static int of_campaign(struct cli *cli, const struct ref *ref, const char *stage)
{
    int status;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/metrics?page_size=%lld%s%s", ref->campaign,
                    (long long)(cli->opt.limit > 0 ? MIN(cli->opt.limit, 1000) : 1000),
                    stage[0] != '\0' ? "&stage=" : "", stage)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "series");
    if (print_machine(cli, r.json, list)) {
        return EXIT_OK;
    }
    if (cli->out == OUT_NAME) {
        print_names(list, "name");
        return EXIT_OK;
    }
    if (json_array_size(list) == 0) {
        (void)printf("%s has no metrics. A stage of its file defines one like this:\n"
                     "  metrics: [{name: loss, regex: 'loss=([0-9.]+)'}]\n",
                     ref->campaign);
        return EXIT_OK;
    }
    series_print(cli, list);
    notes_print(list);
    if (!jnull(r.json, "next_page_token")) {
        say("there are more: -n, --stage, or -o json with its next_page_token");
    }
    return EXIT_OK;
}

static void chart_print(const struct cli *cli, const json_t *series)
{
    struct text_table t = {0};
    static const char *const heads[] = {"STEP", "SECONDS", "MEAN", "MIN", "MAX"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], true);
    }
    size_t i;
    json_t *p;
    char n[TEXT_N];
    (void)printf("%s: %s points\n", jstr(series, "name"), number(jint(series, "points"), n));
    json_array_foreach(json_object_get(series, "chart"), i, p)
    {
        char step[TEXT_N], at[TEXT_N], mean[TEXT_N], min[TEXT_N], max[TEXT_N];
        table_row(&t, (const char *const[]){number(jint(p, "step"), step), figure(p, "seconds", at),
                                            figure(p, "mean", mean), figure(p, "min", min),
                                            figure(p, "max", max)});
    }
    table_print(cli, &t);
}

static int of_part(struct cli *cli, const struct ref *ref, const char *stage)
{
    int status;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    int64_t attempt = cli->opt.attempt > 0 ? cli->opt.attempt : ref->attempt;
    if (!client_get(cli, &r, &status,
                    "/v1/campaigns/%s/parts/%lld/metrics?points=%lld&attempt=%lld%s%s",
                    ref->campaign, (long long)ref->part,
                    (long long)(cli->opt.limit > 0 ? MIN(cli->opt.limit, 2000) : CHART_ROWS),
                    (long long)attempt, stage[0] != '\0' ? "&stage=" : "", stage)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "series");
    if (print_machine(cli, r.json, list)) {
        return EXIT_OK;
    }
    if (cli->out == OUT_NAME) {
        print_names(list, "name");
        return EXIT_OK;
    }
    size_t i;
    json_t *s;
    json_array_foreach(list, i, s)
    {
        chart_print(cli, s);
    }
    if (json_array_size(list) == 0) {
        (void)printf("no metric of it was found in its log%s\n",
                     json_is_true(json_object_get(r.json, "complete")) ? "" : " yet");
    }
    if (!jnull(r.json, "note")) {
        say("not whole: %s", jstr(r.json, "note"));
    }
    return EXIT_OK;
}

int cmd_metrics(struct cli *cli)
{
    int status;
    struct ref ref;
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    const char *stage = cli->opt.stage != NULL ? cli->opt.stage : ref.stage;
    return ref.part >= 0 ? of_part(cli, &ref, stage) : of_campaign(cli, &ref, stage);
}
