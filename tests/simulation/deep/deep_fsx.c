/* FSx for Lustre: file systems with their lives, what fills them from S3, exports. A create under
 * the token of a living file system is answered with that one, else with another. */
#include "common/hash.h"
#include "common/json.h"
#include "deep.h"
#include <stdio.h>

enum fsx_what { MAKE, LOOK, LIST_ALL, END_IT };

struct lustre_call {
    enum fsx_what what;
    enum fsx_kind kind;
    struct str request;
    char id[24];
    fsx_cb cb;
    void *ctx;
    void *under_way;
    /* the answer */
    enum fsx_answer answer;
    union fsx_row *rows;
    size_t n;
};

struct lustre *lustre_find(const char *id)
{
    for (size_t i = 0; i < deep->lustres_n; i++) {
        if (!deep->lustres[i].gone && strcmp(deep->lustres[i].id, id) == 0) {
            return &deep->lustres[i];
        }
    }
    return NULL;
}

static void note(const struct lustre *l)
{
    trace("file system %s of %s: %s", l->id, l->token, l->gone ? "gone" : l->lifecycle);
}

/* FSx says so for a moment of what is in use, and mends it by itself. */
static void misconfigured(void *ctx, int64_t for_us)
{
    struct lustre *l = ctx;
    if (l->off == 0) {
        l->lifecycle = for_us > 0 ? "MISCONFIGURED" : "AVAILABLE";
        note(l);
    }
    if (l->off == 0 && for_us > 0) {
        event_at(deep->now_us + for_us, misconfigured, l, 0);
    }
}

static void made(void *ctx, int64_t arg)
{
    struct lustre *l = ctx;
    (void)arg;
    if (l->off != 0) {
        return;
    }
    l->lifecycle = l->fails != NULL ? "FAILED" : "AVAILABLE";
    l->available = l->fails != NULL ? 0 : wall_now();
    note(l);
    if (deep->imports && l->available != 0 && rng_chance(&deep->rng_imports, 0.5)) {
        int64_t for_us = between(&deep->rng_imports, 30, 1200) * SEC;
        event_at(deep->now_us + between(&deep->rng_imports, 10, 180) * MINUTE, misconfigured, l,
                 for_us);
    }
}

/* The task that fills it, one word after the other. */
static void imports(void *ctx, int64_t arg)
{
    static const char *const words[] = {"PENDING", "EXECUTING", "SUCCEEDED", "FAILED"};
    struct lustre *l = ctx;
    struct rng *r = &deep->rng_imports;
    l->import = words[arg];
    l->filling = l->filling != 0 ? l->filling : wall_now();
    if (arg < 2) {
        bool fails = arg == 1 && rng_chance(r, 0.15);
        event_at(deep->now_us + between(r, 5, 900) * SEC, imports, l, arg + 1 + fails);
    }
}

static void filled(void *ctx, int64_t arg)
{
    struct lustre *l = ctx;
    (void)arg;
    l->link = l->link_fails != NULL ? "MISCONFIGURED" : "AVAILABLE";
    if (deep->imports && l->link_fails == NULL && rng_chance(&deep->rng_imports, 0.8)) {
        event_at(deep->now_us + between(&deep->rng_imports, 0, 30) * SEC, imports, l, 0);
    }
}

static void exported(void *ctx, int64_t i)
{
    struct lustre *l = ctx;
    l->exports[i].lifecycle = fault(FAULT_EXPORT_FAILS) ? "FAILED" : "SUCCEEDED";
}

static void vanish(void *ctx, int64_t arg)
{
    struct lustre *l = ctx;
    (void)arg;
    l->gone = true;
    note(l);
}

static void begin_end(struct lustre *l)
{
    if (l->off == 0) {
        l->off = wall_now();
        l->lifecycle = "DELETING";
        note(l);
        event_at(deep->now_us + between(&deep->rng_aws, 5, 400) * SEC, vanish, l, 0);
    }
}

