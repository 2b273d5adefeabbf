/* drover submit and validate: shows every fault of a file with its line, the plan, and the
 * submitted campaign. */
#include "campaign_file.h"
#include "cli.h"
#include "client.h"
#include "forecast_print.h"
#include "local_faults.h"
#include "print.h"
#include "progress.h"
#include "source_dirs.h"
#include "table.h"
#include <ctype.h>
#include <stdio.h>

/* How a key of a live campaign is changed; `after` not "": a key of a stage, whose name is
 * between. */
struct key_change {
    const char *before, *after;
    const char *verb, *option;
    const char *none; /* what the verb is called with when the file has no value */
};

/* NULL: it is not changed. Of a stage its name is *ret_stage. */
static const struct key_change *change_of(const char *pointer, struct str *ret_stage)
{
    static const struct key_change known[] = {
        {"limits.deadline", "", "deadline", "", "none"},
        {"limits.priority", "", "priority", "", "50"},
        {"limits.parts", "", "scale", "", "none"},
        {"stages.", ".limits.parts", "scale", "", "none"},
        {"budget", "", "budget", "", "none"},
        {"budget.total", "", "budget", "", "none"},
        {"budget.stages.", ".total", "budget", "", "none"},
        {"budget.stages.", ".per_task", "budget", "--per-task ", "none"},
    };
    struct str of = str_of(pointer);
    *ret_stage = STR("");
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        size_t before = strlen(known[i].before), after = strlen(known[i].after);
        if (after == 0 && str_eq_cstr(of, known[i].before)) {
            return &known[i];
        }
        if (after > 0 && of.n > before + after && str_starts(of, known[i].before) &&
            str_ends(of, known[i].after)) {
            *ret_stage = (struct str){pointer + before, of.n - before - after};
            return &known[i];
        }
    }
    return NULL;
}

/* The command that changes a key as the file has it: "drover deadline c-7 2026-12-01T18:00:00Z". */
static void say_change(const char *campaign, const char *pointer, const char *message)
{
    const char *to = strstr(message, " -> ");
    struct str stage;
    const struct key_change *change = change_of(pointer, &stage);
    if (change == NULL || to == NULL) {
        return;
    }
    struct str value = str_of(to + strlen(" -> "));
    if (str_eq_cstr(value, "(none)")) {
        value = str_of(change->none);
    } else if (str_ends(value, " USD")) {
        value.n -= strlen(" USD");
    }
    for (size_t i = 0; i < value.n; i++) { /* a shell reads it as one word */
        if (isalnum((unsigned char)value.p[i]) == 0 && strchr(":.+-", value.p[i]) == NULL) {
            return;
        }
    }
    say("  change it there: drover %s %s%s%.*s %s%.*s", change->verb, campaign,
        stage.n > 0 ? "/" : "", (int)stage.n, stage.p, change->option, (int)value.n, value.p);
}

/* A campaign of this name is live: which one, and the keys in which its file differs. */
static int refused_live(const struct cli *cli, const struct client_reply *r)
{
    AUTO_FREE char *detail = text_clean(jstr(r->json, "detail"));
    size_t i;
    json_t *e;
    if (cli->out == OUT_JSON) {
        print_json(cli, r->json);
    }
    say("error: %s", detail);
    json_array_foreach(json_object_get(r->json, "errors"), i, e)
    {
        AUTO_FREE char *pointer = text_clean(jstr(e, "pointer"));
        AUTO_FREE char *message = text_clean(jstr(e, "message"));
        say("  %s: %s", pointer, message);
    }
    int64_t more = jint(r->json, "errors_dropped");
    if (more > 0) {
        say("  ... and %lld more", (long long)more);
    }
    json_array_foreach(json_object_get(r->json, "errors"), i, e)
    {
        AUTO_FREE char *pointer = text_clean(jstr(e, "pointer"));
        AUTO_FREE char *message = text_clean(jstr(e, "message"));
        say_change(jstr(r->json, "campaign"), pointer, message);
    }
    say("  next: drover get %s shows it; --again submits a second one", jstr(r->json, "campaign"));
    return EXIT_CONFLICT;
}

