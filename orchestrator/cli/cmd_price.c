/* drover prices. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"

static const struct list_column columns[] = {
    {"TYPE", COLUMN_TEXT, .path = "instance_type"},
    {"USE", COLUMN_TEXT, .path = "use"},
    {"USD", COLUMN_USD, .path = "micro_usd"},
    {"PER", COLUMN_TEXT, .path = "per"},
    {"SOURCE", COLUMN_TEXT, .path = "source"},
    {"READ", COLUMN_TIME, .path = "read_at"},
    {"LIST USD", COLUMN_USD, .path = "list_micro_usd", .wide = true},
};
static const struct api_list prices = LIST(columns, "instance_type");

/* Those whose type begins with a text; the caller decrefs. */
static json_t *of_type(const json_t *list, const char *begin)
{
    size_t i;
    json_t *v, *ret = json_array();
    json_array_foreach(list, i, v)
    {
        if (str_starts(str_of(jstr(v, "instance_type")), begin)) {
            (void)json_array_append(ret, v);
        }
    }
    return ret;
}

int cmd_prices(struct cli *cli)
{
    int status;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_get(cli, &r, &status, "/v1/prices")) {
        return status;
    }
    const char *begin = cli->args_n > 0 ? cli->args[0] : "";
    AUTO_JSON json_t *list = of_type(json_object_get(r.json, "prices"), begin);
    (void)json_object_set(r.json, "prices", list);
    if (list_machine(cli, &prices, r.json, list, &status)) {
        return status;
    }
    list_table(cli, &prices, list);
    if (json_array_size(list) == 0) {
        say("no price of %s is known; next: allow pricing:GetProducts to droverd, or set "
            "DROVER_PRICES_FILE",
            begin[0] != '\0' ? begin : "anything");
    }
    return EXIT_OK;
}
