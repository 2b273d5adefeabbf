/* Requests in flight: a droverd's loop connects, signs and sends, and checks its lease before
 * each step. A request arrives at AWS even if its sender has died; the answer comes in time,
 * late, or never. */
#include "aws/call_rates.h"
#include "common/clock.h"
#include "deep_calls_private.h"
#include <stdio.h>

#define TIMEOUT_US (30 * SEC)

static const char *const kind_words[] = {"Create", "Describe", "List",    "Stop",    "Update",
                                         "Quotas", "s3 get",   "s3 head", "s3 list", "s3 page",
                                         "logs",   "job log",  "Tag",     "other"};

bool __wrap_aws_client_new(struct loop *l, const struct aws_config *cfg, struct aws_client **ret,
                           struct err *err)
{
    (void)cfg;
    (void)err;
    *ret = xcalloc(1, sizeof **ret);
    (*ret)->p = deep->cur;
    (*ret)->l = l;
    return true;
}

void __wrap_aws_client_set_gate(struct aws_client *c, bool (*may_send)(void *ctx), void *ctx)
{
    c->may_send = may_send;
    c->ctx = ctx;
}

/* The rates of calls: AWS' own limits are not played here, so nothing is held. */
struct call_rates *call_rates_new(void)
{
    return NULL;
}

void call_rates_free(struct call_rates *r)
{
    (void)r;
}

void call_rates_attach(struct call_rates *r, struct aws_client *c)
{
    (void)r;
    (void)c;
}

int64_t call_rates_held_n(const struct call_rates *r)
{
    (void)r;
    return 0;
}

int64_t __wrap_aws_client_skew_us(const struct aws_client *c)
{
    return c->skew_us;
}

uint64_t __wrap_aws_client_answers(const struct aws_client *c)
{
    return c->answers;
}

static void fail(struct sagemaker_call *k, enum aws_outcome o, int status, const char *code)
{
    k->failed = true;
    k->not_found = false;
    k->failure = (struct aws_failure){.outcome = o, .status = status};
    (void)snprintf(k->failure.code, sizeof k->failure.code, "%s", code);
    (void)snprintf(k->failure.message, sizeof k->failure.message, "%s", code);
}

static void give_s3(struct sagemaker_call *k)
{
    if (k->failed) {
        k->s3 = (struct s3_result){.outcome = k->failure.outcome, .status = k->failure.status};
        (void)err_set(&k->s3.err, ERR_AWS, "%s", k->failure.code);
    }
    k->cb.s3(k->ctx, &k->s3);
}

static void give(struct sagemaker_call *k)
{
    const struct aws_failure *f = k->failed ? &k->failure : NULL;
    switch (k->kind) {
    case CREATE:
        k->cb.create(k->ctx, k->failed ? NULL : k->arn, f);
        return;
    case DESCRIBE:
        k->cb.describe(k->ctx, f == NULL && !k->not_found ? &k->job : NULL, k->not_found, f);
        return;
    case LIST:
        k->cb.list(k->ctx, k->jobs, k->failed ? 0 : k->jobs_n, k->failed ? "" : k->arn, f);
        return;
    case STOP:
        k->cb.stop(k->ctx, k->flag, k->not_found, f);
        return;
    case UPDATE:
        k->cb.update(k->ctx, k->flag, k->not_found, f);
        return;
    case QUOTAS:
        k->cb.quotas(k->ctx, k->failed ? NULL : &k->reading, f);
        return;
    case S3_GET:
    case S3_HEAD:
    case S3_LIST:
    case S3_PAGE:
        give_s3(k);
        return;
    case LOGS:
        k->cb.logs(k->ctx, STR(""), f);
        return;
    case JOB_LOG: {
        const struct log_line said = {.host = STR("algo-1"),
                                      .text = STR("OSError: [Errno 28] No space left on device")};
        k->cb.job_log(k->ctx, &said, k->failed || strlen(k->name) % 2 == 0 ? 0 : 1, f);
        return;
    }
    case TAG:
        k->cb.tag(k->ctx, k->failed ? NULL : k->arn, f);
        return;
    case OTHER:
        k->other->give(k->ctx, f);
        return;
    }
}

static void close_call(struct sagemaker_call *k)
{
    k->done = true;
    for (struct sagemaker_call **at = &k->client->open; *at != NULL; at = &(*at)->next) {
        if (*at == k) {
            *at = k->next;
            break;
        }
    }
}

static void deliver(void *ctx)
{
    struct sagemaker_call *k = ctx;
    if (!k->done) {
        if (k->date != 0) {
            clocks_learn(&k->client->skew_us, k->date, false);
            k->client->answers++;
        }
        close_call(k);
        give(k);
    }
}

void __wrap_aws_client_free(struct aws_client *c)
{
    while (c != NULL && c->open != NULL) {
        struct sagemaker_call *k = c->open;
        fail(k, AWS_UNKNOWN, 0, "client is gone");
        deliver(k);
    }
}

void calls_proc_gone(struct proc *p)
{
    (void)p; /* its calls know it by the count of its lives */
}

static bool alive(const struct sagemaker_call *k)
{
    return k->p->up && k->p->life == k->life;
}

