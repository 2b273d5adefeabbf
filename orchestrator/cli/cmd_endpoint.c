/* drover endpoints: endpoints of stages that deploy, one of them, and what is done with it. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"
#include "table.h"
#include <errno.h>
#include <stdio.h>

#define DATA_MAX (1024 * 1024) /* of a request to the API */

static const struct list_column columns[] = {
    {"ENDPOINT", COLUMN_TEXT, .path = "name"},
    {"STATE", COLUMN_TEXT, .path = "state"},
    {"INSTANCES", COLUMN_TEXT, .text = list_instances, .spare = 5},
    {"USD/H", COLUMN_USD, .path = "micro_usd_per_hour", .spare = 4},
    {"USD", COLUMN_USD, .path = "cost_micro_usd", .spare = 2},
    {"DELETED AFTER", COLUMN_TIME, .path = "delete_after", .spare = 3},
    {"REASON", COLUMN_TEXT, .path = "reason", .spare = 1},
    {"CAMPAIGN", COLUMN_TEXT, .path = "campaign", .wide = true},
    {"STAGE", COLUMN_TEXT, .path = "stage", .wide = true},
    {"SECONDS", COLUMN_NUMBER, .path = "seconds", .wide = true},
    {"P95 US", COLUMN_NUMBER, .path = "p95_us", .wide = true},
    {"IN SERVICE", COLUMN_TIME, .path = "in_service_at", .wide = true},
    {"ENDED", COLUMN_TIME, .path = "ended_at", .wide = true},
};
static const struct api_list endpoints = LIST(columns, "name");

static int endpoint_list(struct cli *cli)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    int64_t n;
    if (!list_rows(cli, 200, &n, &status) ||
        !client_get(cli, &r, &status, "/v1/endpoints?limit=%lld", (long long)n)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "endpoints");
    list_more(cli, list, n);
    if (!list_machine(cli, &endpoints, r.json, list, &status)) {
        list_table(cli, &endpoints, list);
    }
    return status;
}

static void line(const char *what, const char *text)
{
    if (text[0] != '\0') {
        AUTO_FREE char *clean = text_clean(text);
        (void)printf("%-16s %s\n", what, clean);
    }
}

static void line_time(const json_t *e, const char *what, const char *key, const char *more)
{
    char at[TEXT_N];
    if (!jnull(e, key)) {
        (void)printf("%-16s %s%s\n", what, when(jstr(e, key), at), more);
    }
}

static void show_cost(const json_t *e)
{
    char usd[TEXT_N], hour[TEXT_N], held[TEXT_N];
    (void)printf("%-16s %s USD%s, %s USD an hour, %s USD reserved\n", "cost",
                 money(jint(e, "cost_micro_usd"), usd),
                 json_is_true(json_object_get(e, "estimated")) ? " so far" : "",
                 money(jint(e, "micro_usd_per_hour"), hour),
                 money(jint(e, "reserved_micro_usd"), held));
}

static void show_overrun(const json_t *e)
{
    char late[TEXT_N], usd[TEXT_N];
    int64_t s = jint(e, "overrun_seconds");
    if (s > 0) {
        int64_t musd = s * jint(e, "micro_usd_per_hour") / 3600;
        (void)printf("%-16s %s beyond its ttl, %s USD\n", "overrun", span(s, late),
                     money(musd, usd));
    }
}

static void show_test(const json_t *e)
{
    char p95[TEXT_N];
    if (json_is_true(json_object_get(e, "tested"))) {
        (void)printf("%-16s passed%s%s\n", "smoke test", jnull(e, "p95_us") ? "" : ", p95 ",
                     jnull(e, "p95_us") ? "" : duration((double)jint(e, "p95_us") / 1e6, p95));
    }
}

/* What a person wants to know of one. */
static void show(const struct cli *cli, const json_t *e)
{
    char idle[TEXT_N];
    AUTO_FREE char *instances = list_instances(cli, e);
    AUTO_FREE char *place = xasprintf("%s, stage %s, try %lld", jstr(e, "campaign"),
                                      jstr(e, "stage"), (long long)jint(e, "try"));
    AUTO_FREE char *rule =
        jnull(e, "idle_seconds")
            ? xstrdup("")
            : xasprintf(", or after %s without an invocation", span(jint(e, "idle_seconds"), idle));
    (void)printf("%s %s %s\n", glyph(cli, jstr(e, "state")), jstr(e, "name"), jstr(e, "state"));
    line("campaign", place);
    line("instances", instances);
    line_time(e, "since", "since", "");
    line_time(e, "in service", "in_service_at", "");
    line_time(e, jnull(e, "ended_at") ? "deleted after" : "was to end", "delete_after", rule);
    line_time(e, "asked to live", "extend_to", " (not taken yet)");
    line_time(e, "not extended to", "extend_refused", ": the budget has no room");
    line_time(e, "ended", "ended_at", "");
    show_overrun(e);
    line("reason", jstr(e, "reason"));
    line("model", jstr(e, "model"));
    line("config", jstr(e, "endpoint_config"));
    line("endpoint", jstr(e, "endpoint"));
    show_cost(e);
    show_test(e);
    line_time(e, "last invocation", "last_invocation", " or up to a minute before");
}

