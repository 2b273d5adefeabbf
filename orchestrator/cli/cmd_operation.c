/* drover ops: bulk changes, one of them. */
#include "cli.h"
#include "client.h"
#include "pages.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

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

static int operation_list(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    bool of_one = cli->opt.campaign != NULL;
    if (of_one && !ref_read(cli, cli->opt.campaign, &ref, &status)) {
        return status;
    }
    const char *const pairs[][2] = {{"campaign", of_one ? ref.campaign : NULL}};
    AUTO_FREE char *query = pages_query(pairs, ARRAY_LEN(pairs));
    return pages_print(cli, &(struct pages){.list = &operations,
                                            .path = "/v1/operations",
                                            .query = query,
                                            .key = "operations",
                                            .screen = 50,
                                            .more = "drover ops -n 1000, or -o jsonl"});
}

/* "cause [disk_full], parts [3, 5]"; what is wrapped breaks at blanks. */
static void pairs_print(const struct cli *cli, const char *what, const json_t *pairs)
{
    const char *key;
    json_t *v;
    AUTO_BUF struct buf text = BUF_INIT(1024 * 1024);
    json_object_foreach((json_t *)(uintptr_t)pairs, key, v)
    {
        AUTO_FREE char *value = json_dumps(v, JSON_ENCODE_ANY);
        buf_addf(&text, "%s%s %s", text.n > 0 ? ", " : "", key, value);
    }
    if (text.n > 0) {
        text_print(cli, what, buf_cstr(&text));
    }
}

static void show(const struct cli *cli, const json_t *op)
{
    char at[TEXT_N];
    AUTO_FREE char *by = text_clean(jstr(op, "created_by"));
    (void)printf("%s  %s of %s  %s\n", jstr(op, "id"), jstr(op, "kind"), jstr(op, "campaign"),
                 jstr(op, "state"));
    pairs_print(cli, "parts with ", json_object_get(op, "selector"));
    pairs_print(cli, "changes    ", json_object_get(op, "changes"));
    (void)printf("parts      %lld, %lld done\n", (long long)jint(op, "parts"),
                 (long long)jint(op, "done"));
    (void)printf("asked for  %s by %s\n", when(jstr(op, "created_at"), at), by);
    if (!jnull(op, "ended_at")) {
        (void)printf("ended      %s\n", when(jstr(op, "ended_at"), at));
    }
}

static int operation_show(struct cli *cli, const char *id)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_get(cli, &r, &status, "/v1/operations/%s", id)) {
        return status;
    }
    AUTO_JSON json_t *rows = json_pack("[O]", r.json);
    if (!list_machine(cli, &operations, r.json, rows, &status)) {
        show(cli, r.json);
    }
    return status;
}

int cmd_ops(struct cli *cli)
{
    return cli->args_n > 0 ? operation_show(cli, cli->args[0]) : operation_list(cli);
}
