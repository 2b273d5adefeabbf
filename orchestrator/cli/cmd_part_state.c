/* drover retry, skip, hold and release: show the selected parts, ask, send. */
#include "cli.h"
#include "client.h"
#include "cmd_campaign_state.h"
#include "print.h"
#include "ref.h"
#include "wait.h"
#include <stdio.h>

struct part_verb {
    const char *verb, *from, *ask,
        *look; /* ask: of which parts; look: what shows such parts of a campaign */
};
static const struct part_verb retry = {"retry", "failed", "Retry %s?", "drover failures %s"};
static const struct part_verb skip = {"skip", "failed", "Skip %s for good?", "drover failures %s"};
static const struct part_verb hold = {"hold", "waiting", "Hold %s?",
                                      "drover parts %s --state waiting"};
static const struct part_verb release = {"release", "held", "Release %s?",
                                         "drover parts %s --state held"};

static bool operation_ended(const json_t *v, const char *arg)
{
    (void)arg;
    return strcmp(jstr(v, "state"), "done") == 0 || strcmp(jstr(v, "state"), "cancelled") == 0;
}

/* What is named, with its stage in ref->stage; false after an error message. */
static bool selected_read(struct cli *cli, const struct part_verb *v, struct ref *ret,
                          int *ret_exit)
{
    if (!ref_read(cli, cli->args[0], ret, ret_exit)) {
        return false;
    }
    const char *twice = cli->opt.parts != NULL && ret->part >= 0 ? "write the part or --parts"
                        : cli->opt.stage != NULL && ret->stage[0] != '\0'
                            ? "write the stage or --stage"
                            : NULL;
    if (twice != NULL) {
        AUTO_FREE char *next = xasprintf("drover help %s shows examples", v->verb);
        *ret_exit = fail(EXIT_USAGE, next, "%s", twice);
        return false;
    }
    if (cli->opt.stage != NULL && strlen(cli->opt.stage) >= sizeof ret->stage) {
        *ret_exit = fail(EXIT_USAGE, "drover get shows the stages", "the stage's name is too long");
        return false;
    }
    if (cli->opt.stage != NULL) {
        (void)snprintf(ret->stage, sizeof ret->stage, "%s", cli->opt.stage);
    } else if (ret->part >= 0 && ret->stage[0] == '\0') {
        return ref_stage_find(cli, ret, ret_exit);
    }
    return true;
}

/* The body from the options. Lists go as they were written: the server has the one parser. Without
 * an option all parts of that state of the campaign are meant, and said so. */
static json_t *body_of(const struct cli *cli, const struct ref *ref, const struct part_verb *v)
{
    json_t *body = json_object(), *selector = json_object(), *changes = json_object();
    (void)json_object_set_new(body, "selector", selector);
    if (strcmp(v->from, "failed") == 0) {
        (void)json_object_set(body, "changes", changes);
    }
    (void)json_object_set_new(selector, "state", json_string(v->from));
    if (cli->opt.stage != NULL || ref->stage[0] != '\0') { /* an empty --stage is refused there */
        (void)json_object_set_new(selector, "stage", json_string(ref->stage));
    }
    if (cli->opt.cause != NULL) {
        (void)json_object_set_new(selector, "cause", json_string(cli->opt.cause));
    }
    if (cli->opt.parts != NULL) {
        (void)json_object_set_new(selector, "parts", json_string(cli->opt.parts));
    } else if (ref->part >= 0) {
        (void)json_object_set_new(selector, "parts", json_pack("[I]", (json_int_t)ref->part));
    }
    if (cli->opt.volume_gb > 0) {
        (void)json_object_set_new(changes, "volume_gb", json_integer(cli->opt.volume_gb));
    }
    if (cli->opt.instance_type != NULL) {
        (void)json_object_set_new(changes, "instance_type", json_string(cli->opt.instance_type));
    }
    if (cli->opt.max_runtime != NULL) {
        (void)json_object_set_new(changes, "max_runtime", json_string(cli->opt.max_runtime));
    }
    json_decref(changes);
    return body;
}

/* "ends in 2 h 10 m (now in 1 h), about 3.20 USD more" */
static void forecast_line(const json_t *f)
{
    char end[TEXT_N], now[TEXT_N], usd[TEXT_N];
    if (!json_is_object(f)) {
        return;
    }
    if (!json_is_true(json_object_get(f, "known"))) {
        (void)printf("  new end and cost: %s\n", jstr(f, "reason"));
        return;
    }
    bool live = json_is_object(json_object_get(f, "now"));
    (void)printf("  with it the campaign ends in %s%s%s%s",
                 span_or_never(json_object_get(f, "end"), "p50_seconds", end),
                 live ? ", without it in " : "",
                 live ? span_or_never(json_object_get(f, "now"), "p50_seconds", now) : "",
                 jnull(f, "added_micro_usd") ? "" : "; ");
    (void)printf("%s%s\n",
                 jnull(f, "added_micro_usd") ? "" : money(jint(f, "added_micro_usd"), usd),
                 jnull(f, "added_micro_usd") ? "" : " USD more");
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
    (void)printf("%lld part%s of %s%s%s%s%s%s%s\n", (long long)parts, parts == 1 ? "" : "s",
                 ref->campaign, ref->stage[0] != '\0' ? "/" : "", ref->stage, i > 0 ? " (" : "",
                 buf_cstr(&numbers), i > 0 && (int64_t)i < parts ? ",..." : "", i > 0 ? ")" : "");
    forecast_line(json_object_get(p, "forecast"));
    int64_t lost = jint(p, "pools_lost");
    if (lost > 0) {
        (void)printf("! %lld idle warm pool%s not match and go on costing money until %s\n",
                     (long long)lost, lost == 1 ? " does" : "s do",
                     lost == 1 ? "it ends" : "they end");
    }
    if (cli->opt.volume_gb > 0) {
        (void)printf("! volume %lld GB: no warm pool of another size matches; these start cold\n",
                     (long long)cli->opt.volume_gb);
    }
    if (cli->opt.instance_type != NULL) {
        (void)printf("! type %s: no warm pool of another type matches; these start cold\n",
                     cli->opt.instance_type);
    }
    if (cli->opt.max_runtime != NULL) {
        (void)printf("! max run time %s: what an attempt may cost is reserved for that long\n",
                     cli->opt.max_runtime);
    }
    if (cli->opt.resume) {
        (void)printf("! the campaign goes on: other parts that wait start as well\n");
    }
    (void)fflush(stdout);
}

