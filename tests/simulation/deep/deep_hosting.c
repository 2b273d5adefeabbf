/* SageMaker hosting: models, endpoint configs and endpoints with their lives. A name that a living
 * thing of the kind has is taken. Nor is here what only handlers ask of AWS. */
#include "aws/event_queue.h"
#include "aws/hosting.h"
#include "aws/identity.h"
#include "aws/images.h"
#include "aws/invocations.h"
#include "aws/pricing.h"
#include "aws/quota_request.h"
#include "aws/subnets.h"
#include "common/json.h"
#include "deep.h"
#include <stdio.h>

enum hosting_what { MAKE, LOOK, LIST_ALL, END_IT, ASK };

struct host_call {
    enum hosting_what what;
    enum hosting_kind kind;
    struct str request;
    char name[64];
    union {
        hosting_create_cb create;
        hosting_describe_cb describe;
        hosting_change_cb change;
        hosting_list_cb list;
        endpoint_invoke_cb invoke;
    } cb;
    void *ctx;
    void *under_way;
    /* the answer */
    bool exists, not_found, busy;
    struct endpoint_description seen;
    struct endpoint_answer said;
    struct hosting_summary *rows;
    size_t rows_n;
};

static struct hosted *find(enum hosting_kind kind, const char *name)
{
    for (size_t i = deep->hosted_n; i-- > 0;) {
        struct hosted *h = &deep->hosted[i];
        if (!h->gone && h->kind == kind && strcmp(h->name, name) == 0) {
            return h;
        }
    }
    return NULL;
}

static void show(struct hosted *h, const char *status)
{
    h->status = status;
    h->modified = MAX(h->modified + 1, wall_now());
    trace("endpoint %s: %s", h->name, status);
}

static void made(void *ctx, int64_t arg)
{
    struct hosted *h = ctx;
    (void)arg;
    if (strcmp(h->status, "Creating") == 0) {
        show(h, h->fails != NULL ? "Failed" : "InService");
        h->in_service = h->fails != NULL ? 0 : h->modified;
        if (h->in_service != 0 && rng_chance(&deep->rng_aws, 0.7)) {
            h->used_from = h->in_service + between(&deep->rng_aws, 0, 30) * MINUTE;
            h->used_until = h->used_from + between(&deep->rng_aws, 1, 60) * MINUTE;
        }
        h->count_late_us = fault(FAULT_COUNT_LATE) ? between(&deep->rng_aws, 0, 200) * SEC : 0;
    }
}

static void vanish(void *ctx, int64_t arg)
{
    struct hosted *h = ctx;
    (void)arg;
    h->gone = true;
    trace("endpoint %s is gone", h->name);
}

static void begin_end(struct hosted *h)
{
    if (h->kind != HOSTING_ENDPOINT) {
        h->gone = true;
    } else if (strcmp(h->status, "Deleting") != 0) {
        show(h, "Deleting");
        h->off = h->modified;
        event_at(deep->now_us + between(&deep->rng_aws, 5, 200) * SEC, vanish, h, 0);
    }
}

static const json_t *variant(const json_t *o)
{
    return json_array_get(json_object_get(o, "ProductionVariants"), 0);
}

/* What it is made of is there? */
static bool has_parts(const struct hosted *h, struct aws_failure *f)
{
    if (h->kind == HOSTING_CONFIG && find(HOSTING_MODEL, h->of) == NULL) {
        aws_refuse(f, AWS_REFUSED, "ValidationException", "Could not find model \"%s\"", h->of);
    } else if (h->kind == HOSTING_ENDPOINT && find(HOSTING_CONFIG, h->of) == NULL) {
        aws_refuse(f, AWS_REFUSED, "ValidationException",
                   "Could not find endpoint configuration \"%s\"", h->of);
    } else if (h->kind == HOSTING_ENDPOINT && fault(FAULT_MADE_REFUSED)) {
        aws_refuse(f, AWS_REFUSED, "ResourceLimitExceeded",
                   "The account-level service limit '%s for endpoint usage' is 0 Instances, with "
                   "current utilization of 0 Instances and a request delta of 1 Instances.",
                   h->type);
    }
    return f->code[0] == '\0';
}

