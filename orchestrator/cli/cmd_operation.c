/* drover ops: bulk changes, one of them. drover op cancel: the undo of one. */
#include "cli.h"
#include "client.h"
#include "guidance.h"
#include "pages.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include "wait.h"
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
    {"BY", COLUMN_TEXT, .path = "by", .wide = true},
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
                                            .more = "drover ops",
                                            .most = 1000});
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

static void undo_print(const json_t *op, char *ret, size_t n)
{
    const json_t *undo = json_object_get(op, "undo");
    long long undone = (long long)jint(undo, "undone"), went_on = (long long)jint(undo, "went_on");
    if (strcmp(jstr(op, "kind"), "retry") != 0) {
        (void)snprintf(ret, n, "stopped: %lld part%s%s before", went_on, went_on == 1 ? "" : "s",
                       verb_past(jstr(op, "kind")));
    } else {
        (void)snprintf(ret, n, "undone: %lld part%s failed as before, %lld had started and go%s on",
                       undone, undone == 1 ? "" : "s", went_on, went_on == 1 ? "es" : "");
    }
}

static void show(const struct cli *cli, const json_t *op)
{
    char at[TEXT_N];
    AUTO_FREE char *by = text_clean(jstr(op, "by"));
    (void)printf("%s  %s of %s  %s\n", jstr(op, "id"), jstr(op, "kind"), jstr(op, "campaign"),
                 jstr(op, "state"));
    pairs_print(cli, "parts with ", json_object_get(op, "selector"));
    pairs_print(cli, "changes    ", json_object_get(op, "changes"));
    (void)printf("parts      %lld, %lld done\n", (long long)jint(op, "parts"),
                 (long long)jint(op, "done"));
    if (json_is_object(json_object_get(op, "listing"))) {
        AUTO_FREE char *listing = listing_text(json_object_get(op, "listing"));
        text_print(cli, "listing    ", listing);
    }
    (void)printf("asked for  %s by %s\n", when(jstr(op, "created_at"), at), by);
    if (!jnull(op, "ended_at")) {
        (void)printf("ended      %s\n", when(jstr(op, "ended_at"), at));
    }
    const json_t *undo = json_object_get(op, "undo");
    AUTO_FREE char *undone_by = text_clean(jstr(undo, "by"));
    if (json_is_object(undo) && !jnull(undo, "ended_at")) {
        char text[TEXT_N * 2];
        undo_print(op, text, sizeof text);
        (void)printf("cancelled  %s by %s; %s\n", when(jstr(undo, "asked_at"), at), undone_by,
                     text);
    } else if (json_is_object(undo)) {
        (void)printf("cancelled  %s by %s; being undone, %lld so far\n",
                     when(jstr(undo, "asked_at"), at), undone_by, (long long)jint(undo, "undone"));
    } else if (json_is_true(json_object_get(op, "undoable"))) {
        (void)printf("undo       drover op cancel %s\n", jstr(op, "id"));
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

static bool undo_ended(const json_t *v, const char *arg)
{
    (void)arg;
    return !jnull(json_object_get(v, "undo"), "ended_at");
}

static int operation_cancel(struct cli *cli, const char *id)
{
    int status = EXIT_OK;
    if (!confirm(cli, "Undo it for the parts that have not started?")) {
        return declined(cli, "undo it", "not undone");
    }
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_post(cli, &r, &status, "/v1/operations/%s:cancel", id)) {
        return status;
    }
    AUTO_FREE char *get = xasprintf("/v1/operations/%s", id);
    status = wait_for(cli, get, undo_ended, NULL);
    reply_done(&r);
    if (status != EXIT_OK || !client_get(cli, &r, &status, "%s", get)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(id);
    } else if (!print_machine(cli, r.json, NULL)) {
        char text[TEXT_N * 2];
        undo_print(r.json, text, sizeof text);
        (void)printf("%s %s\n", id, text);
    }
    return EXIT_OK;
}

int cmd_op(struct cli *cli)
{
    return cli->args_n == 2 && strcmp(cli->args[0], "cancel") == 0
               ? operation_cancel(cli, cli->args[1])
               : fail(EXIT_USAGE, "drover op --help shows examples",
                      "undo which operation? OPERATION is in the first column of drover ops");
}
