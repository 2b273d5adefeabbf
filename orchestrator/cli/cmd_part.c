/* drover parts, and one part for drover get. */
#include "cmd_part.h"
#include "cli.h"
#include "client.h"
#include "pages.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

/* The attempts in two tables, the runs and the results, so that both fit a narrow terminal. */
static void tries_print(const struct cli *cli, const json_t *list)
{
    struct text_table t = {0};
    struct text_table why = {0};
    bool estimated = false;
    static const char *const heads[] = {"TRY", "STATE", "CAUSE", "USD", "SECONDS", "JOB"};
    static const char *const why_heads[] = {"TRY", "STARTED", "REASON"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i == 0 || i == 3 || i == 4);
    }
    for (size_t i = 0; i < ARRAY_LEN(why_heads); i++) {
        table_column(&why, why_heads[i], i == 0);
    }
    size_t i;
    json_t *a;
    json_array_foreach(list, i, a)
    {
        char n[TEXT_N], s[TEXT_N], at[TEXT_N], usd[TEXT_N], cost[TEXT_N + 1];
        bool guess = json_is_true(json_object_get(a, "estimated"));
        estimated |= guess;
        (void)number(jint(a, "n"), n);
        (void)snprintf(cost, sizeof cost, "%s%s", guess ? "~" : "",
                       money(jint(a, "cost_micro_usd"), usd));
        table_row(&t, (const char *const[]){n, jstr(a, "state"), jstr(a, "cause"), cost,
                                            number(jint(a, "billable_seconds"), s),
                                            jstr(a, "job_name")});
        table_row(&why,
                  (const char *const[]){n, when(jstr(a, "started_at"), at), jstr(a, "reason")});
    }
    table_print(cli, &t);
    table_print(cli, &why);
    if (estimated) {
        (void)printf("~: estimated, at most; SageMaker has not told what it bills\n");
    }
}

/* How long each phase of the attempts took. */
static void phases_print(const struct cli *cli, const json_t *list)
{
    struct text_table t = {0};
    static const char *const heads[] = {"TRY",  "WAIT",     "START", "IMAGE",
                                        "DATA", "TRAINING", "UPLOAD"};
    size_t i, measured = 0;
    json_t *a;
    json_array_foreach(list, i, a)
    {
        measured += json_array_size(json_object_get(a, "phases"));
    }
    if (measured == 0) {
        return;
    }
    for (i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], true);
    }
    json_array_foreach(list, i, a)
    {
        char texts[ARRAY_LEN(heads)][TEXT_N];
        const char *cells[ARRAY_LEN(heads)] = {number(jint(a, "n"), texts[0])};
        const json_t *phases = json_object_get(a, "phases");
        for (size_t k = 1; k < ARRAY_LEN(heads); k++) {
            const json_t *p = json_array_get(phases, k - 1);
            cells[k] = p == NULL ? "-" : elapsed(p, texts[k]);
        }
        table_row(&t, cells);
    }
    table_print(cli, &t);
}

/* What the rules of its debugger and profiler have found. */
static void rules_print(const struct cli *cli, const json_t *list)
{
    struct text_table t = {0};
    static const char *const heads[] = {"TRY", "RULE", "STATUS", "DETAILS"};
    size_t i, k, told = 0;
    json_t *a, *rule;
    for (i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i == 0);
    }
    json_array_foreach(list, i, a)
    {
        json_array_foreach(json_object_get(json_object_get(a, "evidence"), "rules"), k, rule)
        {
            char n[TEXT_N];
            table_row(&t, (const char *const[]){number(jint(a, "n"), n), jstr(rule, "name"),
                                                jstr(rule, "status"), jstr(rule, "details")});
            told++;
        }
    }
    if (told > 0) {
        table_print(cli, &t);
    }
}

char *part_name(const json_t *part)
{
    struct str rest = str_of(jstr(part, "id"));
    struct str campaign = str_split(&rest, '/');
    return xasprintf(STR_FMT "/%s/" STR_FMT, STR_ARG(campaign), jstr(part, "stage"), STR_ARG(rest));
}