static void read_request(const json_t *o, struct hosted *h)
{
    static const char *const names[] = {"ModelName", "EndpointConfigName", "EndpointName"};
    (void)snprintf(h->name, sizeof h->name, "%s", json_text_of(o, names[h->kind]));
    h->campaign_id = strtoll(json_tag_of(o, "drover-campaign"), NULL, 10);
    (void)snprintf(h->stage, sizeof h->stage, "%s", json_tag_of(o, "drover-stage"));
    (void)snprintf(h->owner, sizeof h->owner, "%s", json_tag_of(o, "drover-install"));
    if (h->kind == HOSTING_MODEL) {
        (void)snprintf(h->data, sizeof h->data, "%s",
                       json_text_of(json_object_get(o, "PrimaryContainer"), "ModelDataUrl"));
    } else if (h->kind == HOSTING_CONFIG) {
        (void)snprintf(h->of, sizeof h->of, "%s", json_text_of(variant(o), "ModelName"));
        (void)snprintf(h->type, sizeof h->type, "%s", json_text_of(variant(o), "InstanceType"));
        h->instances = json_number_of(variant(o), "InitialInstanceCount");
    } else if (h->kind == HOSTING_ENDPOINT) {
        (void)snprintf(h->of, sizeof h->of, "%s", json_text_of(o, "EndpointConfigName"));
        const struct hosted *config = find(HOSTING_CONFIG, h->of);
        if (config != NULL) {
            memcpy(h->type, config->type, sizeof h->type);
            h->instances = config->instances;
        }
    }
}

static void effect_make(struct host_call *k, usec_t signed_us, struct aws_failure *f)
{
    AUTO_JSON json_t *o = NULL;
    struct err err = ERR_INIT;
    struct hosted h = {.kind = k->kind, .created = wall_now(), .modified = wall_now()};
    if (wall_now() - signed_us > deep->window_us - 10 * SEC) {
        aws_refuse(f, AWS_CREDENTIALS, "InvalidSignatureException", "Signature expired");
        return;
    }
    if (!json_parse(k->request, k->request.n, &o, &err)) {
        wrong("I2", "a request that cannot be read: %.200s", k->request.p);
        aws_refuse(f, AWS_REFUSED, "ValidationException", "unreadable");
        return;
    }
    read_request(o, &h);
    k->exists = find(h.kind, h.name) != NULL;
    if (k->exists || !has_parts(&h, f)) {
        return;
    }
    ASSERT(deep->hosted_n < HOSTED_MAX);
    struct hosted *new = &deep->hosted[deep->hosted_n++];
    *new = h;
    judge_hosted_made(new);
    wish_regret(new->name, true);
    if (h.kind == HOSTING_ENDPOINT) {
        new->fails =
            fault(FAULT_MADE_FAILS) ? "the container did not answer the health check" : NULL;
        show(new, "Creating");
        event_at(deep->now_us + between(&deep->rng_aws, 10, 600) * SEC, made, new, 0);
    }
}

static void effect_look(struct host_call *k, const struct hosted *h)
{
    struct endpoint_description *d = &k->seen;
    *d = (struct endpoint_description){0};
    k->not_found = h == NULL || (wall_now() - h->created < 20 * SEC && fault(FAULT_DESCRIBE_BLIND));
    if (k->not_found) {
        return;
    }
    (void)snprintf(d->name, sizeof d->name, "%s", h->name);
    (void)snprintf(d->status, sizeof d->status, "%s", h->status != NULL ? h->status : "");
    d->created = aws_time(h->created);
    d->modified = aws_time(h->modified);
    d->instances = d->instances_wanted = h->instances;
    (void)snprintf(d->config, sizeof d->config, "%s", h->of);
    (void)snprintf(d->instance_type, sizeof d->instance_type, "%.32s", h->type);
    if (h->fails != NULL && strcmp(h->status, "Failed") == 0) {
        (void)snprintf(d->failure_reason, sizeof d->failure_reason, "%s", h->fails);
    }
}