static void row_of(const struct lustre *l, struct filesystem_description *ret)
{
    *ret = (struct filesystem_description){.capacity_gib = l->size_gib,
                                           .created = aws_time(l->created)};
    (void)snprintf(ret->id, sizeof ret->id, "%s", l->id);
    (void)snprintf(ret->lifecycle, sizeof ret->lifecycle, "%s", l->lifecycle);
    (void)snprintf(ret->mount_name, sizeof ret->mount_name, "%.8s", l->id + 3);
    (void)snprintf(ret->owner, sizeof ret->owner, "%s", l->owner);
    (void)snprintf(ret->token, sizeof ret->token, "%s", l->token);
    if (strcmp(l->lifecycle, "FAILED") == 0) {
        (void)snprintf(ret->failure_reason, sizeof ret->failure_reason, "%s", l->fails);
    } else if (strcmp(l->lifecycle, "MISCONFIGURED") == 0) {
        (void)snprintf(ret->failure_reason, sizeof ret->failure_reason, "wrong for a moment");
    }
}

static void link_of(const struct lustre *l, struct association_description *ret)
{
    *ret = (struct association_description){0};
    (void)snprintf(ret->id, sizeof ret->id, "dra-%.16s", l->id + 3);
    (void)snprintf(ret->filesystem_id, sizeof ret->filesystem_id, "%s", l->id);
    (void)snprintf(ret->lifecycle, sizeof ret->lifecycle, "%s", l->link);
    if (strcmp(l->link, "MISCONFIGURED") == 0) {
        (void)snprintf(ret->failure_reason, sizeof ret->failure_reason, "%s", l->link_fails);
    }
}

static void export_of(const struct lustre *l, int i, struct fsx_task_description *ret)
{
    bool over = strcmp(l->exports[i].lifecycle, "EXECUTING") != 0;
    *ret = (struct fsx_task_description){.total = over ? 100 : -1,
                                         .created = aws_time(l->exports[i].created)};
    (void)snprintf(ret->id, sizeof ret->id, "task-%.12s-%d", l->id + 3, i);
    (void)snprintf(ret->type, sizeof ret->type, "EXPORT_TO_REPOSITORY");
    (void)snprintf(ret->lifecycle, sizeof ret->lifecycle, "%s", l->exports[i].lifecycle);
}

static void import_of(const struct lustre *l, struct fsx_task_description *ret)
{
    bool failed = strcmp(l->import, "FAILED") == 0;
    *ret = (struct fsx_task_description){
        .total = 100, .failed = failed, .created = aws_time(l->filling)};
    (void)snprintf(ret->id, sizeof ret->id, "task-%.12s-in", l->id + 3);
    (void)snprintf(ret->type, sizeof ret->type, "IMPORT_METADATA_FROM_REPOSITORY");
    (void)snprintf(ret->lifecycle, sizeof ret->lifecycle, "%s", l->import);
}

static void begin(struct lustre *l, const json_t *o)
{
    struct rng *r = &deep->rng_aws;
    l->size_gib = json_number_of(o, "StorageCapacity");
    l->campaign_id = strtoll(json_tag_of(o, "drover-campaign"), NULL, 10);
    (void)snprintf(l->stage, sizeof l->stage, "%s", json_tag_of(o, "drover-stage"));
    (void)snprintf(l->owner, sizeof l->owner, "%s", json_tag_of(o, "drover-install"));
    (void)snprintf(l->id, sizeof l->id, "fs-%08llx%09zx",
                   (unsigned long long)(rng_u64(r) & 0xffffffffu), deep->lustres_n);
    l->lifecycle = "CREATING";
    l->created = wall_now();
    l->fails = fault(FAULT_MADE_FAILS) ? "an internal error has occurred" : NULL;
    l->link_fails = fault(FAULT_LINK_FAILS) ? "the bucket cannot be read" : NULL;
    note(l);
    judge_lustre_made(l);
    wish_regret(l->token, false);
    event_at(deep->now_us + between(r, 10, 900) * SEC, made, l, 0);
}

static void make(struct lustre_call *k, const json_t *o, struct aws_failure *f)
{
    const char *token = json_text_of(o, "ClientRequestToken");
    uint8_t hash[32];
    hash_sha256(k->request.p, k->request.n, hash);
    struct lustre *l = NULL;
    for (size_t i = 0; i < deep->lustres_n; i++) {
        struct lustre *x = &deep->lustres[i];
        l = !x->gone && strcmp(x->token, token) == 0 ? x : l;
    }
    if (l != NULL && memcmp(l->request_hash, hash, sizeof hash) != 0) {
        wrong("I2", "two requests under one token: %s", token);
        k->answer = FSX_TOKEN_TAKEN;
        return;
    }
    if (l == NULL && fault(FAULT_MADE_REFUSED)) {
        aws_refuse(f, AWS_REFUSED, "ServiceLimitExceeded", "the limit of file systems is reached");
        return;
    }
    if (l == NULL) {
        ASSERT(deep->lustres_n < LUSTRES_MAX);
        l = &deep->lustres[deep->lustres_n++];
        (void)snprintf(l->token, sizeof l->token, "%s", token);
        memcpy(l->request_hash, hash, sizeof hash);
        begin(l, o);
    }
    k->n = 1;
    row_of(l, &k->rows[0].filesystem);
}

