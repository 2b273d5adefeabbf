/* A token bucket per operation: see rates.h. */
#include "rates.h"
#include "common/clock.h"

bool rates_init(struct rates *r, const struct local_settings *set, struct err *err)
{
    const char *op;
    json_t *v;
    *r = (struct rates){0};
    json_object_foreach(set->rates, op, v)
    {
        if (r->n == RATES_MAX) {
            return err_set(err, ERR_LIMIT, "more than %d entries in 'rates'", RATES_MAX);
        }
        double rate = json_number_value(v);
        const json_t *b = json_object_get(set->bursts, op);
        double burst = b != NULL ? json_number_value(b) : MAX(2.0, rate);
        if (rate <= 0.0 || rate > 1e6 || burst < 1.0 || burst > 1e6) {
            return err_set(err, ERR_INVALID, "rate of '%s' is out of range", op);
        }
        struct rate *it = &r->items[r->n++];
        it->operation = op;
        token_bucket_init(&it->bucket, rate, burst, clock_mono_us());
    }
    return true;
}

bool rates_allow(struct rates *r, const char *operation)
{
    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->items[i].operation, operation) == 0) {
            return token_bucket_take(&r->items[i].bucket, clock_mono_us());
        }
    }
    return true;
}
