/* drover ls and get: campaigns. */
#include "cli.h"
#include "client.h"
#include "cmd_campaign_state.h"
#include "cmd_part.h"
#include "guidance.h"
#include "pages.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

#define GUIDED_SHOWN_MAX 5

/* A line for each campaign that needs a person, before the table. */
static void guidance_lines(const struct cli *cli, const json_t *list)
{
    size_t i;
    json_t *c;
    int n = 0;
    json_array_foreach(list, i, c)
    {
        AUTO_FREE char *line = guidance_line(c);
        if (line != NULL && n++ < GUIDED_SHOWN_MAX) {
            AUTO_FREE char *head = xasprintf("! %s ", jstr(c, "id"));
            text_print(cli, head, line);
        }
    }
    if (n > GUIDED_SHOWN_MAX) {
        (void)printf("! and %d more: drover get CAMPAIGN\n", n - GUIDED_SHOWN_MAX);
    }
}

static char *state_text(const struct cli *cli, const json_t *row)
{
    const char *state = state_shown(row);
    return xasprintf("%s%s%s%s", cli->csv ? "" : glyph(cli, state), cli->csv ? "" : " ", state,
                     archive_shown(row));
}

static const struct list_column columns[] = {
    {"ID", COLUMN_TEXT, .path = "id"},
    {"STATE", COLUMN_TEXT, .text = state_text},
    {"PARTS", COLUMN_NUMBER, .path = "parts.total"},
    {"DONE", COLUMN_NUMBER, .path = "parts.done", .csv_with = "parts.skipped"},
    {"SKIP", COLUMN_NUMBER, .path = "parts.skipped", .spare = 1, .csv_last = true},
    {"RUN", COLUMN_NUMBER, .path = "parts.active"},
    {"FAIL", COLUMN_NUMBER, .path = "parts.failed"},
    {"USD", COLUMN_USD, .path = "budget.spent_micro_usd"},
    {"SUBMITTED", COLUMN_TIME, .path = "created_at"},
    {"NAME", COLUMN_TEXT, .path = "name"},
    {"PROJECT", COLUMN_TEXT, .path = "project", .wide = true},
    {"PRIORITY", COLUMN_NUMBER, .path = "priority", .wide = true},
    {"DEADLINE", COLUMN_TIME, .path = "deadline", .wide = true},
    {"WAIT", COLUMN_NUMBER, .path = "parts.waiting", .wide = true},
    {"RESERVED", COLUMN_USD, .path = "budget.reserved_micro_usd", .wide = true},
    {"BUDGET", COLUMN_USD, .path = "budget.limit_micro_usd", .wide = true},
    {"STARTED", COLUMN_TIME, .path = "started_at", .wide = true},
    {"ENDED", COLUMN_TIME, .path = "ended_at", .wide = true},
    {"REASON", COLUMN_TEXT, .path = "reason", .wide = true},
};
static const struct api_list campaigns = LIST(columns, "id");

static char *thing_text(const struct cli *cli, const json_t *row)
{
    (void)cli;
    const char *kind = jstr(row, "kind");
    int64_t n = jint(row, "count");
    char *text = n > 1 ? xasprintf("%lld %ss", (long long)n, kind) : xstrdup(kind);
    for (char *p = text; (p = strchr(p, '_')) != NULL;) {
        *p = ' ';
    }
    return text;
}

static const struct list_column billable_columns[] = {
    {"WHAT", COLUMN_TEXT, .text = thing_text},
    {"TYPE", COLUMN_TEXT, .path = "instance_type"},
    {"INSTANCES", COLUMN_NUMBER, .path = "instances", .spare = 1},
    {"USD/H", COLUMN_USD, .path = "micro_usd_per_hour"},
    {"SINCE", COLUMN_TIME, .path = "since"},
    {"CAMPAIGN", COLUMN_TEXT, .path = "campaign"},
    {"STAGE", COLUMN_TEXT, .path = "stage", .spare = 2},
    {"NAME", COLUMN_TEXT, .path = "name", .wide = true},
    {"MARKET", COLUMN_TEXT, .path = "market", .wide = true},
    {"UNTIL", COLUMN_TIME, .path = "until", .wide = true},
};
static const struct api_list billable = LIST(billable_columns, "campaign");

