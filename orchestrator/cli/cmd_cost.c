/* drover cost. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

static const char *percent(int64_t part, int64_t of, char buf[static TEXT_N])
{
    (void)snprintf(buf, TEXT_N, "%.1f %%", of > 0 ? 100.0 * (double)part / (double)of : 0.0);
    return buf;
}

static char *cause_text(const struct cli *cli, const json_t *row)
{
    (void)cli;
    return xstrdup(strcmp(jstr(row, "cause"), "none") == 0 ? "done" : jstr(row, "cause"));
}

/* "capacity wait" of "capacity_wait". */
static char *phase_text(const struct cli *cli, const json_t *row)
{
    char *name = xstrdup(jstr(row, "phase"));
    (void)cli;
    for (char *c = name; (c = strchr(c, '_')) != NULL;) {
        *c = ' ';
    }
    return name;
}

static char *elapsed_text(const struct cli *cli, const json_t *row)
{
    char time[TEXT_N];
    (void)cli;
    return xstrdup(jnull(row, "elapsed_seconds") ? "" : elapsed(row, time));
}

static char *share_text(const struct cli *cli, const json_t *row)
{
    (void)cli;
    return jnull(row, "share")
               ? xstrdup("")
               : xasprintf("%.1f %%", 100 * json_number_value(json_object_get(row, "share")));
}

static const struct list_column stage_columns[] = {
    {"STAGE", COLUMN_TEXT, .path = "stage"},
    {"SECONDS", COLUMN_NUMBER, .path = "seconds"},
    {"USD", COLUMN_USD, .path = "micro_usd"},
    {"RESERVED", COLUMN_USD, .path = "reserved_micro_usd", .wide = true},
    {"BUDGET", COLUMN_USD, .path = "limit_micro_usd", .wide = true},
};
static const struct list_column cause_columns[] = {
    {"CAUSE", COLUMN_TEXT, .text = cause_text},
    {"SECONDS", COLUMN_NUMBER, .path = "seconds"},
    {"USD", COLUMN_USD, .path = "micro_usd"},
    {"TRIES", COLUMN_NUMBER, .path = "attempts", .wide = true},
};
static const struct list_column phase_columns[] = {
    {"PHASE", COLUMN_TEXT, .text = phase_text},
    {"ELAPSED", COLUMN_SPAN, .path = "elapsed_seconds", .text = elapsed_text},
    {"SECONDS", COLUMN_NUMBER, .path = "seconds"},
    {"USD", COLUMN_USD, .path = "micro_usd"},
    {"OF THE BILL", COLUMN_RATIO, .path = "share", .text = share_text},
};
static const struct list_column type_columns[] = {
    {"TYPE", COLUMN_TEXT, .path = "instance_type"},
    {"MARKET", COLUMN_TEXT, .path = "market"},
    {"TRIES", COLUMN_NUMBER, .path = "attempts"},
    {"SECONDS", COLUMN_NUMBER, .path = "seconds"},
    {"USD", COLUMN_USD, .path = "micro_usd"},
    {"WARM USD", COLUMN_USD, .path = "idle_micro_usd"}, /* of idle pools, in addition */
};
static const struct api_list by_stage = LIST(stage_columns, "stage");
static const struct api_list by_cause = LIST(cause_columns, "cause");
static const struct api_list by_phase = LIST(phase_columns, "phase");
static const struct api_list by_type = LIST(type_columns, "instance_type");

static int64_t sum_of(const json_t *phases, const char *key)
{
    int64_t sum = 0;
    size_t i;
    json_t *v;
    json_array_foreach(phases, i, v)
    {
        sum += jint(v, key);
    }
    return sum;
}

/* The phases, each with its share of the bill. The caller owns it. */
static json_t *phase_rows(const json_t *phases)
{
    json_t *rows = json_deep_copy(phases), *v;
    double all = (double)sum_of(phases, "micro_usd");
    size_t i;
    json_array_foreach(rows, i, v)
    {
        double part = (double)jint(v, "micro_usd");
        (void)json_object_set_new(v, "share", json_real(all > 0 ? part / all : 0));
    }
    return rows;
}

static void phase_table(const struct cli *cli, const json_t *phases)
{
    AUTO_JSON json_t *rows = phase_rows(phases);
    (void)json_array_append_new(rows, json_pack("{s:s, s:I, s:I}", "phase", "all", "seconds",
                                                (json_int_t)sum_of(phases, "seconds"), "micro_usd",
                                                (json_int_t)sum_of(phases, "micro_usd")));
    list_table(cli, &by_phase, rows);
}

/* True when a stage has paid for phase k. */
static bool is_paid(const json_t *stages, size_t k)
{
    size_t i;
    json_t *g;
    json_array_foreach(stages, i, g)
    {
        if (jint(json_array_get(json_object_get(g, "by_phase"), k), "micro_usd") != 0) {
            return true;
        }
    }
    return false;
}