static void reply(void *ctx, int64_t arg)
{
    struct sagemaker_call *k = ctx;
    (void)arg;
    if (alive(k) && !k->done) {
        loop_post(k->client->l, deliver, k);
    }
}

static void reply_after(struct sagemaker_call *k, int64_t us)
{
    if (!k->answered) {
        k->answered = true;
        event_at(deep->now_us + us, reply, k, 0);
    }
}

static bool is_s3(const struct sagemaker_call *k)
{
    return k->kind >= S3_GET && k->kind <= S3_PAGE;
}

/* Refused on the way in: nothing has happened. */
static bool refused_outright(struct sagemaker_call *k)
{
    if (is_s3(k)) {
        if (fault(FAULT_S3_BROKEN)) {
            fail(k, AWS_UNKNOWN, 503, "ServiceUnavailable");
        } else if (outputs_refuse(k->uri.key)) {
            fail(k, AWS_REFUSED, 403, "AccessDenied");
        } else if (k->kind == S3_PAGE && listing_happens(0.6)) {
            fail(k, AWS_THROTTLED, 503, "SlowDown");
        }
        return k->failed;
    }
    if (k->kind == QUOTAS && fault(FAULT_QUOTAS_UNREADABLE)) {
        fail(k, AWS_REFUSED, 400, "AccessDeniedException");
    } else if (fault(FAULT_THROTTLE)) {
        fail(k, AWS_THROTTLED, 400, "ThrottlingException");
    } else if (fault(FAULT_BROKEN)) {
        fail(k, AWS_UNKNOWN, 500, "InternalFailure");
    } else if (fault(FAULT_CREDENTIALS)) {
        fail(k, AWS_CREDENTIALS, 403, "ExpiredTokenException");
    }
    return k->failed;
}

static void effect_job(struct sagemaker_call *k)
{
    struct job *j = job_find(k->name);
    bool young = j != NULL && wall_now() - j->created < 20 * SEC;
    if (k->kind == TAG) {
        const char *owner = j != NULL ? j->install : hosting_owner(k->name);
        (void)snprintf(k->arn, sizeof k->arn, "%s", owner != NULL ? owner : "");
    } else if (j == NULL || (k->kind == DESCRIBE && young && fault(FAULT_DESCRIBE_BLIND))) {
        k->not_found = true;
    } else if (k->kind == DESCRIBE) {
        aws_describe(j, fault(FAULT_STALE), &k->job);
        silence_take(&k->job);
    } else if (k->kind == STOP) {
        k->flag = j->over;
        judge_stop_sent(j);
        j->our_stop |= !j->over;
        job_stop(j);
    } else {
        k->flag = !job_end_pool(j);
    }
}

static void effect(struct sagemaker_call *k)
{
    switch (k->kind) {
    case CREATE:
        k->failed = !lies_create(k->body, k->signed_us, k->arn, &k->failure);
        return;
    case DESCRIBE:
    case STOP:
    case UPDATE:
    case TAG:
        effect_job(k);
        return;
    case LIST:
        k->jobs = world_alloc((JOB_LIST_PAGE + 1) * sizeof *k->jobs);
        k->jobs_n = aws_list(&k->list, k->name, k->jobs, k->arn);
        return;
    case QUOTAS:
        aws_quotas(&k->reading);
        return;
    case S3_GET:
    case S3_HEAD:
        s3_answer(&k->uri, k->kind == S3_GET, &k->s3);
        return;
    case S3_LIST:
        s3_answer_list(&k->uri, &k->s3);
        return;
    case S3_PAGE:
        listing_page(&k->uri, k->page_after, k->page_token, &k->s3);
        return;
    case OTHER:
        k->failure = (struct aws_failure){0};
        k->other->effect(k->ctx, k->signed_us, &k->failure);
        k->failed = k->failure.code[0] != '\0';
        return;
    case LOGS:
    case JOB_LOG:
        return;
    }
}

static const char *word_of(const struct sagemaker_call *k)
{
    return k->kind == OTHER ? k->other->word : kind_words[k->kind];
}

static void say(const struct sagemaker_call *k, const char *how)
{
    if (!is_s3(k) && k->kind != LIST) {
        trace("%s %s: %s%s%s", word_of(k), k->name, how, k->failed ? " " : "",
              k->failed      ? k->failure.code
              : k->not_found ? " not found"
                             : "");
    }
}

static void connect_call(void *ctx, int64_t arg);

/* In the loop of its droverd: signed once more, by AWS's clock. */
static void sign_again(void *ctx)
{
    struct sagemaker_call *k = ctx;
    clocks_learn(&k->client->skew_us, k->date, true);
    connect_call(k, 0);
}

static void hear_date(void *ctx, UNUSED int64_t arg)
{
    struct sagemaker_call *k = ctx;
    if (alive(k) && !k->done) {
        loop_post(k->client->l, sign_again, k);
    }
}

