/* drover smoke: one job of a few minutes that shows whether image, role, bucket and manifest work.
 * The job copies a file of a few bytes from the bucket to the bucket with drover-worker, and what
 * it left is deleted. */
#include "cli.h"
#include "client.h"
#include "guidance.h"
#include "print.h"
#include "progress.h"
#include "table.h"
#include "wait.h"
#include <stdio.h>

#define SMOKE_ID_N      13
#define SMOKE_BLOCKED   (20 * USEC_PER_SEC)
#define SMOKE_MUSD_MAX  INT64_C(100000)
#define SMOKE_FILE_MAX  4096
#define SMOKE_TYPES_MAX 4

/* Cheap ones that new accounts have a quota for, the cheapest first. */
static const char *const usual[SMOKE_TYPES_MAX] = {"ml.m5.large", "ml.c5.xlarge", "ml.m5.xlarge",
                                                   "ml.m4.xlarge"};

struct smoke {
    struct cli *cli;
    char id[SMOKE_ID_N];
    char key[37];                       /* of the submission, also when it is repeated */
    const char *types[SMOKE_TYPES_MAX]; /* that can run, in the order they are tried */
    size_t types_n;
    json_t *plan; /* of the first of them */
    char *folder; /* the objects' address; NULL: not made */
    char *bucket; /* "": not known */
    char campaign[TEXT_N];
    bool unknown; /* whether it was submitted */
};

static void smoke_done(struct smoke *s)
{
    json_decref(s->plan);
    free(s->folder);
    free(s->bucket);
}

/* What doctor would complain about and a job needs; every fault at once. */
static int check_account(struct smoke *s)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    int status = EXIT_OK;
    size_t i, bad = 0;
    json_t *v;
    if (!client_get(s->cli, &r, &status, "/v1/checks")) {
        return status;
    }
    json_array_foreach(json_object_get(r.json, "checks"), i, v)
    {
        AUTO_FREE char *detail = text_clean(jstr(v, "detail"));
        AUTO_FREE char *next = text_clean(jstr(v, "next"));
        const char *what = jstr(v, "check");
        if (strcmp(what, "bucket") == 0) {
            free(s->bucket);
            s->bucket = xstrdup(detail);
        }
        if (json_is_false(json_object_get(v, "ok")) && strcmp(what, "subnets") != 0) {
            say("error: %s: %s", what, detail);
            say("  next: %s", next);
            bad++;
        }
    }
    return bad == 0
               ? EXIT_OK
               : fail(EXIT_REFUSED, "the same again; drover doctor shows all checks",
                      "no smoke campaign before %s mended", bad == 1 ? "that is" : "those are");
}

static void write_file(const struct smoke *s, const char *folder, const char *const *types,
                       size_t n, struct buf *ret)
{
    buf_addf(ret,
             "version: 1\nname: smoke-%s\nlimits: {parts: 1}\n"
             "budget: {total: 0.10 USD, at_limit: stop}\n"
             "stages:\n"
             "  - name: copy\n"
             "    worker: copy\n"
             "    from: \"%sinput.txt\"\n"
             "    to: \"%soutput/copy.txt\"\n"
             "    max_runtime: 6m\n"
             "    instance_type: [",
             s->id, folder, folder);
    for (size_t i = 0; i < n; i++) {
        buf_addf(ret, "%s\"%s\"", i > 0 ? ", " : "", types[i]);
    }
    buf_add_cstr(ret, "]\n");
}