const char *hosting_owner(const char *name)
{
    for (size_t i = 0; i < deep->hosted_n; i++) {
        const struct hosted *h = &deep->hosted[i];
        if (!h->gone && strcmp(h->name, name) == 0) {
            return h->owner;
        }
    }
    return NULL;
}

static void effect_list(struct host_call *k)
{
    k->rows = world_alloc((deep->hosted_n + 1) * sizeof *k->rows);
    k->rows_n = 0;
    for (size_t i = 0; i < deep->hosted_n; i++) {
        const struct hosted *h = &deep->hosted[i];
        bool young = wall_now() - h->created < 30 * SEC;
        if (h->gone || h->kind != k->kind || strstr(h->name, k->name) == NULL ||
            (young && fault(FAULT_LIST_OMITS))) {
            continue;
        }
        struct hosting_summary *s = &k->rows[k->rows_n++];
        s->created = aws_time(h->created);
        s->modified = aws_time(h->modified);
        (void)snprintf(s->name, sizeof s->name, "%s", h->name);
        (void)snprintf(s->arn, sizeof s->arn, "arn:aws:sagemaker:us-east-1:1:x/%s", h->name);
        (void)snprintf(s->status, sizeof s->status, "%s", h->status != NULL ? h->status : "");
    }
}

static void effect_ask(struct host_call *k, struct hosted *h, struct aws_failure *f)
{
    if (h == NULL || strcmp(h->status, "InService") != 0) {
        aws_refuse(f, AWS_REFUSED, "ValidationError", "Endpoint %s not found", k->name);
        return;
    }
    if (h->tested_n < TESTS_MAX) {
        h->tested[h->tested_n++] = wall_now();
    }
    bool good = !fault(FAULT_SMOKE_FAILS);
    k->said = (struct endpoint_answer){
        .status = good ? 200 : 500, .body = good ? STR("[1]") : STR("error"), .took_us = 20000};
}

static void effect(void *x, usec_t signed_us, struct aws_failure *f)
{
    struct host_call *k = x;
    struct hosted *h = find(k->kind, k->name);
    k->exists = k->not_found = k->busy = false;
    switch (k->what) {
    case MAKE:
        effect_make(k, signed_us, f);
        return;
    case LOOK:
        effect_look(k, h);
        return;
    case LIST_ALL:
        effect_list(k);
        return;
    case ASK:
        effect_ask(k, h, f);
        return;
    case END_IT:
        k->not_found = h == NULL;
        k->busy = h != NULL && h->status != NULL && strcmp(h->status, "Creating") == 0 &&
                  deep->seed % 2 == 0;
        if (h != NULL && !k->busy) {
            judge_hosted_ends(h);
            begin_end(h);
        }
        return;
    }
}

static void give(void *x, const struct aws_failure *f)
{
    struct host_call *k = x;
    switch (k->what) {
    case MAKE:
        k->cb.create(k->ctx, f == NULL && !k->exists ? "arn:aws:sagemaker:us-east-1:1:x" : NULL,
                     f == NULL && k->exists, f);
        return;
    case LOOK:
        k->cb.describe(k->ctx, f == NULL && !k->not_found ? &k->seen : NULL,
                       f == NULL && k->not_found, f);
        return;
    case LIST_ALL:
        k->cb.list(k->ctx, f == NULL ? k->rows : NULL, f == NULL ? k->rows_n : 0, f);
        return;
    case ASK:
        k->cb.invoke(k->ctx, f == NULL ? &k->said : NULL, f);
        return;
    case END_IT:
        k->cb.change(k->ctx, f == NULL && k->not_found, f == NULL && k->busy, f);
        return;
    }
}

