/* drover token: list, make, let expire, revoke. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"
#include <stdio.h>

static char *projects_text(const struct cli *cli, const json_t *row)
{
    size_t i;
    json_t *p;
    AUTO_BUF struct buf projects = BUF_INIT(65536);
    (void)cli;
    json_array_foreach(json_object_get(row, "projects"), i, p)
    {
        buf_addf(&projects, "%s%s", i > 0 ? "," : "", json_string_value(p));
    }
    return xstrdup(projects.n > 0 ? buf_cstr(&projects) : "all");
}

static char *expires_text(const struct cli *cli, const json_t *row)
{
    char at[TEXT_N];
    (void)cli;
    return xstrdup(jnull(row, "expires_at") ? "never" : when(jstr(row, "expires_at"), at));
}

static const struct list_column columns[] = {
    {"TOKEN", COLUMN_TEXT, .path = "id"},
    {"NAME", COLUMN_TEXT, .path = "name"},
    {"ROLE", COLUMN_TEXT, .path = "role"},
    {"PROJECTS", COLUMN_TEXT, .text = projects_text},
    {"STATE", COLUMN_TEXT, .path = "state"},
    {"USED", COLUMN_TIME, .path = "used_at", .spare = 1},
    {"EXPIRES", COLUMN_TIME, .path = "expires_at", .text = expires_text},
    {"MADE", COLUMN_TIME, .path = "created_at", .wide = true},
    {"BY", COLUMN_TEXT, .path = "created_by", .wide = true},
    {"REVOKED", COLUMN_TIME, .path = "revoked_at", .wide = true},
};
static const struct api_list tokens = LIST(columns, "id");

static int token_list(struct cli *cli)
{
    int status;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_get(cli, &r, &status, "/v1/tokens")) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "tokens");
    if (!list_machine(cli, &tokens, r.json, list, &status)) {
        list_table(cli, &tokens, list);
    }
    return status;
}

static int token_send(struct cli *cli, const char *method, const char *path, const json_t *body,
                      const char *done)
{
    int status;
    AUTO_FREE char *text = json_text(body);
    CLEANUP(reply_done)
    struct client_reply r = {0};
    const struct client_call call = {.method = method,
                                     .path = path,
                                     .body = str_of(text),
                                     .if_match = strcmp(method, "PATCH") == 0 ? "*" : NULL};
    if (!client_call(cli, &call, &r, &status)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(jstr(r.json, "id"));
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s %s\n", jstr(r.json, "id"), done);
        if (!jnull(r.json, "token")) {
            (void)printf("%s\n", jstr(r.json, "token"));
            say("this is the only time it is shown; keep it in a file that DROVER_TOKEN_FILE "
                "names");
        }
    }
    return EXIT_OK;
}

static int token_new(struct cli *cli)
{
    AUTO_JSON json_t *body = json_pack("{s:s}", "name", cli->args[1]);
    if (cli->opt.role != NULL) {
        (void)json_object_set_new(body, "role", json_string(cli->opt.role));
    }
    if (cli->opt.expires != NULL) {
        (void)json_object_set_new(body, "expires_in", json_string(cli->opt.expires));
    }
    if (cli->opt.project != NULL) {
        json_t *list = json_array();
        struct str rest = str_of(cli->opt.project);
        while (rest.n > 0) {
            struct str one = str_trim(str_split(&rest, ','));
            (void)json_array_append_new(list, json_stringn(one.p, one.n));
        }
        (void)json_object_set_new(body, "projects", list);
    }
    return token_send(cli, "POST", "/v1/tokens", body, "made");
}

int cmd_token(struct cli *cli)
{
    const char *what = cli->args_n > 0 ? cli->args[0] : "ls";
    if (strcmp(what, "ls") == 0 && cli->args_n < 2) {
        return token_list(cli);
    }
    if (cli->args_n < 2) {
        return fail(EXIT_USAGE, "drover token --help shows examples",
                    "write ls, new NAME, expire TOKEN or revoke TOKEN");
    }
    if (strcmp(what, "new") == 0) {
        return token_new(cli);
    }
    AUTO_FREE char *path = xasprintf("/v1/tokens/%s", cli->args[1]);
    AUTO_JSON json_t *body = json_object();
    if (strcmp(what, "expire") == 0 && cli->opt.expires != NULL) {
        (void)json_object_set_new(body, "expires_in", json_string(cli->opt.expires));
        return token_send(cli, "PATCH", path, body, "expires");
    }
    if (strcmp(what, "revoke") == 0) {
        return confirm(cli, "Revoke it for good, with its sessions?")
                   ? token_send(cli, "DELETE", path, body, "revoked")
                   : declined(cli, "revoke", "not revoked");
    }
    return fail(EXIT_USAGE, "drover token --help shows examples",
                "write ls, new NAME, expire TOKEN --expires TIME or revoke TOKEN");
}
