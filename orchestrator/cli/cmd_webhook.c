/* drover webhook: list, add, change, remove, try, and what was sent. */
#include "cli.h"
#include "client.h"
#include "interrupt.h"
#include "list.h"
#include "print.h"
#include <stdio.h>

#define TEST_POLL_MS 200
#define TEST_POLLS   150 /* half a minute */

static char *kinds_text(const struct cli *cli, const json_t *row)
{
    size_t i;
    json_t *kind;
    AUTO_BUF struct buf text = BUF_INIT(256);
    (void)cli;
    json_array_foreach(json_object_get(row, "kinds"), i, kind)
    {
        buf_addf(&text, "%s%s", i > 0 ? "," : "", json_string_value(kind));
    }
    return xstrdup(buf_cstr(&text));
}

static char *project_text(const struct cli *cli, const json_t *row)
{
    (void)cli;
    return xstrdup(jnull(row, "project") ? "all" : jstr(row, "project"));
}

static const struct list_column columns[] = {
    {"WEBHOOK", COLUMN_TEXT, .path = "id"},
    {"NAME", COLUMN_TEXT, .path = "name"},
    {"LAST", COLUMN_TEXT, .path = "last"},
    {"WAITING", COLUMN_NUMBER, .path = "waiting"},
    {"URL", COLUMN_TEXT, .path = "url", .spare = 1},
    {"ON", COLUMN_TEXT, .text = kinds_text, .spare = 2},
    {"PROJECT", COLUMN_TEXT, .text = project_text, .spare = 3},
    {"FORMAT", COLUMN_TEXT, .path = "format", .wide = true},
    {"QUIET", COLUMN_TEXT, .path = "quiet", .wide = true},
    {"FAILED", COLUMN_NUMBER, .path = "failed", .wide = true},
    {"DROPPED", COLUMN_NUMBER, .path = "dropped", .wide = true},
    {"MADE", COLUMN_TIME, .path = "created_at", .wide = true},
    {"BY", COLUMN_TEXT, .path = "created_by", .wide = true},
};
static const struct api_list webhooks = LIST(columns, "id");

static const struct list_column delivery_columns[] = {
    {"DELIVERY", COLUMN_TEXT, .path = "id"},
    {"KIND", COLUMN_TEXT, .path = "kind"},
    {"CAMPAIGN", COLUMN_TEXT, .path = "campaign"},
    {"STATE", COLUMN_TEXT, .path = "state"},
    {"TRIES", COLUMN_NUMBER, .path = "tries"},
    {"STATUS", COLUMN_NUMBER, .path = "status"},
    {"AT", COLUMN_TIME, .path = "at", .spare = 2},
    {"PROBLEM", COLUMN_TEXT, .path = "problem", .spare = 1},
    {"NEXT", COLUMN_TIME, .path = "next_at", .wide = true},
    {"TRIED", COLUMN_TIME, .path = "tried_at", .wide = true},
    {"ENDED", COLUMN_TIME, .path = "ended_at", .wide = true},
    {"MICROSECONDS", COLUMN_NUMBER, .path = "took_microseconds", .wide = true},
    {"MESSAGE", COLUMN_TEXT, .path = "message_id", .wide = true},
};
static const struct api_list deliveries = LIST(delivery_columns, "id");

static int webhook_list(struct cli *cli)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_get(cli, &r, &status, "/v1/webhooks")) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "webhooks");
    if (list_machine(cli, &webhooks, r.json, list, &status)) {
        return status;
    }
    list_table(cli, &webhooks, list);
    if (json_array_size(list) == 0) {
        say("next: drover webhook add NAME URL");
    }
    return EXIT_OK;
}

static int delivery_list(struct cli *cli, const char *id)
{
    int status = EXIT_OK;
    int64_t n;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!list_rows(cli, 50, &n, &status) ||
        !client_get(cli, &r, &status, "/v1/webhooks/%s/deliveries?limit=%lld", id, (long long)n)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "deliveries");
    if ((int64_t)json_array_size(list) == n) {
        say("there may be more; next: drover webhook deliveries %s -n %d", id, LIST_ROWS_MAX);
    }
    if (list_machine(cli, &deliveries, r.json, list, &status)) {
        return status;
    }
    list_table(cli, &deliveries, list);
    return EXIT_OK;
}