static int list_billable(struct cli *cli)
{
    int status;
    char usd[TEXT_N];
    CLEANUP(reply_done)
    struct client_reply r = {0};
    int64_t n;
    if (!list_rows(cli, 200, &n, &status) ||
        !client_get(cli, &r, &status, "/v1/billable?limit=%lld", (long long)n)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "billable");
    if (jint(r.json, "total") > (int64_t)json_array_size(list)) {
        say("there are %lld more, that cost less",
            (long long)jint(r.json, "total") - (long long)json_array_size(list));
    }
    if (list_machine(cli, &billable, r.json, list, &status)) {
        return status;
    }
    list_table(cli, &billable, list);
    (void)printf("in all %s USD an hour\n", money(jint(r.json, "micro_usd_per_hour"), usd));
    return EXIT_OK;
}

int cmd_ls(struct cli *cli)
{
    if (cli->opt.billable) {
        return cli->opt.state == NULL
                   ? list_billable(cli)
                   : fail(EXIT_USAGE, "leave one of them out", "--billable lists no states");
    }
    if (cli->opt.state != NULL && strcmp(cli->opt.state, "waiting") == 0) {
        return fail(EXIT_USAGE, "drover ls --state running",
                    "'waiting' is what a campaign does that is running and of which nothing can "
                    "start");
    }
    const char *const pairs[][2] = {{"state", cli->opt.state}};
    AUTO_FREE char *query = pages_query(pairs, ARRAY_LEN(pairs));
    AUTO_FREE char *none = cli->opt.state != NULL
                               ? xasprintf("no campaign is %s; next: drover ls", cli->opt.state)
                               : xstrdup("no campaigns; next: drover submit FILE");
    return pages_print(cli, &(struct pages){.list = &campaigns,
                                            .path = "/v1/campaigns",
                                            .query = query,
                                            .key = "campaigns",
                                            .screen = 50,
                                            .more = "drover ls",
                                            .most = 1000,
                                            .none = none,
                                            .above = guidance_lines,
                                            .sorts_here = true});
}

/* Of a stage. One that is held is explained above the table. */
static bool has_ended(const char *state)
{
    return strcmp(state, "succeeded") == 0 || strcmp(state, "failed") == 0 ||
           strcmp(state, "skipped") == 0;
}

static const char *why_of(const json_t *s)
{
    return has_ended(jstr(s, "state"))                           ? jstr(s, "reason")
           : json_integer_value(jget(s, "parts", "active")) == 0 ? jstr(s, "wait_text")
                                                                 : "";
}

static void stage_row(const struct cli *cli, struct text_table *t, const json_t *s)
{
    char n[6][TEXT_N];
    static const char *const keys[] = {"total", "waiting", "active", "done", "skipped", "failed"};
    const json_t *p = json_object_get(s, "parts");
    const char *cells[9];
    AUTO_FREE char *state = xasprintf("%s %s", glyph(cli, jstr(s, "state")), jstr(s, "state"));
    cells[0] = jstr(s, "name");
    cells[1] = state;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        cells[2 + i] = number(jint(p, keys[i]), n[i]);
    }
    cells[8] = why_of(s);
    table_row(t, cells);
}

/* Why a stage waits or ended so. A terminal that has no room for all of it beside the figures has
 * it below them. Returns whether it moved there. */
static bool why_below(const struct cli *cli, struct text_table *t)
{
    size_t used = 0, longest = 0;
    int last = t->columns - 1;
    for (int k = 0; k <= last; k++) {
        size_t width = text_width(t->head[k]);
        for (size_t i = 0; i < t->n; i++) {
            width = MAX(width, text_width(t->rows[i][k]));
        }
        used += k < last ? width + 2 : 0;
        longest = width;
    }
    if (!cli->out_tty || cli->wide || used + longest <= (size_t)cli->width) {
        return false;
    }
    for (size_t i = 0; i < t->n; i++) {
        free(t->rows[i][last]);
    }
    t->columns = last;
    return true;
}

/* Inputs whose listing went on after the submit, unless it is long over. */
static void listings_print(const struct cli *cli, const json_t *c)
{
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(c, "stages"), i, s)
    {
        const json_t *l = json_object_get(s, "listing");
        if (json_is_object(l) && strcmp(jstr(l, "state"), "done") != 0) {
            AUTO_FREE char *text = listing_text(l);
            AUTO_FREE char *line = xasprintf("input of %s %s  (drover ops %s)", jstr(s, "name"),
                                             text, jstr(l, "operation"));
            text_print(cli, "listing  ", line);
        }
    }
}

/* False after an error message: the campaign has no stage of this name. */
static bool stage_check(const json_t *c, const char *name, int *ret_exit)
{
    AUTO_BUF struct buf names = BUF_INIT(1 << 16);
    bool found = name[0] == '\0';
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(c, "stages"), i, s)
    {
        found = found || strcmp(jstr(s, "name"), name) == 0;
        buf_addf(&names, "%s%s", i > 0 ? ", " : "its stages: ", jstr(s, "name"));
    }
    if (!found) {
        *ret_exit = fail(EXIT_NOT_FOUND, buf_cstr(&names), "campaign %s has no stage '%s'",
                         jstr(c, "id"), name);
    }
    return found;
}

