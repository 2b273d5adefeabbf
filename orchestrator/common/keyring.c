/* Credentials that stay valid: see keyring.h. */
#include "keyring.h"
#include "common/clock.h"
#include "common/http.h"
#include "common/log.h"
#include "common/retry.h"
#include "creds_fetch.h"

#define KEYRING_WINDOW_US  (900 * USEC_PER_SEC)
#define KEYRING_REFUSED_US USEC_PER_SEC
/* A metadata service that hands out expired keys is having trouble: AWS asks to wait. */
#define KEYRING_STALE_US (300 * USEC_PER_SEC)

struct keyring {
    int refs;
    struct loop *l;
    struct http *http; /* NULL until the first renewal */
    char *region;
    struct aws_creds creds;
    bool renews;
    bool metadata; /* from a metadata service, as they are */
    bool stale;    /* it gave out keys that had expired already: they are used all the same */
    struct creds_fetch *fetch;
    struct loop_timer *timer;
    int failures;
    int64_t asked_us; /* monotonic: when the last renewal began */
    int64_t skew_us;
    struct rng rng;
    struct err why; /* the last renewal's failure; ERR_NONE: it succeeded */
};

static const struct retry_policy policy = {
    .base_us = USEC_PER_SEC, .cap_us = 60 * USEC_PER_SEC, .floor_us = 250 * USEC_PER_MSEC};

int64_t keyring_renew_after_us(int64_t left_us, double r)
{
    int64_t us = MAX(left_us - KEYRING_WINDOW_US, left_us / 2);
    return us - (int64_t)((double)us * 0.1 * r);
}

static usec_t now(const struct keyring *k)
{
    return clock_wall_us() + k->skew_us;
}

static void schedule(struct keyring *k)
{
    if (k->creds.expires == USEC_NEVER) {
        loop_timer_set(k->timer, -1);
        return;
    }
    int64_t left_us = k->creds.expires - now(k);
    double r = rng_unit(&k->rng);
    int64_t after_us = left_us > 0 ? keyring_renew_after_us(left_us, r)
                                   : KEYRING_STALE_US + (int64_t)((double)KEYRING_STALE_US * r);
    loop_timer_set(k->timer, after_us);
}

static void take(struct keyring *k, const struct aws_creds *c)
{
    k->creds = *c;
    k->stale = k->metadata && c->expires <= now(k);
    k->failures = 0;
    err_clear(&k->why);
    schedule(k);
}

static bool is_usable(const struct keyring *k)
{
    return k->creds.expires > now(k) || k->stale;
}

static void failed(struct keyring *k, const struct err *err)
{
    k->why = *err;
    if (log_allow("credentials_not_renewed")) {
        log_event(LOG_WARN, "credentials_not_renewed", LF_ERR(err), LF_B("usable", is_usable(k)));
    }
    if (k->renews) {
        loop_timer_set(k->timer, retry_delay_us(&policy, k->failures, &k->rng));
    }
    k->failures += k->failures < 16;
}

static void on_fetched(void *ctx, const struct aws_creds *c, const struct err *err)
{
    struct keyring *k = ctx;
    k->fetch = NULL;
    if (c == NULL) {
        failed(k, err);
    } else {
        take(k, c);
        log_event(LOG_INFO, "credentials_renewed",
                  LF_I("seconds_left",
                       c->expires == USEC_NEVER ? -1 : (c->expires - now(k)) / USEC_PER_SEC));
    }
}

/* True: *plan needs no request, its keys are in *k already. */
static bool take_fixed(struct keyring *k, struct creds_plan *plan)
{
    k->renews = creds_plan_renews(plan);
    k->metadata =
        plan->roles_n == 0 && (plan->source == CREDS_INSTANCE || plan->source == CREDS_CONTAINER);
    if (!k->renews) {
        take(k, &plan->keys);
        creds_plan_done(plan);
    }
    return !k->renews;
}