/* A setting of droverd that is missing shows as a fault of the file that was made here. */
static int refused(const struct smoke *s, const struct client_reply *r)
{
    const json_t *errors = json_object_get(r->json, "errors");
    size_t i;
    json_t *e;
    if (json_array_size(errors) == 0) {
        return client_explain(s->cli, r);
    }
    json_array_foreach(errors, i, e)
    {
        AUTO_FREE char *pointer = text_clean(jstr(e, "pointer"));
        AUTO_FREE char *message = text_clean(jstr(e, "message"));
        say("error: %s: %s", pointer, message);
        if (strstr(message, "DROVER_ROLE_ARN") != NULL) {
            say("  next: set DROVER_ROLE_ARN for droverd: deploy/iam/README.md makes the role");
        } else if (strstr(message, "image") != NULL) {
            say("  next: set DROVER_WORKER_IMAGE for droverd: deploy/docker/push-images.sh prints "
                "it");
        } else if (!jnull(e, "hint")) {
            AUTO_FREE char *hint = text_clean(jstr(e, "hint"));
            say("  next: %s", hint);
        }
    }
    return strcmp(jstr(r->json, "code"), "budget") == 0 ? EXIT_REFUSED : EXIT_USAGE;
}

/* The reply of the submission did not come, or says nothing of it. A campaign that runs needs its
 * input. */
static int unknown(struct smoke *s, const char *why)
{
    s->unknown = true;
    AUTO_FREE char *next = xasprintf("drover watch smoke-%s\n  or end it: drover cancel smoke-%s; "
                                     "drover api DELETE /v1/smoke/%s",
                                     s->id, s->id, s->id);
    return fail(EXIT_UNREACHABLE, next, "it may have been submitted as smoke-%s: %s", s->id, why);
}

static bool send(struct smoke *s, const struct buf *text, bool dry, struct client_reply *ret,
                 int *ret_exit)
{
    struct err err = ERR_INIT;
    const struct client_call call = {.method = "POST",
                                     .path = dry ? "/v1/campaigns?dry_run=true" : "/v1/campaigns",
                                     .body = buf_str(text),
                                     .type = "application/yaml",
                                     .key = dry ? NULL : s->key};
    bool came = client_repeat(s->cli, &call, ret, &err);
    bool passing = came && (ret->status >= 500 || ret->status == 429 || ret->status == 409);
    if (!dry && (!came || passing)) {
        AUTO_FREE char *detail = text_clean(came ? jstr(ret->json, "detail") : err.message);
        AUTO_FREE char *why = came ? xasprintf("HTTP %d %s", ret->status, detail) : TAKE(detail);
        *ret_exit = unknown(s, why);
    } else if (!came) {
        *ret_exit = fail(EXIT_UNREACHABLE, "drover doctor", "%s", err.message);
    } else if (ret->status < 200 || ret->status > 299) {
        *ret_exit = refused(s, ret);
    }
    return came && ret->status >= 200 && ret->status <= 299;
}

/* Why this type cannot run it, into why; "": it can. */
static void judge(const json_t *plan, const char *type, char why[static 160])
{
    const json_t *stage = json_array_get(json_object_get(plan, "stages"), 0);
    const json_t *quota = json_object_get(stage, "quota");
    char text[TEXT_N];
    int64_t worst = jint(stage, "worst_case_micro_usd_per_part");
    why[0] = '\0';
    if (jnull(stage, "price_micro_usd_per_hour")) {
        (void)snprintf(why, 160, "%s: no price is known", type);
    } else if (worst > SMOKE_MUSD_MAX) {
        (void)snprintf(why, 160, "%s: could cost %s USD", type, money(worst, text));
    } else if (!jnull(quota, "limit") && jint(quota, "limit") == 0) {
        (void)snprintf(why, 160, "%s: its quota is 0", type);
    }
}

static int none_can(char why[][160], size_t n)
{
    bool price = false, quota = false;
    for (size_t i = 0; i < n; i++) {
        say("error: %s", why[i]);
        price |= strstr(why[i], "no price") != NULL;
        quota |= strstr(why[i], "quota") != NULL;
    }
    return fail(EXIT_REFUSED,
                quota   ? "ask Service Quotas for more: drover quotas request ml.m5.large --value 1"
                : price ? "allow pricing:GetProducts to droverd, or set DROVER_PRICES_FILE"
                        : "drover smoke --instance-type TYPE, a cheaper one",
                "no instance type can run it for less than 0.10 USD");
}

