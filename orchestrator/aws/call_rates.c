/* See call_rates.h. */
#include "call_rates.h"
#include "common/clock.h"
#include "core/capacity/call_rate.h"
#include "json_call.h"

struct call_rates {
    struct call_rate of[AWS_OPERATION_COUNT];
    int64_t held_n;
};

struct call_rates *call_rates_new(void)
{
    struct call_rates *r = xcalloc(1, sizeof *r);
    for (int op = 0; op < AWS_OPERATION_COUNT; op++) {
        call_rate_init(&r->of[op], aws_operation_info((enum aws_operation)op)->rate_per_minute);
    }
    return r;
}

void call_rates_free(struct call_rates *r)
{
    free(r);
}

/* NULL: not of this table, or not held here. */
static struct call_rate *rate_of(struct call_rates *r, const char *operation)
{
    for (int op = 0; op < AWS_OPERATION_COUNT; op++) {
        if (strcmp(aws_operation_info((enum aws_operation)op)->name, operation) == 0) {
            return op != AWS_OP_CreateTrainingJob ? &r->of[op] : NULL;
        }
    }
    return NULL;
}

static int64_t take(void *ctx, const char *operation, int64_t most_us)
{
    struct call_rates *r = ctx;
    struct call_rate *rate = rate_of(r, operation);
    int64_t wait_us = rate != NULL ? call_rate_take(rate, most_us, clock_mono_us()) : 0;
    r->held_n += wait_us > 0;
    return wait_us;
}

static void answered(void *ctx, const char *operation, int64_t sent_us, const struct aws_reply *a)
{
    struct call_rate *rate = rate_of(ctx, operation);
    if (rate == NULL) {
        return;
    }
    if (a->outcome == AWS_THROTTLED) {
        call_rate_throttled(rate, sent_us, a->retry_after_us, clock_mono_us());
    } else {
        call_rate_answered(rate, sent_us);
    }
}

void call_rates_attach(struct call_rates *r, struct aws_client *c)
{
    aws_client_set_pace(c, &(struct aws_pace){take, answered, r});
}

int64_t call_rates_held_n(const struct call_rates *r)
{
    return r->held_n;
}
