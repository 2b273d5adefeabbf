/* drover failures: failed parts by cause. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

#define NUMBERS_SHOWN 12 /* bytes of part numbers in a table, so that the evidence has room */

/* "3,5,70-72": the numbers of its first parts; ",..." when there are more. In a table only as many
 * as leave room for the evidence. */
static char *numbers_text(const struct cli *cli, const json_t *row)
{
    AUTO_BUF struct buf b = BUF_INIT(4096);
    const json_t *sample = json_object_get(row, "sample");
    size_t n = json_array_size(sample), i = 0;
    size_t room = cli->csv || cli->wide ? 4000 : NUMBERS_SHOWN;
    while (i < n) {
        int64_t from = json_integer_value(json_array_get(sample, i)), to = from;
        size_t next = i + 1;
        while (next < n && json_integer_value(json_array_get(sample, next)) == to + 1) {
            to++;
            next++;
        }
        AUTO_FREE char *range = from == to ? xasprintf("%lld", (long long)from)
                                           : xasprintf("%lld-%lld", (long long)from, (long long)to);
        if (i > 0 && b.n + 1 + strlen(range) > room) {
            break;
        }
        buf_addf(&b, "%s%s", i > 0 ? "," : "", range);
        i = next;
    }
    buf_add_cstr(&b, (int64_t)i < jint(row, "parts") ? ",..." : "");
    return buf_take(&b);
}

static char *first_text(const struct cli *cli, const json_t *row)
{
    char at[TEXT_N];
    (void)cli;
    return xstrdup(strlen(jstr(row, "first_at")) > 11 ? when(jstr(row, "first_at"), at) + 11 : "");
}

static char *evidence_text(const struct cli *cli, const json_t *row)
{
    static const char said[] = "AlgorithmError: "; /* SageMaker puts it before what a job says */
    const char *text = jstr(row, "message");
    return text_short(cli, strncmp(text, said, strlen(said)) == 0 ? text + strlen(said) : text);
}

static const struct list_column columns[] = {
    {"STAGE", COLUMN_TEXT, .path = "stage"},
    {"CAUSE", COLUMN_TEXT, .path = "cause"},
    {"PARTS", COLUMN_NUMBER, .path = "parts"},
    {"FIRST", COLUMN_TIME, .path = "first_at", .text = first_text},
    {"LOST USD", COLUMN_USD, .path = "lost_micro_usd"},
    {"PART NUMBERS", COLUMN_TEXT, .text = numbers_text},
    {"EVIDENCE", COLUMN_TEXT, .text = evidence_text},
    {"LAST", COLUMN_TIME, .path = "last_at", .wide = true},
    {"RETRYING", COLUMN_NUMBER, .path = "retrying", .wide = true},
    {"REMEDY", COLUMN_TEXT, .path = "remedy", .wide = true},
};
static const struct api_list failures = LIST(columns, "cause");
/* A table of one stage has more room without its name. */
static const struct api_list failures_of_one = {columns + 1, ARRAY_LEN(columns) - 1, "cause", NULL};

static bool of_one_stage(const struct cli *cli, const json_t *groups)
{
    const char *first = jstr(json_array_get(groups, 0), "stage");
    bool one = cli->opt.columns == NULL;
    for (size_t i = 1; i < json_array_size(groups); i++) {
        one = one && strcmp(jstr(json_array_get(groups, i), "stage"), first) == 0;
    }
    return one;
}

/* Each cause once, with its remedy; groups of one cause differ in their evidence. */
static void remedies_print(const struct cli *cli, const json_t *groups)
{
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *g = json_array_get(groups, i);
        bool told = false;
        for (size_t k = 0; k < i; k++) {
            told |= strcmp(jstr(json_array_get(groups, k), "cause"), jstr(g, "cause")) == 0;
        }
        if (!told) {
            AUTO_FREE char *head = xasprintf("%s: ", jstr(g, "cause"));
            text_print(cli, head, jstr(g, "remedy"));
        }
    }
}

/* The answer has the largest groups only. */
static void rest_print(const struct ref *ref, const json_t *answer, const json_t *groups)
{
    size_t i;
    json_t *g;
    int64_t left = jint(answer, "parts");
    json_array_foreach(groups, i, g)
    {
        left -= jint(g, "parts");
    }
    if (left > 0) {
        say("%lld more parts in smaller groups; next: drover parts %s --state failed",
            (long long)left, ref->campaign);
    }
}

/* The retry is of all stages, as the table is, unless one was asked for. */
static void next_print(const struct cli *cli, const struct ref *ref, const json_t *g)
{
    const json_t *part = json_array_get(json_object_get(g, "sample"), 0);
    const char *stage = jstr(g, "stage"), *asked = ref_stage(cli, ref);
    (void)printf("log: drover logs %s/%s%s%lld   retry: drover retry %s%s%s --cause %s\n",
                 ref->campaign, stage, stage[0] != '\0' ? "/" : "",
                 (long long)json_integer_value(part), ref->campaign, asked[0] != '\0' ? "/" : "",
                 asked, jstr(g, "cause"));
}

int cmd_failures(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    AUTO_BUF struct buf query = BUF_INIT(8192);
    query_add(&query, "stage", ref_stage(cli, &ref));
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/failures%s", ref.campaign,
                    buf_cstr(&query))) {
        return status;
    }
    const json_t *groups = json_object_get(r.json, "groups");
    if (list_machine(cli, &failures, r.json, groups, &status)) {
        return status;
    }
    if (json_array_size(groups) == 0) {
        (void)printf("%s has no failed parts\n", ref.campaign);
        return EXIT_OK;
    }
    list_table(cli, of_one_stage(cli, groups) ? &failures_of_one : &failures, groups);
    remedies_print(cli, groups);
    rest_print(&ref, r.json, groups);
    next_print(cli, &ref, json_array_get(groups, 0));
    return EXIT_OK;
}
