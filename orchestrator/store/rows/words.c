/* Names used in tables; see words.h. */
#include "words.h"
#include "common/str.h"

const char *account_quota_word(enum account_quota q)
{
    static const char *const words[ACCOUNT_QUOTA_COUNT] = {
        [ACCOUNT_INSTANCES] = "instances",       [ACCOUNT_SPOT_INSTANCES] = "spot_instances",
        [ACCOUNT_PER_JOB] = "instances_per_job", [ACCOUNT_RUN_S] = "run_seconds",
        [ACCOUNT_VOLUME_GB] = "volume_gb",       [ACCOUNT_KEEP_ALIVE_S] = "keep_alive_seconds"};
    ASSERT((unsigned)q < ACCOUNT_QUOTA_COUNT);
    return words[q];
}

bool warn_at_read(const char *text, struct warn_at *warn)
{
    struct str rest = str_of(text);
    warn->n = 0;
    while (rest.n > 0) {
        const char *comma = memchr(rest.p, ',', rest.n);
        size_t n = comma != NULL ? (size_t)(comma - rest.p) : rest.n;
        if (warn->n == WARN_AT_MAX ||
            !parse_i64((struct str){rest.p, n}, 0, INT64_MAX, &warn->at_ppm[warn->n], NULL)) {
            return false;
        }
        warn->n++;
        n += comma != NULL ? 1 : 0;
        rest = (struct str){rest.p + n, rest.n - n};
    }
    return true;
}
