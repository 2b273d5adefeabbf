/* drover bill: a month by list prices, by project or tag and by campaign. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"
#include <stdio.h>

static const struct list_column columns[] = {
    {"GROUP", COLUMN_TEXT, .path = "group", .spare = 2},
    {"CAMPAIGN", COLUMN_TEXT, .path = "campaign"},
    {"NAME", COLUMN_TEXT, .path = "name"},
    {"PROJECT", COLUMN_TEXT, .path = "project", .wide = true},
    {"SECONDS", COLUMN_NUMBER, .path = "seconds", .spare = 1},
    {"USD", COLUMN_USD, .path = "micro_usd"},
};
static const struct api_list bill = LIST(columns, "campaign");

/* What the campaigns that the answer names leave of the group's sum; without it the rows would not
 * sum up to the bill. */
static void add_rest(json_t *rows, const json_t *g, int64_t musd, int64_t seconds)
{
    long long more = (long long)jint(g, "campaigns_total") -
                     (long long)json_array_size(json_object_get(g, "campaigns"));
    AUTO_FREE char *name =
        more > 0 ? xasprintf("%lld cheaper ones", more) : xstrdup("jobs of no known campaign");
    if (musd != 0 || seconds != 0) {
        (void)json_array_append_new(rows, json_pack("{s:O, s:n, s:s, s:n, s:I, s:I}", "group",
                                                    json_object_get(g, "name"), "campaign", "name",
                                                    name, "project", "seconds", (json_int_t)seconds,
                                                    "micro_usd", (json_int_t)musd));
    }
}

/* The caller decrefs. names: those that have one alone. */
static json_t *rows_of(const json_t *groups, bool names)
{
    size_t i, k;
    json_t *g, *c, *rows = json_array();
    json_array_foreach(groups, i, g)
    {
        int64_t musd = jint(g, "micro_usd"), seconds = jint(g, "seconds");
        json_array_foreach(json_object_get(g, "campaigns"), k, c)
        {
            json_t *row = json_copy(c);
            (void)json_object_set(row, "group", json_object_get(g, "name"));
            (void)json_array_append_new(rows, row);
            musd -= jint(c, "micro_usd");
            seconds -= jint(c, "seconds");
        }
        if (!names) {
            add_rest(rows, g, musd, seconds);
        }
    }
    return rows;
}

int cmd_bill(struct cli *cli)
{
    int status;
    char usd[TEXT_N];
    CLEANUP(reply_done)
    struct client_reply r = {0};
    AUTO_BUF struct buf query = BUF_INIT(1024);
    query_add(&query, "month", cli->args_n > 0 ? cli->args[0] : "");
    query_add(&query, "tag", cli->opt.tag != NULL ? cli->opt.tag : "");
    if (!client_get(cli, &r, &status, "/v1/bill%s", buf_cstr(&query))) {
        return status;
    }
    AUTO_JSON json_t *rows = rows_of(json_object_get(r.json, "groups"), cli->out == OUT_NAME);
    if (list_machine(cli, &bill, r.json, rows, &status)) {
        return status;
    }
    list_table(cli, &bill, rows);
    (void)printf("%s: %s USD in all; list prices, not the invoice\n", jstr(r.json, "month"),
                 money(jint(r.json, "micro_usd"), usd));
    return EXIT_OK;
}
