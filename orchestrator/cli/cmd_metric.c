/* drover metrics: the figures that training jobs print. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

#define CHART_ROWS     20 /* of one metric on the screen */
#define CHART_ROWS_MAX 2000

static const struct list_column columns[] = {
    {"STAGE", COLUMN_TEXT, .path = "stage"},
    {"PART", COLUMN_NUMBER, .path = "seq"},
    {"TRY", COLUMN_NUMBER, .path = "attempt"},
    {"METRIC", COLUMN_TEXT, .path = "name"},
    {"POINTS", COLUMN_NUMBER, .path = "points"},
    {"STEP", COLUMN_NUMBER, .path = "last_step"},
    {"LAST", COLUMN_REAL, .path = "last"},
    {"MIN", COLUMN_REAL, .path = "min"},
    {"MAX", COLUMN_REAL, .path = "max"},
    {"MEAN", COLUMN_REAL, .path = "mean"},
    {"FINAL", COLUMN_REAL, .path = "final"},
    {"INSTANCES", COLUMN_NUMBER, .path = "instances", .wide = true},
    {"NOTE", COLUMN_TEXT, .path = "note", .wide = true},
};
static const struct api_list metrics = LIST(columns, "name");
static const struct list_column point_columns[] = {
    {"METRIC", COLUMN_TEXT, .path = "metric", .wide = true},
    {"STEP", COLUMN_NUMBER, .path = "step"},
    {"SECONDS", COLUMN_REAL, .path = "seconds"},
    {"MEAN", COLUMN_REAL, .path = "mean"},
    {"MIN", COLUMN_REAL, .path = "min"},
    {"MAX", COLUMN_REAL, .path = "max"},
};
static const struct api_list points = LIST(point_columns, "metric");

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
    int64_t n;
    if (!list_rows(cli, LIST_ROWS_MAX, &n, &status) ||
        !client_get(cli, &r, &status, "/v1/campaigns/%s/metrics?page_size=%lld%s%s", ref->campaign,
                    (long long)n, stage[0] != '\0' ? "&stage=" : "", stage)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "series");
    if (!jnull(r.json, "next_page_token")) {
        say("there are more: -n, --stage, or -o json with its next_page_token");
    }
    if (list_machine(cli, &metrics, r.json, list, &status)) {
        return status;
    }
    if (json_array_size(list) == 0) {
        (void)printf("%s has no metrics. A stage of its file defines one like this:\n"
                     "  metrics: [{name: loss, regex: 'loss=([0-9.]+)'}]\n",
                     ref->campaign);
        return EXIT_OK;
    }
    list_table(cli, &metrics, list);
    notes_print(list);
    return EXIT_OK;
}

/* The points of all series in one list, each with the name of its metric. The caller owns it. */
static json_t *points_of(const json_t *series)
{
    json_t *all = json_array(), *s, *p;
    size_t i, k;
    json_array_foreach(series, i, s)
    {
        json_array_foreach(json_object_get(s, "chart"), k, p)
        {
            json_t *row = json_copy(p);
            (void)json_object_set(row, "metric", json_object_get(s, "name"));
            (void)json_array_append_new(all, row);
        }
    }
    return all;
}

static void chart_print(const struct cli *cli, json_t *series)
{
    char n[TEXT_N];
    AUTO_JSON json_t *one = json_pack("[O]", series);
    AUTO_JSON json_t *rows = points_of(one);
    AUTO_FREE char *name = text_clean(jstr(series, "name"));
    (void)printf("%s: %s points\n", name, number(jint(series, "points"), n));
    list_table(cli, &points, rows);
}

static void none_print(const struct ref *ref, const char *stage, const json_t *answer)
{
    if (json_is_false(json_object_get(answer, "defined"))) {
        (void)printf("stage %s of %s defines no metrics. In its file it could do so like this:\n"
                     "  metrics: [{name: loss, regex: 'loss=([0-9.]+)'}]\n",
                     stage, ref->campaign);
    } else {
        (void)printf("no metric of it was found in its log%s\n",
                     json_is_true(json_object_get(answer, "complete")) ? "" : " yet");
    }
}

static int of_part(struct cli *cli, const struct ref *ref, const char *stage)
{
    int status;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    int64_t attempt = cli->opt.attempt > 0 ? cli->opt.attempt : ref->attempt;
    if (!list_limit_check(cli, CHART_ROWS_MAX, &status) ||
        !client_get(cli, &r, &status,
                    "/v1/campaigns/%s/parts/%lld/metrics?points=%lld&attempt=%lld%s%s",
                    ref->campaign, (long long)ref->part,
                    (long long)(cli->opt.limit > 0 ? cli->opt.limit : CHART_ROWS),
                    (long long)attempt, stage[0] != '\0' ? "&stage=" : "", stage)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "series");
    AUTO_JSON json_t *rows = points_of(list);
    if (cli->out == OUT_NAME) {
        print_names(list, "name");
        return EXIT_OK;
    }
    if (list_machine(cli, &points, r.json, cli->csv ? rows : list, &status)) {
        return status;
    }
    size_t i;
    json_t *s;
    json_array_foreach(list, i, s)
    {
        chart_print(cli, s);
    }
    if (json_array_size(list) == 0) {
        none_print(ref, stage, r.json);
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
    if (!ref_read(cli, cli->args[0], &ref, &status) ||
        (ref.part >= 0 && ref_stage(cli, &ref)[0] == '\0' && !ref_stage_find(cli, &ref, &status))) {
        return status;
    }
    const char *stage = cli->opt.stage != NULL ? cli->opt.stage : ref.stage;
    return ref.part >= 0 ? of_part(cli, &ref, stage) : of_campaign(cli, &ref, stage);
}