static struct host_call *call_new(struct aws_client *c, struct aws_gate gate,
                                  enum hosting_what what, enum hosting_kind kind, const char *name,
                                  struct host_call with)
{
    static const struct call_kind_of kinds[] = {[MAKE] = {"hosting create", true, effect, give},
                                                [LOOK] = {"hosting describe", false, effect, give},
                                                [LIST_ALL] = {"hosting list", false, effect, give},
                                                [END_IT] = {"hosting delete", false, effect, give},
                                                [ASK] = {"invoke", false, effect, give}};
    struct host_call *k = world_alloc(sizeof *k);
    *k = with;
    k->what = what;
    k->kind = kind;
    (void)snprintf(k->name, sizeof k->name, "%s", name);
    k->under_way = call_other(c, gate, &kinds[what], name, k);
    return k;
}

struct hosting_call *hosting_create(struct aws_client *c, struct aws_gate gate,
                                    enum hosting_kind kind, struct str request,
                                    hosting_create_cb cb, void *ctx)
{
    return (struct hosting_call *)(void *)call_new(
        c, gate, MAKE, kind, "",
        (struct host_call){.cb.create = cb, .ctx = ctx, .request = {str_dup(request), request.n}});
}

struct hosting_call *hosting_describe(struct aws_client *c, struct aws_gate gate,
                                      enum hosting_kind kind, const char *name,
                                      hosting_describe_cb cb, void *ctx)
{
    return (struct hosting_call *)(void *)call_new(
        c, gate, LOOK, kind, name, (struct host_call){.cb.describe = cb, .ctx = ctx});
}

struct hosting_call *hosting_list(struct aws_client *c, struct aws_gate gate,
                                  enum hosting_kind kind, const char *contains, hosting_list_cb cb,
                                  void *ctx)
{
    return (struct hosting_call *)(void *)call_new(c, gate, LIST_ALL, kind, contains,
                                                   (struct host_call){.cb.list = cb, .ctx = ctx});
}

struct hosting_call *hosting_delete(struct aws_client *c, struct aws_gate gate,
                                    enum hosting_kind kind, const char *name, hosting_change_cb cb,
                                    void *ctx)
{
    return (struct hosting_call *)(void *)call_new(c, gate, END_IT, kind, name,
                                                   (struct host_call){.cb.change = cb, .ctx = ctx});
}

struct hosting_call *endpoint_invoke(struct aws_client *c, struct aws_gate gate, const char *name,
                                     const char *content_type, struct str body,
                                     endpoint_invoke_cb cb, void *ctx)
{
    (void)content_type, (void)body;
    return (struct hosting_call *)(void *)call_new(c, gate, ASK, HOSTING_ENDPOINT, name,
                                                   (struct host_call){.cb.invoke = cb, .ctx = ctx});
}

void hosting_cancel(struct hosting_call *call)
{
    if (call != NULL) {
        call_cancel(((struct host_call *)(void *)call)->under_way);
    }
}

void hosting_vanish(struct rng *r)
{
    struct hosted *h = deep->hosted_n > 0 ? &deep->hosted[rng_below(r, deep->hosted_n)] : NULL;
    if (h != NULL && h->kind == HOSTING_ENDPOINT && strcmp(h->status, "InService") == 0) {
        trace("somebody deletes %s by hand", h->name);
        begin_end(h);
    }
}

struct count_call {
    invocations_cb cb;
    void *ctx;
    void *under_way;
    char endpoint[64];
    struct invocation_question q;
    struct invocation_report report;
};

static int64_t invoked(const struct hosted *h, usec_t from, usec_t until)
{
    int64_t n = from >= h->used_from - MINUTE && from < h->used_until;
    for (int i = 0; i < h->tested_n; i++) {
        n += h->tested[i] >= from && h->tested[i] < until;
    }
    return n;
}

