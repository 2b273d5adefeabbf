/* drover token: list, make, let expire, revoke. */
#include "cli.h"
#include "client.h"
#include "print.h"
#include "table.h"
#include <stdio.h>

static int token_list(struct cli *cli)
{
    int status;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_get(cli, &r, &status, "/v1/tokens")) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "tokens");
    if (print_machine(cli, r.json, list)) {
        return EXIT_OK;
    }
    if (cli->out == OUT_NAME) {
        print_names(list, "id");
        return EXIT_OK;
    }
    struct text_table t = {0};
    static const char *const heads[] = {"TOKEN", "NAME", "ROLE", "PROJECTS", "STATE", "EXPIRES"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], false);
    }
    size_t i, k;
    json_t *v, *p;
    json_array_foreach(list, i, v)
    {
        char at[TEXT_N];
        AUTO_BUF struct buf projects = BUF_INIT(1024);
        json_array_foreach(json_object_get(v, "projects"), k, p)
        {
            buf_addf(&projects, "%s%s", k > 0 ? "," : "", json_string_value(p));
        }
        table_row(&t, (const char *const[]){
                          jstr(v, "id"), jstr(v, "name"), jstr(v, "role"),
                          projects.n > 0 ? buf_cstr(&projects) : "all", jstr(v, "state"),
                          jnull(v, "expires_at") ? "never" : when(jstr(v, "expires_at"), at)});
    }
    table_print(cli, &t);
    return EXIT_OK;
}

static int token_send(struct cli *cli, const char *method, const char *path, const json_t *body,
                      const char *done)
{
    int status;
    AUTO_FREE char *text = json_text(body);
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_call(cli,
                     &(struct client_call){.method = method, .path = path, .body = str_of(text)},
                     &r, &status)) {
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
                   : fail(EXIT_USAGE, "add -y to revoke without confirmation", "not revoked");
    }
    return fail(EXIT_USAGE, "drover token --help shows examples",
                "write ls, new NAME, expire TOKEN --expires TIME or revoke TOKEN");
}