/* Types that can run it by what is known of prices and quotas, and the plan of the first. */
static int choose(struct smoke *s)
{
    const char *own[] = {s->cli->opt.instance_type};
    const char *const *from = own[0] != NULL ? own : usual;
    size_t n = own[0] != NULL ? 1 : ARRAY_LEN(usual);
    char why[SMOKE_TYPES_MAX][160];
    for (size_t i = 0; i < n; i++) {
        AUTO_BUF struct buf text = BUF_INIT(SMOKE_FILE_MAX);
        AUTO_FREE char *folder = xasprintf("{bucket}/drover-smoke/%s/", s->id);
        CLEANUP(reply_done)
        struct client_reply r = {0};
        int status = EXIT_OK;
        write_file(s, folder, &from[i], 1, &text);
        if (!send(s, &text, true, &r, &status)) {
            return status;
        }
        judge(r.json, from[i], why[i]);
        if (why[i][0] == '\0') {
            s->plan = s->plan != NULL ? s->plan : json_incref(r.json);
            s->types[s->types_n++] = from[i];
        }
    }
    return s->types_n > 0 ? EXIT_OK : none_can(why, n);
}

static void plan_print(const struct smoke *s)
{
    char worst[TEXT_N], hour[TEXT_N];
    const json_t *stage = json_array_get(json_object_get(s->plan, "stages"), 0);
    (void)printf("Smoke test   1 job: drover-worker copies a file of some bytes, on %s\n",
                 s->types[0]);
    for (size_t i = 1; i < s->types_n; i++) {
        (void)printf("             or %s, where quota or capacity lacks\n", s->types[i]);
    }
    (void)printf("  writes     %s/drover-smoke/%s/, %s\n", s->bucket != NULL ? s->bucket : "",
                 s->id, s->cli->opt.keep ? "which stays" : "deleted at the end");
    (void)printf("  price      %s USD an hour; at worst %s USD, usually a tenth of it\n",
                 money(jint(stage, "price_micro_usd_per_hour"), hour),
                 money(jint(stage, "worst_case_micro_usd_per_part"), worst));
}

static int begin(struct smoke *s)
{
    AUTO_BUF struct buf text = BUF_INIT(SMOKE_FILE_MAX);
    AUTO_FREE char *path = xasprintf("/v1/smoke/%s", s->id);
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply made = {0}, sent = {0};
    if (!client_call(s->cli, &(struct client_call){.method = "PUT", .path = path}, &made,
                     &status)) {
        return status;
    }
    s->folder = xstrdup(jstr(made.json, "folder"));
    write_file(s, s->folder, s->types, s->types_n, &text);
    if (!send(s, &text, false, &sent, &status)) {
        return status;
    }
    (void)snprintf(s->campaign, sizeof s->campaign, "%s", jstr(sent.json, "id"));
    return EXIT_OK;
}

static bool has_ended(const json_t *c, const char *arg)
{
    const char *state = jstr(c, "state");
    (void)arg;
    return strcmp(state, "succeeded") == 0 || strcmp(state, "failed") == 0 ||
           strcmp(state, "cancelled") == 0;
}

/* It can do nothing more: why, and it is cancelled, so that nothing of it is left. */
static void give_up(struct smoke *s, const json_t *c)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    AUTO_FREE char *path = xasprintf("/v1/campaigns/%s", s->campaign);
    int ignored = EXIT_OK;
    guidance_print(s->cli, c);
    say("%s is cancelled: it cannot go on", s->campaign);
    s->cli->opt.timeout = "3m";
    if (client_post(s->cli, &r, &ignored, "/v1/campaigns/%s:cancel", s->campaign)) {
        (void)wait_for(s->cli, path, has_ended, NULL);
    }
}