static void renew(struct keyring *k)
{
    struct creds_plan plan;
    struct err err = ERR_INIT;
    if (k->fetch != NULL) {
        return;
    }
    k->asked_us = clock_mono_us();
    if (!creds_plan_make(&plan, &err)) {
        failed(k, &err);
    } else if (!take_fixed(k, &plan)) {
        if (k->http == NULL && !http_new(k->l, &k->http, &err)) {
            creds_plan_done(&plan);
            failed(k, &err);
            return;
        }
        k->fetch = creds_fetch_start(k->l, k->http, &plan, k->region, k->skew_us, on_fetched, k);
    }
}

static void on_timer(void *ctx)
{
    renew(ctx);
}

struct first { /* the fetch at the start */
    struct aws_creds creds;
    struct err err;
    bool done, ok;
};

static void on_first(void *ctx, const struct aws_creds *c, const struct err *err)
{
    struct first *w = ctx;
    w->done = true;
    w->ok = c != NULL;
    if (c != NULL) {
        w->creds = *c;
    } else {
        w->err = *err;
    }
}

/* A loop of its own: nothing else of the program may run meanwhile. */
static bool fetch_first(struct keyring *k, struct creds_plan *plan, struct err *err)
{
    struct loop *l = NULL;
    struct http *h = NULL;
    struct first w = {.done = false};
    bool ok = loop_new(&l, err) && http_new(l, &h, err);
    if (ok) {
        (void)creds_fetch_start(l, h, plan, k->region, 0, on_first, &w);
        while (!w.done) {
            loop_run_once(l, -1);
        }
        ok = w.ok;
        if (ok) {
            take(k, &w.creds);
        } else if (err != NULL) {
            *err = w.err;
        }
    }
    creds_plan_done(plan);
    explicit_bzero(&w.creds, sizeof w.creds);
    http_free(h);
    loop_free(l);
    return ok;
}

bool keyring_new(struct loop *l, const char *region, struct keyring **ret, struct err *err)
{
    struct creds_plan plan;
    uint64_t seed;
    if (!creds_plan_make(&plan, err)) {
        return false;
    }
    struct keyring *k = xcalloc(1, sizeof *k);
    *k = (struct keyring){.refs = 1, .l = l, .region = xstrdup(region)};
    rng_secret(&seed, sizeof seed);
    rng_seed(&k->rng, seed);
    k->timer = loop_timer_new(l, on_timer, k);
    k->asked_us = clock_mono_us();
    if (!take_fixed(k, &plan) && !fetch_first(k, &plan, err)) {
        keyring_unref(k);
        return false;
    }
    *ret = k;
    return true;
}

struct keyring *keyring_ref(struct keyring *k)
{
    k->refs++;
    return k;
}

void keyring_unref(struct keyring *k)
{
    if (k == NULL || --k->refs > 0) {
        return;
    }
    creds_fetch_cancel(k->fetch);
    http_free(k->http);
    loop_timer_free(k->timer);
    free(k->region);
    explicit_bzero(k, sizeof *k);
    free(k);
}

const struct aws_creds *keyring_get(struct keyring *k, struct err *err)
{
    if (is_usable(k)) {
        return &k->creds;
    }
    /* The loop may not have run for long: its timer is late. */
    if (k->fetch == NULL && k->failures == 0) {
        renew(k);
    }
    if (is_usable(k)) {
        return &k->creds;
    }
    (void)err_set(err, ERR_UNAUTHENTICATED, "the AWS credentials have expired%s%.600s",
                  k->why.code != ERR_NONE ? ": " : "", k->why.message);
    return NULL;
}

void keyring_refused(struct keyring *k)
{
    if (clock_mono_us() - k->asked_us >= KEYRING_REFUSED_US) {
        renew(k);
    }
}

bool keyring_is_renewing(const struct keyring *k)
{
    return k->fetch != NULL;
}

bool keyring_renews(const struct keyring *k)
{
    return k->renews;
}

int64_t keyring_skew_us(const struct keyring *k)
{
    return k->skew_us;
}

void keyring_set_skew(struct keyring *k, int64_t skew_us)
{
    k->skew_us = skew_us;
}
