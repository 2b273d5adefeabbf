/* drover quotas. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"

static const struct list_column columns[] = {
    {"INSTANCE TYPE", COLUMN_TEXT, .path = "instance_type"},
    {"MARKET", COLUMN_TEXT, .path = "market"},
    {"QUOTA", COLUMN_NUMBER, .path = "limit"},
    {"OURS", COLUMN_NUMBER, .path = "held"},
    {"OTHERS", COLUMN_NUMBER, .path = "foreign"},
    {"FREE", COLUMN_NUMBER, .path = "free"},
    {"USD/H", COLUMN_USD, .path = "price_micro_usd_per_hour"},
    {"SOURCE", COLUMN_TEXT, .path = "source", .wide = true},
    {"READ", COLUMN_TIME, .path = "read_at", .wide = true},
};
static const struct api_list quotas = LIST(columns, "instance_type");

int cmd_quotas(struct cli *cli)
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