/* What CloudWatch has counted by now, minute by minute. */
static void effect_count(void *x, UNUSED usec_t signed_us, UNUSED struct aws_failure *f)
{
    struct count_call *k = x;
    const struct hosted *h = find(HOSTING_ENDPOINT, k->endpoint);
    usec_t seen = aws_time(wall_now()) - (h != NULL ? h->count_late_us : 0);
    usec_t ahead = aws_time(wall_now()) - wall_now();
    k->report.n = 0;
    for (usec_t at = k->q.from; h != NULL && at < MIN(k->q.to, seen); at += MINUTE) {
        usec_t period_us = k->q.period_s * SEC;
        usec_t from = at - (at - k->q.from) % period_us;
        int64_t n = invoked(h, at - ahead, at - ahead + MINUTE);
        struct invocation_count *last = &k->report.counts[k->report.n - (k->report.n > 0)];
        if (n > 0 && k->report.n > 0 && last->from == from) {
            last->n += n;
        } else if (n > 0 && k->report.n < INVOCATION_COUNTS_MAX) {
            k->report.counts[k->report.n++] = (struct invocation_count){.from = from, .n = n};
        }
    }
}

static void give_count(void *x, const struct aws_failure *f)
{
    struct count_call *k = x;
    k->cb(k->ctx, f == NULL ? &k->report : NULL, f);
}

struct invocations_call *invocations_read(struct aws_client *c, struct aws_gate gate,
                                          const char *endpoint, const char *variant,
                                          const struct invocation_question *q, invocations_cb cb,
                                          void *ctx)
{
    static const struct call_kind_of kind = {"invocations", false, effect_count, give_count};
    struct count_call *k = world_alloc(sizeof *k);
    (void)variant;
    k->q = *q;
    (void)snprintf(k->endpoint, sizeof k->endpoint, "%s", endpoint);
    k->cb = cb;
    k->ctx = ctx;
    k->under_way = call_other(c, gate, &kind, endpoint, k);
    return (struct invocations_call *)(void *)k;
}

void invocations_cancel(struct invocations_call *call)
{
    if (call != NULL) {
        call_cancel(((struct count_call *)(void *)call)->under_way);
    }
}

static _Noreturn void no_handler(void)
{
    deep_die("no handler runs here");
}

void identity_get(struct aws_client *c, identity_cb cb, void *ctx)
{
    (void)c, (void)cb, (void)ctx;
    no_handler();
}

void image_digest(struct aws_client *c, const char *registry, const char *repository,
                  const char *tag, image_digest_cb cb, void *ctx)
{
    (void)c, (void)registry, (void)repository, (void)tag, (void)cb, (void)ctx;
    no_handler();
}

void subnets_describe(struct aws_client *c, const char *ids, subnets_cb cb, void *ctx)
{
    (void)c, (void)ids, (void)cb, (void)ctx;
    no_handler();
}

void quota_request(struct aws_client *c, const char *name, int64_t value, quota_request_cb cb,
                   void *ctx)
{
    (void)c, (void)name, (void)value, (void)cb, (void)ctx;
    deep_die("nobody asks for a higher quota here");
}

/* Prices are from a file here, and AWS Pricing is never asked. */
struct pricing_call *pricing_read(struct aws_client *c, struct aws_gate gate, const char *region,
                                  pricing_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)region, (void)cb, (void)ctx;
    deep_die("nobody asks for prices here");
}

void pricing_cancel(UNUSED struct pricing_call *call)
{
}

bool pricing_covers(const char *region)
{
    (void)region;
    return true;
}

const char *pricing_region(const char *region)
{
    return region;
}

struct event_queue_call *event_queue_receive(struct aws_client *c, struct aws_gate gate,
                                             const char *url, int most, event_queue_receive_cb cb,
                                             void *ctx)
{
    (void)c, (void)gate, (void)url, (void)most, (void)cb, (void)ctx;
    no_handler();
    return NULL;
}

struct event_queue_call *event_queue_delete(struct aws_client *c, struct aws_gate gate,
                                            const char *url, char *const *receipts, size_t n,
                                            event_queue_delete_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)url, (void)receipts, (void)n, (void)cb, (void)ctx;
    no_handler();
    return NULL;
}

struct event_queue_call *event_queue_look(struct aws_client *c, struct aws_gate gate,
                                          const char *url, event_queue_look_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)url, (void)cb, (void)ctx;
    no_handler();
    return NULL;
}

void event_queue_cancel(struct event_queue_call *call)
{
    (void)call;
}