static void make_link(struct lustre_call *k, struct lustre *l)
{
    if (l->link == NULL) {
        l->link = "CREATING";
        event_at(deep->now_us + between(&deep->rng_aws, 10, 600) * SEC, filled, l, 0);
    }
    k->n = 1;
    link_of(l, &k->rows[0].association);
}

static void make_export(struct lustre_call *k, struct lustre *l, const json_t *o)
{
    const char *token = json_text_of(o, "ClientRequestToken");
    int i = 0;
    if (l->import != NULL && (l->import[0] == 'P' || l->import[0] == 'E')) {
        k->answer = FSX_TASK_RUNS;
        return;
    }
    while (i < l->exports_n && strcmp(l->exports[i].token, token) != 0) {
        if (strcmp(l->exports[i++].lifecycle, "EXECUTING") == 0) {
            k->answer = FSX_TASK_RUNS;
            return;
        }
    }
    if (i == l->exports_n) {
        ASSERT(i < EXPORTS_MAX);
        l->exports_n++;
        l->exports[i].lifecycle = "EXECUTING";
        l->exports[i].created = wall_now();
        (void)snprintf(l->exports[i].token, sizeof l->exports[i].token, "%s", token);
        event_at(deep->now_us + between(&deep->rng_aws, 10, 600) * SEC, exported, l, i);
    }
    k->n = 1;
    export_of(l, i, &k->rows[0].task);
}

static void effect_make(struct lustre_call *k, usec_t signed_us, struct aws_failure *f)
{
    AUTO_JSON json_t *o = NULL;
    struct err err = ERR_INIT;
    k->rows = world_alloc(sizeof *k->rows);
    if (wall_now() - signed_us > deep->window_us - 10 * SEC) {
        aws_refuse(f, AWS_CREDENTIALS, "InvalidSignatureException", "Signature expired");
        return;
    }
    if (!json_parse(k->request, k->request.n, &o, &err)) {
        wrong("I2", "a request that cannot be read: %.200s", k->request.p);
        aws_refuse(f, AWS_REFUSED, "BadRequest", "unreadable");
        return;
    }
    if (k->kind == FSX_FILESYSTEM) {
        make(k, o, f);
        return;
    }
    struct lustre *l = lustre_find(json_text_of(o, "FileSystemId"));
    if (l == NULL) {
        k->answer = FSX_NOT_FOUND;
    } else if (l->off != 0 || l->available == 0) {
        aws_refuse(f, AWS_REFUSED, "BadRequest", "the file system is not available");
    } else if (k->kind == FSX_ASSOCIATION) {
        make_link(k, l);
    } else {
        make_export(k, l, o);
    }
}

static void effect_list(struct lustre_call *k)
{
    struct lustre *of = k->id[0] != '\0' ? lustre_find(k->id) : NULL;
    k->rows = world_alloc(MAX(deep->lustres_n, (size_t)EXPORTS_MAX + 1) * sizeof *k->rows);
    if (k->id[0] != '\0' && of == NULL) {
        k->answer = FSX_NOT_FOUND;
    } else if (k->kind == FSX_FILESYSTEM) {
        for (size_t i = 0; i < deep->lustres_n; i++) {
            const struct lustre *l = &deep->lustres[i];
            bool young = wall_now() - l->created < 30 * SEC;
            if (!l->gone && !(young && fault(FAULT_LIST_OMITS))) {
                row_of(l, &k->rows[k->n++].filesystem);
            }
        }
    } else if (k->kind == FSX_ASSOCIATION && of->link != NULL) {
        link_of(of, &k->rows[k->n++].association);
    } else if (k->kind == FSX_TASK) {
        if (of->import != NULL) {
            import_of(of, &k->rows[k->n++].task);
        }
        for (int i = 0; i < of->exports_n; i++) {
            export_of(of, i, &k->rows[k->n++].task);
        }
    }
}