static bool is_live(const struct client_reply *r)
{
    return strcmp(jstr(r->json, "code"), err_code_name(ERR_LIVE_NAME)) == 0;
}

static int refused(const struct cli *cli, const struct campaign_file *f,
                   const struct client_reply *r)
{
    const json_t *errors = json_object_get(r->json, "errors");
    if (is_live(r)) {
        return refused_live(cli, r);
    }
    if (!json_is_array(errors) || json_array_size(errors) == 0) {
        return client_explain(cli, r);
    }
    if (cli->out == OUT_JSON) {
        print_json(cli, r->json);
    }
    size_t i;
    json_t *e;
    json_array_foreach(errors, i, e)
    {
        campaign_file_fault(f, e);
    }
    int64_t more = jint(r->json, "errors_dropped");
    if (more > 0) {
        say("... and %lld more", (long long)more);
    }
    say("%zu fault%s; next: correct the file, then drover validate %s", json_array_size(errors),
        json_array_size(errors) == 1 ? "" : "s", strcmp(f->name, "stdin") == 0 ? "-" : f->name);
    return strcmp(jstr(r->json, "code"), "budget") == 0 ? EXIT_REFUSED : EXIT_USAGE;
}

static bool send(struct cli *cli, const struct campaign_file *f, bool dry_run, const char *key,
                 struct client_reply *ret, int *ret_exit)
{
    size_t n = strlen(f->name);
    bool json = n > 5 && strcmp(f->name + n - 5, ".json") == 0;
    AUTO_BUF struct buf query = BUF_INIT(4096);
    /* With a key of one's own the campaign of this name may be the one that the key made. */
    bool refuse = !cli->opt.again && !(dry_run && cli->opt.key != NULL);
    buf_add_cstr(&query, refuse ? "&live_name=refuse" : "");
    buf_add_cstr(&query, dry_run ? "&dry_run=true" : "");
    if (dry_run && cli->opt.what_if != NULL) {
        buf_add_cstr(&query, "&what_if=");
        str_url_encode(&query, str_of(cli->opt.what_if), false);
    }
    AUTO_FREE char *path =
        xasprintf("/v1/campaigns%s%s", query.n > 0 ? "?" : "", query.n > 0 ? query.p + 1 : "");
    const struct client_call call = {.method = "POST",
                                     .path = path,
                                     .body = campaign_file_sent(f),
                                     .type = json ? "application/json" : "application/yaml",
                                     .key = dry_run ? NULL : key};
    struct err err = ERR_INIT;
    if (client_try(cli, &call, ret, &err) &&
        (is_live(ret) || json_array_size(json_object_get(ret->json, "errors")) > 0)) {
        *ret_exit = refused(cli, f, ret); /* faults are printed here, other errors by client_call */
        return false;
    }
    if (ret->status >= 200 && ret->status < 300) {
        return true;
    }
    if (ret->status == 0 && !dry_run && cli->talk_tty) {
        say("waiting for %s ...", client_url(cli->client));
    }
    reply_done(ret);
    return client_call(cli, &call, ret, ret_exit);
}

#define NAME_BESIDE_MAX 20 /* a longer name has a line of its own: 80 columns */

static const char *plan_name(const json_t *s)
{
    const char *name = jstr(s, "name");
    if (strlen(name) <= NAME_BESIDE_MAX) {
        return name;
    }
    (void)printf("  %s\n", name);
    return "";
}