static void date_refused(struct sagemaker_call *k, bool late, int64_t way_us)
{
    k->date = aws_time(wall_now());
    if (late) {
        say(k, "comes late, and its date is refused");
    } else if (k->again) {
        fail(k, AWS_CREDENTIALS, 403, "InvalidSignatureException");
        say(k, "answered");
        reply_after(k, way_us);
    } else {
        k->again = true;
        say(k, "is refused for its date");
        event_at(deep->now_us + way_us, hear_date, k, 0);
    }
}

/* arg 1: it comes late, after its sender has given it up. */
static void arrive(void *ctx, int64_t late)
{
    struct sagemaker_call *k = ctx;
    struct rng *r = &deep->rng_aws;
    int64_t way_us = fault(FAULT_SLOW_CALL) ? between(r, 1, 20) * SEC : between(r, 1000, 60000);
    if (late == 0 && deep->now_us < deep->outage_until_us) {
        fail(k, AWS_UNKNOWN, 0, "timed out");
        reply_after(k, rng_chance(r, 0.5) ? TIMEOUT_US : way_us);
        return;
    }
    bool makes = k->kind == OTHER && k->other->makes;
    if (late == 0 && fault(makes ? FAULT_LATE_MADE : FAULT_LATE)) {
        int64_t most_s = makes ? 800 : 120; /* within the window of its signature */
        event_at(deep->now_us + TIMEOUT_US + between(r, 1, most_s) * SEC, arrive, k, 1);
        fail(k, AWS_UNKNOWN, 0, "timed out");
        say(k, "is on its way for long");
        reply_after(k, TIMEOUT_US);
        return;
    }
    if (clocks_date_refused(k->dated)) {
        date_refused(k, late != 0, way_us);
        return;
    }
    if (late != 0) { /* of what it does nobody hears */
        struct sagemaker_call *alone = world_alloc(sizeof *alone);
        *alone = *k;
        alone->failed = false;
        effect(alone);
        say(alone, "arrives late");
        return;
    }
    if (!refused_outright(k)) {
        effect(k);
        if (fault(FAULT_REPLY_LOST)) {
            say(k, "has its effect, the reply is lost");
            fail(k, AWS_UNKNOWN, 0, "connection reset");
        }
    }
    k->date = k->failed && k->failure.status == 0 ? 0 : aws_time(wall_now());
    say(k, "answered");
    reply_after(k, way_us);
}

static bool may_send(const struct sagemaker_call *k)
{
    return (k->gate.may_send == NULL || k->gate.may_send(k->gate.ctx)) &&
           (k->client->may_send == NULL || k->client->may_send(k->client->ctx));
}

/* In the loop of its droverd: the connection stands. */
static void connected(void *ctx)
{
    struct sagemaker_call *k = ctx;
    if (k->done) {
        return;
    }
    bool go = may_send(k);
    k->signed_us = wall_now();
    k->dated = clock_wall_us() + k->client->skew_us;
    if (go) {
        proc_step(word_of(k)); /* signed: it may be frozen or die right here */
        if (fault(FAULT_FREEZE_SIGNED)) {
            proc_freeze_here(word_of(k));
        }
    }
    if (!go || !may_send(k) || fault(FAULT_UNSENT)) {
        fail(k, AWS_UNSENT, 0, "not sent");
        say(k, "is not sent");
        k->answered = true;
        loop_post(k->client->l, deliver, k);
        return;
    }
    if (k->client->may_send != NULL) { /* else anybody may ask, as the bridge does */
        lease_sends(k->p, word_of(k), k->name);
    }
    event_at(deep->now_us + between(&deep->rng_aws, 1000, 40000), arrive, k, 0);
}

static void connect_call(void *ctx, UNUSED int64_t arg)
{
    struct sagemaker_call *k = ctx;
    if (alive(k) && !k->done) {
        loop_post(k->client->l, connected, k);
    }
}

struct sagemaker_call *call_new(struct aws_client *c, enum call_kind kind, void *ctx)
{
    struct sagemaker_call *k = world_alloc(sizeof *k);
    k->kind = kind; /* the rest, much of which no call touches, is zero: new memory */
    k->client = c;
    k->p = c->p;
    k->life = c->p->life;
    k->ctx = ctx;
    k->next = c->open;
    c->open = k;
    event_at(deep->now_us + between(&deep->rng_aws, 500, 20000), connect_call, k, 0);
    return k;
}

struct sagemaker_call *call_named(struct aws_client *c, struct aws_gate gate, enum call_kind kind,
                                  const char *name, void *ctx)
{
    struct sagemaker_call *k = call_new(c, kind, ctx);
    k->gate = gate;
    (void)snprintf(k->name, sizeof k->name, "%s", name);
    return k;
}

struct sagemaker_call *call_other(struct aws_client *c, struct aws_gate gate,
                                  const struct call_kind_of *kind, const char *name, void *x)
{
    struct sagemaker_call *k = call_named(c, gate, OTHER, name, x);
    k->other = kind;
    return k;
}

void call_cancel(void *call)
{
    sagemaker_cancel(call);
}

const char *__wrap_aws_client_region(UNUSED const struct aws_client *c)
{
    return "us-east-1";
}

void sagemaker_cancel(struct sagemaker_call *call)
{
    if (call != NULL) {
        close_call(call);
    }
}