void part_print(const struct cli *cli, const json_t *p)
{
    AUTO_FREE char *uri = text_clean(jstr(p, "uri"));
    AUTO_FREE char *name = part_name(p);
    (void)printf("%s  %s %s\n", name, glyph(cli, jstr(p, "phase")), jstr(p, "phase"));
    if (uri[0] != '\0') {
        text_print(cli, "input: ", uri);
    }
    if (!jnull(p, "skipped")) {
        text_print(cli, "", jstr(json_object_get(p, "skipped"), "text"));
    }
    if (!jnull(p, "reason")) {
        AUTO_FREE char *head = xasprintf("%s: ", jnull(p, "cause") ? "last try" : jstr(p, "cause"));
        text_print(cli, head, jstr(p, "reason"));
    } else if (!jnull(p, "wait_text")) {
        text_print(cli, "waits: ", jstr(p, "wait_text"));
    }
    if (json_array_size(json_object_get(p, "attempt_list")) > 0) {
        tries_print(cli, json_object_get(p, "attempt_list"));
        phases_print(cli, json_object_get(p, "attempt_list"));
        rules_print(cli, json_object_get(p, "attempt_list"));
        (void)printf("log: drover logs %s\n", name);
    }
}

static char *why_text(const struct cli *cli, const json_t *p)
{
    const char *why = !jnull(p, "reason")      ? jstr(p, "reason")
                      : !jnull(p, "wait_text") ? jstr(p, "wait_text")
                                               : jstr(p, "uri");
    return text_short(cli, why);
}

static char *name_text(const struct cli *cli, const json_t *p)
{
    (void)cli;
    return part_name(p);
}

static const struct list_column columns[] = {
    {"PART", COLUMN_TEXT, .path = "id", .text = name_text},
    {"STAGE", COLUMN_TEXT, .path = "stage", .wide = true},
    {"STATE", COLUMN_STATE, .path = "phase"},
    {"CAUSE", COLUMN_TEXT, .path = "cause"},
    {"TRIES", COLUMN_NUMBER, .path = "attempts"},
    {"USD", COLUMN_USD, .path = "cost_micro_usd"},
    {"REASON OR INPUT", COLUMN_TEXT, .text = why_text},
    {"INPUT", COLUMN_TEXT, .path = "uri", .wide = true},
    {"BYTES", COLUMN_NUMBER, .path = "size", .wide = true},
    {"JOB", COLUMN_TEXT, .path = "job_name", .wide = true},
    {"NOT BEFORE", COLUMN_TIME, .path = "not_before", .wide = true},
    {"CHANGED", COLUMN_TIME, .path = "updated_at", .wide = true},
};
static const struct api_list parts = {columns, ARRAY_LEN(columns), "id", name_text};

/* The state that --state knows of a word that the table shows more exactly. NULL: another word. */
static const char *kept_as(const char *word)
{
    static const char *const active[] = {"submitting", "starting",  "running",
                                         "uploading",  "verifying", "stopping"};
    for (size_t i = 0; word != NULL && i < ARRAY_LEN(active); i++) {
        if (strcmp(word, active[i]) == 0) {
            return "active";
        }
    }
    return word != NULL && strcmp(word, "backing_off") == 0 ? "waiting" : NULL;
}

int cmd_parts(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    if (!list_columns_check(cli, &parts, &status) || !ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    const char *stage = ref_stage(cli, &ref);
    const char *kept = kept_as(cli->opt.state);
    if (kept != NULL) {
        AUTO_FREE char *next = xasprintf("drover parts %s --state %s", ref.campaign, kept);
        return fail(EXIT_USAGE, next, "'%s' is what a part does that is %s", cli->opt.state, kept);
    }
    const char *const pairs[][2] = {{"stage", stage[0] != '\0' ? stage : NULL},
                                    {"state", cli->opt.state},
                                    {"cause", cli->opt.cause},
                                    {"filter", cli->opt.filter}};
    AUTO_FREE char *query = pages_query(pairs, ARRAY_LEN(pairs));
    AUTO_FREE char *path = xasprintf("/v1/campaigns/%s/parts", ref.campaign);
    AUTO_FREE char *more =
        xasprintf("drover parts %s%s%s", ref.campaign, stage[0] != '\0' ? "/" : "", stage);
    return pages_print(cli, &(struct pages){.list = &parts,
                                            .path = path,
                                            .query = query,
                                            .key = "parts",
                                            .screen = 200,
                                            .more = more,
                                            .most = 10000});
}