/* --on as `kinds`. */
static void add_kinds(const struct cli *cli, json_t *body)
{
    if (cli->opt.on == NULL) {
        return;
    }
    json_t *kinds = json_array();
    struct str rest = str_of(cli->opt.on);
    while (rest.n > 0) {
        struct str one = str_trim(str_split(&rest, ','));
        (void)json_array_append_new(kinds, json_stringn(one.p, one.n));
    }
    (void)json_object_set_new(body, "kinds", kinds);
}

static int webhook_add(struct cli *cli, const char *name, const char *url)
{
    int status = EXIT_OK;
    AUTO_JSON json_t *body = json_pack("{s:s,s:s}", "name", name, "url", url);
    if (cli->opt.format != NULL) {
        (void)json_object_set_new(body, "format", json_string(cli->opt.format));
    }
    if (cli->opt.project != NULL) {
        (void)json_object_set_new(body, "project", json_string(cli->opt.project));
    }
    if (cli->opt.quiet_hours != NULL) {
        (void)json_object_set_new(body, "quiet", json_string(cli->opt.quiet_hours));
    }
    add_kinds(cli, body);
    AUTO_FREE char *text = json_text(body);
    CLEANUP(reply_done)
    struct client_reply r = {0};
    const struct client_call call = {
        .method = "POST", .path = "/v1/webhooks", .body = str_of(text)};
    if (!client_call(cli, &call, &r, &status)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(jstr(r.json, "id"));
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s added\n", jstr(r.json, "id"));
        if (!jnull(r.json, "secret")) { /* of mail */
            (void)printf("%s\n", jstr(r.json, "secret"));
            say("this is the only time its secret is shown: the receiver checks signatures with "
                "it");
        }
        say("next: drover webhook test %s", jstr(r.json, "id"));
    }
    return EXIT_OK;
}

/* url NULL: as it is. --quiet-hours none: there are none any more. */
static int webhook_set(struct cli *cli, const char *id, const char *url)
{
    int status = EXIT_OK;
    AUTO_JSON json_t *body = json_object();
    const char *quiet = cli->opt.quiet_hours;
    if (url != NULL) {
        (void)json_object_set_new(body, "url", json_string(url));
    }
    if (cli->opt.format != NULL) {
        (void)json_object_set_new(body, "format", json_string(cli->opt.format));
    }
    if (quiet != NULL) {
        bool none = strcmp(quiet, "none") == 0;
        (void)json_object_set_new(body, "quiet", none ? json_null() : json_string(quiet));
    }
    add_kinds(cli, body);
    if (json_object_size(body) == 0) {
        return fail(EXIT_USAGE, "drover webhook --help shows examples",
                    "say what to change: URL, --on, --format or --quiet-hours");
    }
    AUTO_FREE char *text = json_text(body);
    AUTO_FREE char *path = xasprintf("/v1/webhooks/%s", id);
    CLEANUP(reply_done)
    struct client_reply r = {0};
    const struct client_call call = {
        .method = "PATCH", .path = path, .body = str_of(text), .if_match = "*"};
    if (!client_call(cli, &call, &r, &status)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(jstr(r.json, "id"));
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s changed\n", jstr(r.json, "id"));
    }
    return EXIT_OK;
}

static int webhook_remove(struct cli *cli, const char *id)
{
    int status = EXIT_OK;
    if (!confirm(cli, "Remove it, with what waits for it and its log?")) {
        return declined(cli, "remove", "not removed");
    }
    AUTO_FREE char *path = xasprintf("/v1/webhooks/%s", id);
    CLEANUP(reply_done)
    struct client_reply r = {0};
    const struct client_call call = {.method = "DELETE", .path = path};
    if (!client_call(cli, &call, &r, &status)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(jstr(r.json, "id"));
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s removed\n", jstr(r.json, "id"));
    }
    return EXIT_OK;
}