/* What a part, or the whole of a stage that has no parts, may cost at most. */
static void plan_worst(const json_t *s)
{
    char worst[TEXT_N], one[TEXT_N];
    bool parts = strcmp(jstr(s, "kind"), "lustre") != 0 && strcmp(jstr(s, "kind"), "endpoint") != 0;
    if (jnull(s, "worst_case_micro_usd_per_part")) {
        return;
    }
    (void)printf("  %-12s at worst %s USD%s", "",
                 money(jint(s, "worst_case_micro_usd_per_part"), one), parts ? " a part" : "");
    if (parts && !jnull(s, "worst_case_micro_usd")) {
        (void)printf(", %s USD in all", money(jint(s, "worst_case_micro_usd"), worst));
    }
    (void)putchar('\n');
}

static void plan_endpoint(const json_t *s)
{
    char ttl[TEXT_N], idle[TEXT_N];
    (void)printf("  %-12s endpoint   %lld x %s   deleted after %s\n", plan_name(s),
                 (long long)jint(s, "instance_count"), jstr(s, "instance_type"),
                 span(jint(s, "ttl_seconds"), ttl));
    if (!jnull(s, "idle_seconds")) {
        (void)printf("  %-12s or after %s without an invocation\n", "",
                     span(jint(s, "idle_seconds"), idle));
    }
    plan_worst(s);
}

static void plan_filesystem(const json_t *s)
{
    char ttl[TEXT_N];
    (void)printf("  %-12s lustre     %lld GiB   deleted after its last use, %s at the latest\n",
                 plan_name(s), (long long)jint(s, "size_gib"), span(jint(s, "ttl_seconds"), ttl));
    plan_worst(s);
}

static void plan_stage(const json_t *s)
{
    if (strcmp(jstr(s, "kind"), "lustre") == 0) {
        plan_filesystem(s);
        return;
    }
    if (strcmp(jstr(s, "kind"), "endpoint") == 0) {
        plan_endpoint(s);
        return;
    }
    const json_t *q = json_object_get(s, "quota");
    bool some = json_is_false(json_object_get(s, "parts_complete"));
    const char *least = some ? "at least " : "";
    AUTO_FREE char *parts = jnull(s, "parts")
                                ? xstrdup("parts are added by the API")
                                : xasprintf("%s%lld part%s", least, (long long)jint(s, "parts"),
                                            jint(s, "parts") == 1 ? "" : "s");
    AUTO_FREE char *quota = jnull(q, "limit")
                                ? xstrdup("quota not known yet")
                                : xasprintf("quota %lld, %lld held", (long long)jint(q, "limit"),
                                            (long long)(jint(q, "held") + jint(q, "foreign")));
    (void)printf("  %-12s %s   %lld x %s   %s\n", plan_name(s), parts,
                 (long long)jint(s, "instance_count"), jstr(s, "instance_type"), quota);
    plan_worst(s);
}

/* What several stages are warned of is one line that names them. */
static void plan_warnings(const struct cli *cli, const json_t *warnings)
{
    size_t n = json_array_size(warnings);
    for (size_t i = 0; i < n; i++) {
        const char *message = jstr(json_array_get(warnings, i), "message");
        AUTO_BUF struct buf line = BUF_INIT(1 << 16);
        for (size_t k = 0; k < n; k++) {
            const json_t *w = json_array_get(warnings, k);
            if (strcmp(jstr(w, "message"), message) != 0) {
                continue;
            }
            if (k < i) { /* said with that one */
                buf_reset(&line);
                message = "";
                break;
            }
            buf_addf(&line, "%s%s", line.n == 0 ? "" : ", ", jstr(w, "stage"));
        }
        if (message[0] != '\0') {
            buf_addf(&line, "%s%s", line.n == 0 ? "" : ": ", message);
            text_print(cli, "  ! ", buf_cstr(&line));
        }
    }
}