static int endpoint_show(struct cli *cli, const char *name)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_get(cli, &r, &status, "/v1/endpoints/%s", name)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(name);
    } else if (!print_machine(cli, r.json, NULL)) {
        show(cli, r.json);
    }
    return EXIT_OK;
}

/* With the ETag just read: a change of somebody else's meanwhile is a conflict. */
static int endpoint_extend(struct cli *cli, const char *name)
{
    int status = EXIT_OK;
    char key[37], at[TEXT_N];
    CLEANUP(reply_done)
    struct client_reply now = {0};
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (cli->opt.ttl == NULL) {
        return fail(EXIT_USAGE, "drover endpoints extend ENDPOINT --ttl 2h", "--ttl is missing");
    }
    AUTO_FREE char *path = xasprintf("/v1/endpoints/%s", name);
    AUTO_JSON json_t *body = json_pack("{s:s}", "ttl", cli->opt.ttl);
    AUTO_FREE char *text = json_text(body);
    if (!client_get(cli, &now, &status, "%s", path)) {
        return status;
    }
    if (!confirm(cli, "It costs money for so much longer. Let it live?")) {
        return declined(cli, "extend it", "not extended");
    }
    key_random(key); /* repeated with it when the reply is lost */
    const struct client_call call = {
        .method = "PATCH", .path = path, .body = str_of(text), .key = key, .if_match = now.etag};
    if (!client_call(cli, &call, &r, &status)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(name);
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s %s: is to live until %s\n", glyph(cli, jstr(r.json, "state")), name,
                     when(jstr(r.json, "extend_to"), at));
    }
    return EXIT_OK;
}

/* What --data says: the text itself, or a file behind '@'. */
static bool read_data(const struct cli *cli, struct buf *ret, int *ret_exit)
{
    const char *data = cli->opt.data;
    if (data == NULL) {
        *ret_exit = fail(EXIT_USAGE, "drover endpoints invoke ENDPOINT --data @question.json",
                         "--data is missing");
        return false;
    }
    if (data[0] != '@') {
        buf_add_cstr(ret, data);
    } else {
        bool in = strcmp(data, "@-") == 0;
        AUTO_FILE FILE *opened = in ? NULL : fopen(data + 1, "re");
        FILE *f = in ? stdin : opened;
        if (f == NULL || (!buf_add_file(ret, f) && !ret->overflow)) {
            *ret_exit = fail(EXIT_USAGE, "give the path of a file, or @- for stdin",
                             "cannot read '%s': %s", data + 1, strerror(errno));
            return false;
        }
    }
    if (ret->overflow) {
        *ret_exit = fail(EXIT_USAGE, "aws sagemaker-runtime invoke-endpoint takes 6 MB",
                         "more than %d bytes", DATA_MAX);
        return false;
    }
    return true;
}

/* The model's answer, as it is. */
static int endpoint_invoke(struct cli *cli, const char *name)
{
    int status = EXIT_OK;
    AUTO_BUF struct buf data = BUF_INIT(DATA_MAX);
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!read_data(cli, &data, &status)) {
        return status;
    }
    AUTO_FREE char *path = xasprintf("/v1/endpoints/%s:invoke", name);
    const struct client_call call = {
        .method = "POST", .path = path, .body = buf_str(&data), .type = cli->opt.content_type};
    if (!client_call(cli, &call, &r, &status)) {
        return status;
    }
    if (r.json == NULL || !print_machine(cli, r.json, NULL)) {
        (void)fwrite(r.text.p, 1, r.text.n, stdout);
        if (cli->out_tty && r.text.n > 0 && r.text.p[r.text.n - 1] != '\n') {
            (void)putchar('\n');
        }
    }
    return EXIT_OK;
}

static int endpoint_delete(struct cli *cli, const char *name)
{
    int status = EXIT_OK;
    if (!confirm(cli, "Delete this endpoint, its config and its model for good?")) {
        return declined(cli, "delete it", "not deleted");
    }
    CLEANUP(reply_done)
    struct client_reply r = {0};
    AUTO_FREE char *path = xasprintf("/v1/endpoints/%s", name);
    if (!client_call(cli, &(struct client_call){.method = "DELETE", .path = path}, &r, &status)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(name);
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s %s: is being deleted\n", glyph(cli, "stopping"), name);
    }
    return EXIT_OK;
}

int cmd_endpoints(struct cli *cli)
{
    if (cli->args_n == 0) {
        return endpoint_list(cli);
    }
    static const struct {
        const char *word;
        int (*run)(struct cli *cli, const char *name);
    } words[] = {{"show", endpoint_show},
                 {"invoke", endpoint_invoke},
                 {"extend", endpoint_extend},
                 {"delete", endpoint_delete}};
    for (size_t i = 0; i < ARRAY_LEN(words) && cli->args_n == 2; i++) {
        if (strcmp(cli->args[0], words[i].word) == 0) {
            return words[i].run(cli, cli->args[1]);
        }
    }
    return fail(EXIT_USAGE, "drover endpoints --help shows examples",
                "write nothing, or show, invoke, extend or delete ENDPOINT");
}