/* The delivery of that id among the newest ones; borrowed from r. */
static const json_t *delivery_of(struct cli *cli, const char *webhook, const char *id,
                                 struct client_reply *r, int *ret_exit)
{
    size_t i;
    json_t *one;
    reply_done(r);
    if (!client_get(cli, r, ret_exit, "/v1/webhooks/%s/deliveries?limit=1000", webhook)) {
        return NULL;
    }
    json_array_foreach(json_object_get(r->json, "deliveries"), i, one)
    {
        if (strcmp(jstr(one, "id"), id) == 0) {
            return one;
        }
    }
    *ret_exit = fail(EXIT_NOT_FOUND, "drover webhook", "%s is no longer there", id);
    return NULL;
}

static int test_result(struct cli *cli, const char *webhook, const json_t *d)
{
    char took[TEXT_N];
    bool waits = strcmp(jstr(d, "state"), "waiting") == 0;
    bool good = strcmp(jstr(d, "state"), "delivered") == 0;
    if (cli->out == OUT_NAME) {
        (void)puts(jstr(d, "id"));
    } else if (!print_machine(cli, d, NULL) && good) {
        (void)printf("delivered: answered %lld after %s\n", (long long)jint(d, "status"),
                     duration((double)jint(d, "took_microseconds") / USEC_PER_SEC, took));
    }
    if (good && jnull(d, "problem")) {
        return EXIT_OK;
    }
    if (waits && jnull(d, "problem")) {
        return fail(EXIT_WAIT_TIMEOUT, "drover doctor shows whether a droverd leads",
                    "it still waits for its turn");
    }
    AUTO_FREE char *next = xasprintf("drover webhook deliveries %s", webhook);
    return fail(EXIT_FAILED, next, "not delivered%s: %s",
                waits  ? " yet"
                : good ? " to everybody"
                       : "",
                jstr(d, "problem"));
}

/* POSTs to a path that queues a delivery, and waits for what comes of it. */
static int send_and_wait(struct cli *cli, const char *webhook, const char *path)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    const struct client_call call = {.method = "POST", .path = path};
    if (!client_call(cli, &call, &r, &status)) {
        return status;
    }
    AUTO_FREE char *id = xstrdup(jstr(r.json, "id"));
    const json_t *d = r.json;
    for (int i = 0; i < TEST_POLLS && strcmp(jstr(d, "state"), "waiting") == 0 &&
                    (jnull(d, "problem") || jint(d, "tries") == 0);
         i++) {
        pause_ms(TEST_POLL_MS);
        d = delivery_of(cli, webhook, id, &r, &status);
        if (d == NULL) {
            return status;
        }
    }
    return test_result(cli, webhook, d);
}

static int webhook_try(struct cli *cli, const char *webhook)
{
    AUTO_FREE char *path = xasprintf("/v1/webhooks/%s/test", webhook);
    return send_and_wait(cli, webhook, path);
}

static int delivery_again(struct cli *cli, const char *webhook, const char *delivery)
{
    AUTO_FREE char *path = xasprintf("/v1/webhooks/%s/deliveries/%s:resend", webhook, delivery);
    return send_and_wait(cli, webhook, path);
}

int cmd_webhook(struct cli *cli)
{
    const char *what = cli->args_n > 0 ? cli->args[0] : "ls";
    if (strcmp(what, "ls") == 0 && cli->args_n < 2) {
        return webhook_list(cli);
    }
    if (strcmp(what, "add") == 0 && cli->args_n == 3) {
        return webhook_add(cli, cli->args[1], cli->args[2]);
    }
    if (strcmp(what, "set") == 0 && (cli->args_n == 2 || cli->args_n == 3)) {
        return webhook_set(cli, cli->args[1], cli->args_n == 3 ? cli->args[2] : NULL);
    }
    if (strcmp(what, "resend") == 0 && cli->args_n == 3) {
        return delivery_again(cli, cli->args[1], cli->args[2]);
    }
    if (cli->args_n == 2 && strcmp(what, "rm") == 0) {
        return webhook_remove(cli, cli->args[1]);
    }
    if (cli->args_n == 2 && strcmp(what, "test") == 0) {
        return webhook_try(cli, cli->args[1]);
    }
    if (cli->args_n == 2 && strcmp(what, "deliveries") == 0) {
        return delivery_list(cli, cli->args[1]);
    }
    return fail(EXIT_USAGE, "drover webhook --help shows examples",
                "write ls, add NAME URL, set, rm, test, deliveries or resend");
}