static void failure_print(const struct smoke *s)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    int ignored = EXIT_OK;
    size_t i;
    json_t *f;
    if (!client_get(s->cli, &r, &ignored, "/v1/campaigns/%s/failures", s->campaign)) {
        return;
    }
    json_array_foreach(json_object_get(r.json, "groups"), i, f)
    {
        AUTO_FREE char *message = text_clean(jstr(f, "message"));
        AUTO_FREE char *remedy = text_clean(jstr(f, "remedy"));
        say("error: %s: %s", jstr(f, "cause"), message);
        say("  next: %s; drover logs %s/0 shows its log", remedy, s->campaign);
    }
}

/* What was shown by it, and what it cost. */
static void result_print(const struct smoke *s, const json_t *c, bool good)
{
    char cost[TEXT_N], time[TEXT_N];
    const json_t *budget = json_object_get(c, "budget");
    const struct cli *cli = s->cli;
    if (cli->out != OUT_TABLE) {
        return;
    }
    if (good) {
        const char *done = glyph(cli, "done");
        (void)printf("%s image      SageMaker pulled and ran it\n", done);
        (void)printf("%s role       the job read and wrote %s\n", done, s->folder);
        (void)printf("%s manifest   its object is there, with size and ETag\n", done);
    }
    (void)printf("%s cost       %s USD for %s of an instance\n",
                 glyph(cli, good ? "done" : "failed"), money(jint(budget, "spent_micro_usd"), cost),
                 span(jint(budget, "seconds"), time));
}

/* False: objects are left, and it is said where. */
static bool clean(struct smoke *s)
{
    AUTO_FREE char *path = xasprintf("/v1/smoke/%s", s->id);
    CLEANUP(reply_done)
    struct client_reply r = {0};
    int status = EXIT_OK;
    if (s->cli->opt.keep || s->folder == NULL) {
        return true;
    }
    if (!client_call(s->cli, &(struct client_call){.method = "DELETE", .path = path}, &r,
                     &status)) {
        say("  its objects are left: aws s3 rm --recursive %s", s->folder);
        return false;
    }
    if (s->cli->out == OUT_TABLE) {
        (void)printf("%s cleaned    %lld objects of %s deleted\n", glyph(s->cli, "done"),
                     (long long)jint(r.json, "objects_deleted"), s->folder);
    }
    return true;
}

static int follow(struct smoke *s)
{
    struct cli *cli = s->cli;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    int ignored = EXIT_OK;
    cli->opt.timeout = cli->opt.timeout != NULL ? cli->opt.timeout : "30m";
    cli->blocked_us = SMOKE_BLOCKED;
    int status = progress_follow(cli, s->campaign);
    if (status == EXIT_INTERRUPTED) {
        say("  to end it: drover cancel %s; drover api DELETE /v1/smoke/%s", s->campaign, s->id);
        return status;
    }
    if (!client_get(cli, &r, &ignored, "/v1/campaigns/%s", s->campaign)) {
        return status;
    }
    if (!has_ended(r.json, NULL)) {
        give_up(s, r.json);
    } else if (status != EXIT_OK) {
        failure_print(s);
    }
    result_print(s, r.json, status == EXIT_OK);
    return !clean(s) && status == EXIT_OK ? EXIT_FAILED : status;
}

int cmd_smoke(struct cli *cli)
{
    char random[37];
    CLEANUP(smoke_done)
    struct smoke s = {.cli = cli};
    key_random(random);
    key_random(s.key);
    (void)snprintf(s.id, sizeof s.id, "%s", random + sizeof random - SMOKE_ID_N);
    int status = check_account(&s);
    status = status == EXIT_OK ? choose(&s) : status;
    if (status != EXIT_OK) {
        return status;
    }
    if (cli->out == OUT_TABLE && !cli->opt.quiet) {
        plan_print(&s);
    }
    if (cli->opt.dry_run) {
        (void)print_machine(cli, s.plan, NULL);
        return EXIT_OK;
    }
    if (!confirm(cli, "Run it? It starts a job that costs money.")) {
        return declined(cli, "run it", "not run");
    }
    status = begin(&s);
    if (status != EXIT_OK) {
        (void)(s.unknown || clean(&s));
        return status;
    }
    return follow(&s);
}