/* USD by phase, one row for each stage and one column for each phase that cost something. */
static void phase_stages(const struct cli *cli, const json_t *stages)
{
    static const char *const heads[] = {"WAIT",   "START", "IMAGE", "DATA",    "TRAINING",
                                        "UPLOAD", "WARM",  "OTHER", "HOSTING", "STORAGE"};
    struct text_table t = {0};
    bool shown[ARRAY_LEN(heads)];
    table_column(&t, "STAGE", false);
    for (size_t k = 0; k < ARRAY_LEN(heads); k++) {
        shown[k] = is_paid(stages, k);
        if (shown[k]) {
            table_column(&t, heads[k], true);
        }
    }
    size_t i;
    json_t *g;
    json_array_foreach(stages, i, g)
    {
        char texts[ARRAY_LEN(heads)][TEXT_N];
        const char *cells[1 + ARRAY_LEN(heads)] = {jstr(g, "stage")};
        const json_t *phases = json_object_get(g, "by_phase");
        size_t n = 1;
        for (size_t k = 0; k < ARRAY_LEN(heads); k++) {
            if (shown[k]) {
                cells[n++] = money(jint(json_array_get(phases, k), "micro_usd"), texts[k]);
            }
        }
        table_row(&t, cells);
    }
    table_print(cli, &t);
}

static void phase_advice(const struct cli *cli, const json_t *stages)
{
    size_t i, k;
    json_t *g, *a;
    json_array_foreach(stages, i, g)
    {
        json_array_foreach(json_object_get(g, "advice"), k, a)
        {
            char time[TEXT_N], usd[TEXT_N];
            AUTO_FREE char *name = phase_text(cli, a);
            AUTO_FREE char *head = xasprintf("%s, %s, %s USD and %s: ", jstr(g, "stage"), name,
                                             money(jint(a, "micro_usd"), usd), elapsed(a, time));
            text_print(cli, head, jstr(a, "text"));
        }
    }
}

static void phases_print(const struct cli *cli, const json_t *cost)
{
    char usd[TEXT_N], all[TEXT_N], part[TEXT_N];
    const json_t *phases = json_object_get(cost, "by_phase");
    const json_t *stages = json_object_get(cost, "stages");
    int64_t sum = sum_of(phases, "micro_usd");
    int64_t idle = jint(json_object_get(cost, "trained_nothing"), "micro_usd");
    phase_table(cli, phases);
    (void)printf("trained nothing: %s of %s USD, %s of the bill\n", money(idle, usd),
                 money(sum, all), percent(idle, sum, part));
    phase_stages(cli, stages);
    phase_advice(cli, stages);
}

/* True when --by, or without it the stages, is printed for programs or in chosen columns. */
static bool cost_machine(const struct cli *cli, const json_t *answer, const char *by, int *ret_exit)
{
    bool phase = strcmp(by, "phase") == 0, cause = strcmp(by, "cause") == 0;
    bool type = strcmp(by, "type") == 0;
    const struct api_list *l = phase ? &by_phase : cause ? &by_cause : type ? &by_type : &by_stage;
    AUTO_JSON json_t *phases = phase_rows(json_object_get(answer, "by_phase"));
    const json_t *rows = phase ? phases
                               : json_object_get(answer, cause  ? "by_cause"
                                                         : type ? "by_type"
                                                                : "by_stage");
    if (print_machine(cli, answer, NULL) || list_machine(cli, l, answer, rows, ret_exit)) {
        return true;
    }
    if (cli->opt.columns != NULL) {
        list_table(cli, l, rows);
    }
    return cli->opt.columns != NULL;
}

/* Causes are of jobs: what the bill has besides. */
static void causes_print(const struct cli *cli, const json_t *cost, const char *campaign)
{
    char usd[TEXT_N];
    int64_t rest = jint(cost, "of_no_job_micro_usd");
    list_table(cli, &by_cause, json_object_get(cost, "by_cause"));
    if (rest > 0) {
        (void)printf("and %s USD of no job: file systems, endpoints, idle warm pools\n"
                     "  drover cost %s --by phase shows which\n",
                     money(rest, usd), campaign);
    }
}

int cmd_cost(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    if (ref.stage[0] != '\0' || ref.part >= 0) {
        AUTO_FREE char *next = xasprintf("drover cost %s --by stage has a row for each stage; "
                                         "drover get shows what a part cost",
                                         ref.campaign);
        return fail(EXIT_USAGE, next, "'%.80s': cost takes a campaign, not a stage or a part",
                    cli->args[0]);
    }
    AUTO_BUF struct buf query = BUF_INIT(8192);
    const char *by = cli->opt.by != NULL ? cli->opt.by : "";
    query_add(&query, "by", by);
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/cost%s", ref.campaign, buf_cstr(&query))) {
        return status;
    }
    status = EXIT_OK;
    if (cost_machine(cli, r.json, by, &status)) {
        return status;
    }
    char usd[TEXT_N], more[TEXT_N], limit[TEXT_N];
    const json_t *m = json_object_get(r.json, "metered");
    (void)printf("metered %s USD for %lld instance-seconds   reserved %s USD   budget %s\n",
                 money(jint(m, "micro_usd"), usd), (long long)jint(m, "seconds"),
                 money(jint(r.json, "reserved_micro_usd"), more),
                 jnull(r.json, "limit_micro_usd") ? "none"
                                                  : money(jint(r.json, "limit_micro_usd"), limit));
    if (strcmp(by, "phase") == 0) {
        phases_print(cli, r.json);
        return EXIT_OK;
    }
    if (strcmp(by, "type") == 0) {
        list_table(cli, &by_type, json_object_get(r.json, "by_type"));
        return EXIT_OK;
    }
    if (strcmp(by, "cause") != 0) {
        list_table(cli, &by_stage, json_object_get(r.json, "by_stage"));
    }
    if (strcmp(by, "stage") != 0) {
        causes_print(cli, r.json, ref.campaign);
    }
    return EXIT_OK;
}
