/* drover quotas: the list, and asking AWS for more. */
#include "cli.h"
#include "client.h"
#include "core/spec/spec.h"
#include "list.h"
#include "print.h"
#include <stdio.h>

static const struct list_column columns[] = {
    {"INSTANCE TYPE", COLUMN_TEXT, .path = "instance_type"},
    {"MARKET", COLUMN_TEXT, .path = "market"},
    {"QUOTA", COLUMN_NUMBER, .path = "limit"},
    {"OURS", COLUMN_NUMBER, .path = "held"},
    {"OTHERS", COLUMN_NUMBER, .path = "foreign"},
    {"FREE", COLUMN_NUMBER, .path = "free"},
    {"REQUESTED", COLUMN_NUMBER, .path = "requested", .spare = 1},
    {"USD/H", COLUMN_USD, .path = "price_micro_usd_per_hour"},
    {"SOURCE", COLUMN_TEXT, .path = "source", .wide = true},
    {"READ", COLUMN_TIME, .path = "read_at", .wide = true},
};
static const struct api_list quotas = LIST(columns, "instance_type");

static int quota_list(struct cli *cli)
{
    int status;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_get(cli, &r, &status, "/v1/quotas")) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "quotas");
    if (list_machine(cli, &quotas, r.json, list, &status)) {
        return status;
    }
    list_table(cli, &quotas, list);
    if (json_array_size(list) == 0) {
        say("no quota is known yet; next: drover doctor");
    }
    return EXIT_OK;
}

static int quota_request(struct cli *cli, const char *type)
{
    int status = EXIT_OK;
    const char *market = cli->opt.market != NULL ? cli->opt.market : market_name(MARKET_ON_DEMAND);
    if (cli->opt.value <= 0) {
        AUTO_FREE char *next = xasprintf("drover quotas request %.60s --value 24", type);
        return fail(EXIT_USAGE, next, "how many instances? --value is missing");
    }
    AUTO_FREE char *question = xasprintf("Ask AWS for %lld instances of %s (%s)?",
                                         (long long)cli->opt.value, type, market);
    if (!confirm(cli, question)) {
        return declined(cli, "ask for it", "not asked for");
    }
    CLEANUP(reply_done)
    struct client_reply r = {0};
    AUTO_FREE char *path = xasprintf("/v1/quotas/%s:request", type);
    AUTO_JSON json_t *body =
        json_pack("{s:I, s:s}", "value", (json_int_t)cli->opt.value, "market", market);
    AUTO_FREE char *text = json_text(body);
    const struct client_call call = {.method = "POST", .path = path, .body = str_of(text)};
    if (!client_call(cli, &call, &r, &status)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(jstr(r.json, "id"));
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s %s: %lld asked for, %s; drover quotas shows when it is granted\n",
                     glyph(cli, "waiting"), jstr(r.json, "quota"), (long long)cli->opt.value,
                     jstr(r.json, "status"));
    }
    return EXIT_OK;
}

int cmd_quotas(struct cli *cli)
{
    if (cli->args_n == 0) {
        return quota_list(cli);
    }
    if (cli->args_n == 2 && strcmp(cli->args[0], "request") == 0) {
        return quota_request(cli, cli->args[1]);
    }
    return fail(EXIT_USAGE, "drover quotas --help shows examples",
                "write nothing, or request TYPE --value N");
}