/* Parts of a campaign or a stage that starts none wait for a person, who is told. */
static void stopped_told(struct cli *cli, const struct ref *ref)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    struct err err = ERR_INIT;
    AUTO_FREE char *path = xasprintf("/v1/campaigns/%s", ref->campaign);
    if (!client_try(cli, &(struct client_call){.method = "GET", .path = path}, &r, &err) ||
        r.status != 200) {
        return;
    }
    const char *state = jstr(r.json, "state"), *held = NULL;
    bool stopped = strcmp(state, "held") == 0 || strcmp(state, "paused") == 0 ||
                   strcmp(state, "draining") == 0;
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(r.json, "stages"), i, s)
    {
        bool meant = ref->stage[0] == '\0' || strcmp(jstr(s, "name"), ref->stage) == 0;
        held = meant && strcmp(jstr(s, "state"), "held") == 0 ? jstr(s, "name") : held;
    }
    if (stopped || held != NULL) {
        say("%s%s is %s and starts no part; next: drover resume %s", stopped ? "" : "stage ",
            stopped ? ref->campaign : held, stopped ? state : "held", ref->campaign);
    }
}

static int change_send(struct cli *cli, const struct ref *ref, const struct part_verb *v,
                       struct str body)
{
    char random[37];
    int status = EXIT_OK;
    key_random(random);
    AUTO_FREE char *path = xasprintf("/v1/campaigns/%s:%s", ref->campaign, v->verb);
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
    if (cli->opt.resume && (status = resume_after(cli, ref->campaign)) != EXIT_OK) {
        return status;
    }
    if (cli->opt.wait) {
        AUTO_FREE char *get = xasprintf("/v1/operations/%s", id);
        status = wait_for(cli, get, operation_ended, NULL);
        reply_done(&r);
        if (status != EXIT_OK || !client_get(cli, &r, &status, "%s", get)) {
            return status;
        }
    }
    bool undoable =
        strcmp(v->from, "failed") == 0 && json_is_true(json_object_get(r.json, "undoable"));
    if (cli->out == OUT_NAME) {
        (void)puts(id);
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s %s: %lld part%s%s     progress: drover ops %s%s%s\n", id,
                     jstr(r.json, "state"), (long long)jint(r.json, "parts"),
                     jint(r.json, "parts") == 1 ? "" : "s", cli->opt.wait ? verb_past(v->verb) : "",
                     id, undoable ? "\n  undo before start: drover op cancel " : "",
                     undoable ? id : "");
        bool starts = strcmp(v->verb, "retry") == 0 || strcmp(v->verb, "release") == 0;
        if (starts && !cli->opt.resume) {
            stopped_told(cli, ref);
        }
    }
    return EXIT_OK;
}

static bool agrees(const struct cli *cli, const struct part_verb *v, const struct ref *ref,
                   int64_t parts)
{
    const char *blank = strstr(v->ask, "%s");
    AUTO_FREE char *question =
        xasprintf("%.*s%lld part%s of %s%s%s%s", (int)(blank - v->ask), v->ask, (long long)parts,
                  parts == 1 ? "" : "s", ref->campaign, ref->stage[0] != '\0' ? "/" : "",
                  ref->stage, blank + 2);
    return confirm(cli, question);
}

static int change_parts(struct cli *cli, const struct part_verb *v)
{
    int status = EXIT_OK;
    struct ref ref;
    if (!selected_read(cli, v, &ref, &status)) {
        return status;
    }
    AUTO_JSON json_t *body = body_of(cli, &ref, v);
    AUTO_FREE char *text = json_text(body);
    AUTO_FREE char *path = xasprintf("/v1/campaigns/%s:%s?dry_run=true", ref.campaign, v->verb);
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
        const char *at = strstr(v->look, "%s");
        AUTO_FREE char *next =
            xasprintf("%.*s%s%s shows what %s", (int)(at - v->look), v->look, ref.campaign, at + 2,
                      strcmp(v->from, "waiting") == 0 ? "waits"
                      : strcmp(v->from, "held") == 0  ? "is held"
                                                      : "failed");
        return fail(EXIT_NOT_FOUND, next, "no %s part matches", v->from);
    }
    if (!agrees(cli, v, &ref, jint(r.json, "parts"))) {
        return declined(cli, "go on", "nothing was changed");
    }
    return change_send(cli, &ref, v, str_of(text));
}

int cmd_retry(struct cli *cli)
{
    return change_parts(cli, &retry);
}

int cmd_skip(struct cli *cli)
{
    return change_parts(cli, &skip);
}

int cmd_hold(struct cli *cli)
{
    return change_parts(cli, &hold);
}

int cmd_release(struct cli *cli)
{
    return change_parts(cli, &release);
}
