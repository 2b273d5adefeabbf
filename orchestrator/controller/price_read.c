/* See price_read.h. */
#include "price_read.h"
#include "common/json.h"
#include "common/log.h"
#include "core/leader/price_pace.h"
#include "lease.h"
#include "metrics.h"
#include "prices.h"
#include "store/leader/quotas.h"

static bool read_age(struct controller *c, void *arg, struct err *err)
{
    return store_price_list_age(c->store, arg, err);
}

void price_read_lead(struct controller *c)
{
    int64_t every_us = c->cfg.price_interval_us;
    int64_t age_us = -1;
    c->price_failures = 0;
    if (every_us > 0 && c->leading && !pricing_covers(aws_client_region(c->aws))) {
        if (log_allow("prices_not_listed")) {
            log_event(LOG_WARN, "prices_not_listed", LF_S("region", aws_client_region(c->aws)),
                      LF_S("do", "name the prices in prices_file: the list has those of AWS' "
                                 "commercial regions, in USD"));
        }
        return;
    }
    if (every_us > 0 && c->leading) {
        (void)leader_tx(c, read_age, &age_us); /* else it is read once more */
        loop_timer_set(c->price_timer, price_pace_first_us(every_us, age_us));
    }
}

static void failed(struct controller *c, const struct aws_failure *f)
{
    int64_t again_us = price_pace_failed_us(c->cfg.price_interval_us, &c->price_failures);
    metric_add(METRIC_AWS_ERRORS, 1);
    metric_add(METRIC_PRICE_FAILURES, 1);
    if (log_allow("pricing_failed")) {
        log_event(LOG_WARN, "pricing_failed", LF_S("code", f->code), LF_I("status", f->status),
                  LF_S("text", f->message), LF_I("again_us", again_us),
                  LF_S("do", "allow pricing:GetProducts, or name the prices in prices_file"));
    }
    loop_timer_set(c->price_timer, again_us);
}

/* {"ml.m5.large": 115000}; the caller frees. */
static char *listed_text(const struct price_reading *r)
{
    AUTO_JSON json_t *o = json_object();
    for (size_t i = 0; i < r->n; i++) {
        (void)json_object_set_new(o, r->list[i].key, json_integer(r->list[i].musd));
    }
    return json_text(o);
}

static void on_prices(void *ctx, const struct price_reading *r, const struct aws_failure *f)
{
    struct controller *c = ctx;
    c->pricing = NULL;
    if (f != NULL) {
        failed(c, f);
        return;
    }
    c->price_failures = 0;
    metric_set(METRIC_PRICES_LISTED, (int64_t)r->n);
    log_event(LOG_INFO, "prices_listed", LF_I("prices", (int64_t)r->n),
              LF_I("products", (int64_t)r->products), LF_I("unreadable", (int64_t)r->unreadable));
    free(c->prices_listed);
    c->prices_listed = listed_text(r);
    loop_timer_set(c->price_timer, c->cfg.price_interval_us);
}

void price_read_start(struct controller *c)
{
    if (c->leading && c->pricing == NULL) {
        metric_add(METRIC_AWS_REQUESTS, 1);
        c->pricing =
            pricing_read(c->aws_pricing, lease_gate(c), aws_client_region(c->aws), on_prices, c);
    }
}

static bool store_listed(struct controller *c, void *arg, struct err *err)
{
    return store_price_list_put(c->store, arg, err) && prices_use_list(c, err);
}

void price_read_tick(struct controller *c)
{
    AUTO_FREE char *listed = TAKE(c->prices_listed);
    if (listed != NULL && (!leader_tx(c, store_listed, listed) || !prices_reread(c)) &&
        c->leading) {
        loop_timer_set(c->price_timer, price_pace_unwritten_us());
    }
}

void price_read_cancel(struct controller *c)
{
    pricing_cancel(TAKE(c->pricing));
    free(TAKE(c->prices_listed));
}
