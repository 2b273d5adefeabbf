/* drover ops. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"

static const struct list_column columns[] = {
    {"OPERATION", COLUMN_TEXT, .path = "id"},
    {"CAMPAIGN", COLUMN_TEXT, .path = "campaign"},
    {"WHAT", COLUMN_TEXT, .path = "kind"},
    {"STATE", COLUMN_TEXT, .path = "state"},
    {"PARTS", COLUMN_NUMBER, .path = "parts"},
    {"DONE", COLUMN_NUMBER, .path = "done"},
    {"ASKED FOR", COLUMN_TIME, .path = "created_at"},
    {"ENDED", COLUMN_TIME, .path = "ended_at", .wide = true},
    {"BY", COLUMN_TEXT, .path = "created_by", .wide = true},
};
static const struct api_list operations = LIST(columns, "id");

int cmd_ops(struct cli *cli)
{
    int status;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    int64_t n = cli->opt.limit > 0 ? MIN(cli->opt.limit, 1000) : 50;
    if (cli->args_n > 0) {
        if (!client_get(cli, &r, &status, "/v1/operations/%s", cli->args[0])) {
            return status;
        }
        AUTO_JSON json_t *list = json_array(), *page = json_object();
        (void)json_array_append(list, r.json);
        (void)json_object_set(page, "operations", list);
        json_t *one = r.json;
        r.json = json_incref(cli->out == OUT_JSON ? one : page);
        json_decref(one);
    } else if (!client_get(cli, &r, &status, "/v1/operations?page_size=%lld", (long long)n)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "operations");
    if (!list_machine(cli, &operations, r.json, list, &status)) {
        list_table(cli, &operations, list);
    }
    return status;
}