static void stages_print(const struct cli *cli, const json_t *c, const char *stage)
{
    struct text_table t = {0};
    static const char *const heads[] = {"STAGE", "STATE", "PARTS", "WAIT", "RUN",
                                        "DONE",  "SKIP",  "FAIL",  "WHY"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i >= 2 && i <= 7);
    }
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(c, "stages"), i, s)
    {
        if (stage[0] == '\0' || strcmp(jstr(s, "name"), stage) == 0) {
            stage_row(cli, &t, s);
        }
    }
    bool below = why_below(cli, &t);
    table_print(cli, &t);
    json_array_foreach(json_object_get(c, "stages"), i, s)
    {
        bool shown = stage[0] == '\0' || strcmp(jstr(s, "name"), stage) == 0;
        if (below && shown && why_of(s)[0] != '\0') {
            AUTO_FREE char *head = xasprintf("%s: ", jstr(s, "name"));
            text_print(cli, head, why_of(s));
        }
    }
}

static void campaign_print(const struct cli *cli, const json_t *c, const char *stage)
{
    char usd[TEXT_N], more[TEXT_N], limit[TEXT_N], at[TEXT_N];
    const json_t *b = json_object_get(c, "budget");
    AUTO_FREE char *name = text_clean(jstr(c, "name"));
    const char *reason = guidance_first(c) == NULL ? jstr(c, "reason") : "";
    guidance_print(cli, c);
    (void)printf("%s  %s  %s %s%s%s%s  wanted: %s\n", jstr(c, "id"), name,
                 glyph(cli, state_shown(c)), state_shown(c), archive_shown(c),
                 reason[0] != '\0' ? ", " : "", reason, jstr(c, "wanted"));
    archive_print(cli, c);
    listings_print(cli, c);
    (void)printf("submitted %s UTC  priority %lld", when(jstr(c, "created_at"), at),
                 (long long)jint(c, "priority"));
    if (!jnull(c, "deadline")) {
        (void)printf("  deadline %s UTC", when(jstr(c, "deadline"), at));
    }
    (void)putchar('\n');
    (void)printf("cost %s USD, %s reserved, budget %s\n", money(jint(b, "spent_micro_usd"), usd),
                 money(jint(b, "reserved_micro_usd"), more),
                 jnull(b, "limit_micro_usd") ? "none" : money(jint(b, "limit_micro_usd"), limit));
    stages_print(cli, c, stage);
    int64_t failed = json_integer_value(jget(c, "parts", "failed"));
    if (failed > 0 && strcmp(jstr(c, "state"), "failed") == 0 && archive_shown(c)[0] == '\0') {
        (void)printf("next: drover failures %s\n", jstr(c, "id"));
    }
}

int cmd_get(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!ref_read(cli, cli->args[0], &ref, &status) ||
        (ref.part >= 0 && ref.stage[0] == '\0' && !ref_stage_find(cli, &ref, &status))) {
        return status;
    }
    AUTO_BUF struct buf query = BUF_INIT(8192);
    query_add(&query, "stage", ref.stage);
    bool ok = ref.part >= 0 ? client_get(cli, &r, &status, "/v1/parts/%s/%lld%s", ref.campaign,
                                         (long long)ref.part, buf_cstr(&query))
                            : client_get(cli, &r, &status, "/v1/campaigns/%s%s", ref.campaign,
                                         cli->opt.spec ? "/spec" : "");
    if (!ok || (ref.part < 0 && !cli->opt.spec && !stage_check(r.json, ref.stage, &status))) {
        return status;
    }
    if (cli->opt.spec && cli->out == OUT_TABLE && jnull(r.json, "text")) {
        say("%s; this is the file as droverd read it", jstr(r.json, "text_hidden"));
        print_json(cli, json_object_get(r.json, "spec"));
    } else if (cli->opt.spec && cli->out == OUT_TABLE) {
        (void)fputs(jstr(r.json, "text"), stdout);
    } else if (cli->out == OUT_NAME) {
        (void)puts(jstr(r.json, "id"));
    } else if (!print_machine(cli, r.json, NULL)) {
        if (ref.part >= 0) {
            part_print(cli, r.json);
        } else {
            campaign_print(cli, r.json, ref.stage);
        }
    }
    return EXIT_OK;
}
