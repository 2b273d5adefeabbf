/* drover retry: shows the selected parts, asks, sends. */
#include "cli.h"
#include "client.h"
#include "print.h"
#include "ref.h"
#include "wait.h"
#include <stdio.h>

static bool operation_ended(const json_t *v, const char *arg)
{
    (void)arg;
    return strcmp(jstr(v, "state"), "done") == 0 || strcmp(jstr(v, "state"), "cancelled") == 0;
}

static bool numbers_add(json_t *list, const char *text)
{
    struct str rest = str_of(text);
    while (rest.n > 0) {
        int64_t n;
        struct err err = ERR_INIT;
        if (!parse_i64(str_trim(str_split(&rest, ',')), 0, INT32_MAX, &n, &err)) {
            (void)fail(EXIT_USAGE, "write --parts 8,77", "--parts: %s", err.message);
            return false;
        }
        (void)json_array_append_new(list, json_integer(n));
    }
    return true;
}

/* The body of :retry from the options; NULL after an error message. */
static json_t *retry_body(const struct cli *cli, const struct ref *ref)
{
    json_t *body = json_object(), *selector = json_object(), *changes = json_object();
    (void)json_object_set_new(body, "selector", selector);
    (void)json_object_set_new(body, "changes", changes);
    const char *stage = cli->opt.stage != NULL ? cli->opt.stage : ref->stage;
    if (stage[0] != '\0') {
        (void)json_object_set_new(selector, "stage", json_string(stage));
    }
    if (cli->opt.cause != NULL) {
        json_t *list = json_array();
        struct str rest = str_of(cli->opt.cause);
        while (rest.n > 0) {
            struct str one = str_trim(str_split(&rest, ','));
            (void)json_array_append_new(list, json_stringn(one.p, one.n));
        }
        (void)json_object_set_new(selector, "cause", list);
    }
    json_t *parts = json_array();
    bool ok = cli->opt.parts == NULL || numbers_add(parts, cli->opt.parts);
    if (ref->part >= 0) {
        (void)json_array_append_new(parts, json_integer(ref->part));
    }
    if (json_array_size(parts) > 0) {
        (void)json_object_set(selector, "parts", parts);
    }
    json_decref(parts);
    if (cli->opt.volume_gb > 0) {
        (void)json_object_set_new(changes, "volume_gb", json_integer(cli->opt.volume_gb));
    }
    if (!ok) {
        json_decref(body);
        return NULL;
    }
    return body;
}

static void preview_print(const struct cli *cli, const struct ref *ref, const json_t *p)
{
    AUTO_BUF struct buf numbers = BUF_INIT(1024);
    size_t i;
    json_t *n;
    json_array_foreach(json_object_get(p, "sample"), i, n)
    {
        buf_addf(&numbers, "%s%lld", i > 0 ? "," : "", (long long)json_integer_value(n));
    }
    int64_t parts = jint(p, "parts");
    (void)printf("%lld part%s of %s%s%s%s%s\n", (long long)parts, parts == 1 ? "" : "s",
                 ref->campaign, parts > 0 ? " (" : "", buf_cstr(&numbers),
                 (int64_t)i < parts ? ",..." : "", parts > 0 ? ")" : "");
    if (cli->opt.volume_gb > 0) {
        (void)printf("! volume %lld GB: no warm pool of another size matches; these start cold\n",
                     (long long)cli->opt.volume_gb);
    }
    (void)fflush(stdout);
}

static int retry_send(struct cli *cli, const struct ref *ref, struct str body)
{
    char random[37];
    int status = EXIT_OK;
    key_random(random);
    AUTO_FREE char *path = xasprintf("/v1/campaigns/%s:retry", ref->campaign);
    const struct client_call call = {.method = "POST",
                                     .path = path,
                                     .body = body,
                                     .key = cli->opt.key != NULL ? cli->opt.key : random};
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_call(cli, &call, &r, &status)) {
        return status;
    }
    AUTO_FREE char *id = xstrdup(jstr(r.json, "id"));
    if (cli->opt.wait) {
        AUTO_FREE char *get = xasprintf("/v1/operations/%s", id);
        status = wait_for(cli, get, operation_ended, NULL);
        reply_done(&r);
        if (status != EXIT_OK || !client_get(cli, &r, &status, "%s", get)) {
            return status;
        }
    }
    if (cli->out == OUT_NAME) {
        (void)puts(id);
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s %s: %lld part%s%s     progress: drover ops %s\n", id,
                     jstr(r.json, "state"), (long long)jint(r.json, "parts"),
                     jint(r.json, "parts") == 1 ? "" : "s", cli->opt.wait ? " retried" : "", id);
    }
    return EXIT_OK;
}

int cmd_retry(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    AUTO_JSON json_t *body = retry_body(cli, &ref);
    if (body == NULL) {
        return EXIT_USAGE;
    }
    AUTO_FREE char *text = json_text(body);
    AUTO_FREE char *path = xasprintf("/v1/campaigns/%s:retry?dry_run=true", ref.campaign);
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_call(cli,
                     &(struct client_call){.method = "POST", .path = path, .body = str_of(text)},
                     &r, &status)) {
        return status;
    }
    if (cli->opt.dry_run) {
        if (!print_machine(cli, r.json, NULL)) {
            preview_print(cli, &ref, r.json);
        }
        return EXIT_OK;
    }
    if (cli->out == OUT_TABLE) {
        preview_print(cli, &ref, r.json);
    }
    if (jint(r.json, "parts") == 0) {
        return fail(EXIT_NOT_FOUND, "drover failures shows what failed", "no failed part matches");
    }
    if (!cli->opt.yes && !confirm(cli, "Retry?")) {
        return fail(EXIT_USAGE, "add -y to retry without confirmation", "not retried");
    }
    return retry_send(cli, &ref, str_of(text));
}