static void effect_end(struct lustre_call *k, struct lustre *l, struct aws_failure *f)
{
    if (l == NULL) {
        k->answer = FSX_NOT_FOUND;
    } else if (strcmp(l->lifecycle, "CREATING") == 0 && deep->seed % 2 == 0) {
        aws_refuse(f, AWS_REFUSED, "BadRequest", "the file system is being created");
    } else {
        if (l->off == 0) {
            judge_lustre_ends(l);
        }
        begin_end(l);
    }
}

static void effect(void *x, usec_t signed_us, struct aws_failure *f)
{
    struct lustre_call *k = x;
    struct lustre *l = lustre_find(k->id);
    bool young = l != NULL && wall_now() - l->created < 20 * SEC;
    k->answer = FSX_DONE;
    k->n = 0;
    switch (k->what) {
    case MAKE:
        effect_make(k, signed_us, f);
        return;
    case LOOK:
        k->rows = world_alloc(sizeof *k->rows);
        if (l == NULL || (young && fault(FAULT_DESCRIBE_BLIND))) {
            k->answer = FSX_NOT_FOUND;
        } else {
            row_of(l, &k->rows[k->n++].filesystem);
        }
        return;
    case LIST_ALL:
        effect_list(k);
        return;
    case END_IT:
        effect_end(k, l, f);
        return;
    }
}

static void give(void *x, const struct aws_failure *f)
{
    struct lustre_call *k = x;
    bool done = f == NULL && k->answer == FSX_DONE;
    k->cb(k->ctx, f != NULL ? FSX_FAILED : k->answer, done ? k->rows : NULL, done ? k->n : 0, f);
}

static struct lustre_call *call_new(struct aws_client *c, struct aws_gate gate, enum fsx_what what,
                                    const struct lustre_call *with)
{
    static const struct call_kind_of kinds[] = {[MAKE] = {"fsx create", true, effect, give},
                                                [LOOK] = {"fsx describe", false, effect, give},
                                                [LIST_ALL] = {"fsx list", false, effect, give},
                                                [END_IT] = {"fsx delete", false, effect, give}};
    struct lustre_call *k = world_alloc(sizeof *k);
    *k = *with;
    k->what = what;
    k->under_way = call_other(c, gate, &kinds[what], k->id, k);
    return k;
}

struct fsx_call *aws_fsx_create(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                                struct str request, fsx_cb cb, void *ctx)
{
    const struct lustre_call k = {
        .kind = kind, .cb = cb, .ctx = ctx, .request = {str_dup(request), request.n}};
    return (struct fsx_call *)(void *)call_new(c, gate, MAKE, &k);
}

struct fsx_call *aws_fsx_describe(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                                  const char *id, fsx_cb cb, void *ctx)
{
    struct lustre_call k = {.kind = kind, .cb = cb, .ctx = ctx};
    ASSERT(kind == FSX_FILESYSTEM);
    (void)snprintf(k.id, sizeof k.id, "%s", id);
    return (struct fsx_call *)(void *)call_new(c, gate, LOOK, &k);
}

struct fsx_call *aws_fsx_list(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                              const char *filesystem_id, fsx_cb cb, void *ctx)
{
    struct lustre_call k = {.kind = kind, .cb = cb, .ctx = ctx};
    (void)snprintf(k.id, sizeof k.id, "%s", filesystem_id != NULL ? filesystem_id : "");
    return (struct fsx_call *)(void *)call_new(c, gate, LIST_ALL, &k);
}

struct fsx_call *aws_fsx_end(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                             const char *id, fsx_cb cb, void *ctx)
{
    struct lustre_call k = {.kind = kind, .cb = cb, .ctx = ctx};
    ASSERT(kind == FSX_FILESYSTEM);
    (void)snprintf(k.id, sizeof k.id, "%s", id);
    return (struct fsx_call *)(void *)call_new(c, gate, END_IT, &k);
}

void aws_fsx_cancel(struct fsx_call *call)
{
    if (call != NULL) {
        call_cancel(((struct lustre_call *)(void *)call)->under_way);
    }
}

void fsx_vanish(struct rng *r)
{
    struct lustre *l = deep->lustres_n > 0 ? &deep->lustres[rng_below(r, deep->lustres_n)] : NULL;
    if (l != NULL && l->available != 0 && l->off == 0) {
        trace("somebody deletes %s by hand", l->id);
        begin_end(l);
    }
}