static void plan_print(const struct cli *cli, const json_t *plan)
{
    char worst[TEXT_N], budget[TEXT_N];
    const json_t *stages = json_object_get(plan, "stages");
    size_t i;
    json_t *v;
    (void)printf("Plan  %s   %zu stage%s, %lld parts\n", jstr(plan, "name"),
                 json_array_size(stages), json_array_size(stages) == 1 ? "" : "s",
                 (long long)json_integer_value(jget(plan, "parts", "total")));
    json_array_foreach(stages, i, v)
    {
        plan_stage(v);
    }
    if (!jnull(plan, "worst_case_micro_usd")) {
        (void)printf(
            "  at worst %s USD in all; %s%s; list prices, not the bill\n",
            money(jint(plan, "worst_case_micro_usd"), worst),
            jnull(plan, "budget_micro_usd") ? "no budget set" : "budget ",
            jnull(plan, "budget_micro_usd") ? "" : money(jint(plan, "budget_micro_usd"), budget));
    }
    plan_warnings(cli, json_object_get(plan, "warnings"));
    forecast_print(cli, json_object_get(plan, "forecast"), json_object_get(plan, "what_if"));
}

static int plan(struct cli *cli, const struct campaign_file *f)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!send(cli, f, true, NULL, &r, &status)) {
        return status;
    }
    if (!print_machine(cli, r.json, NULL) && !cli->opt.quiet) {
        plan_print(cli, r.json);
    }
    return EXIT_OK;
}

/* Its faults are shown first: they need no confirmation. */
static int confirmed(struct cli *cli, const struct campaign_file *f)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!cli->opt.yes && !send(cli, f, true, NULL, &r, &status)) {
        return status;
    }
    return confirm(cli, "Submit it? It starts jobs that cost money.")
               ? EXIT_OK
               : declined(cli, "submit", "not submitted");
}

static int submit(struct cli *cli, const struct campaign_file *f)
{
    char key[37];
    int status = EXIT_OK;
    key_random(key);
    if (cli->out == OUT_TABLE && cli->out_tty && !cli->opt.quiet) {
        status = plan(cli, f);
        if (status != EXIT_OK) {
            return status;
        }
    }
    status = confirmed(cli, f);
    if (status != EXIT_OK) {
        return status;
    }
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!source_dirs_send(cli, f, &status)) {
        return status;
    }
    if (!send(cli, f, false, cli->opt.key != NULL ? cli->opt.key : key, &r, &status)) {
        return status;
    }
    const char *id = jstr(r.json, "id");
    if (cli->out == OUT_TABLE) {
        (void)printf("Submitted %s  %s%s     watch: drover watch %s\n", id, client_url(cli->client),
                     json_string_value(jget(r.json, "links", "dashboard")), id);
    }
    if (cli->opt.wait) {
        progress_begin(cli, r.json);
        return progress_follow(cli, id);
    }
    if (cli->out == OUT_NAME) {
        (void)puts(id);
    }
    (void)print_machine(cli, r.json, NULL);
    return EXIT_OK;
}

int cmd_submit(struct cli *cli)
{
    int status = EXIT_OK;
    struct campaign_file f;
    if (campaign_file_read(cli->args[0], &f, &status) && source_dirs_pack(&f, &status)) {
        status = cli->opt.dry_run ? plan(cli, &f) : submit(cli, &f);
    }
    campaign_file_done(&f);
    return status;
}

/* Without a server, or a token for it, what the file itself says wrong is found all the same. */
int cmd_validate(struct cli *cli)
{
    int status = EXIT_OK;
    struct campaign_file f;
    cli->opt.dry_run = cli->opt.again = true; /* of the file alone */
    if (campaign_file_read(cli->args[0], &f, &status) && source_dirs_pack(&f, &status)) {
        status = plan(cli, &f);
        if (status == EXIT_UNREACHABLE || status == EXIT_AUTH) {
            int faults = local_faults_check(&f);
            if (faults == EXIT_OK) {
                say("valid as a file; prices, quotas and images were not checked: no %s %s",
                    status == EXIT_AUTH ? "token for" : "server at", client_url(cli->client));
            }
            status = faults != EXIT_OK ? faults : status;
        }
    }
    campaign_file_done(&f);
    return status;
}
