/* See quota_limits.h. */
#include "quota_limits.h"

static size_t moved(struct leader_state *s, const struct quota_value *v, size_t n,
                    enum market market, bool warm, struct quota_limit_write *ret)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        const struct quota_ledger *l = &leader_state_slots(s, v[i].instance_type, market)->s;
        if ((warm ? l->warm_quota : l->quota) != v[i].limit) {
            ret[m++] = (struct quota_limit_write){v[i].instance_type, market, warm, v[i].limit};
        }
    }
    return m;
}

size_t leader_plan_quotas(struct leader_state *s, const struct quota_reading *r,
                          struct quota_limit_write *ret)
{
    size_t n = moved(s, r->training, r->training_n, MARKET_ON_DEMAND, false, ret);
    n += moved(s, r->spot, r->spot_n, MARKET_SPOT, false, ret + n);
    return n + moved(s, r->warm, r->warm_n, MARKET_ON_DEMAND, true, ret + n);
}

/* What could not be read is as it was known. */
static void account_quotas_of(const struct quota_reading *r,
                              const int64_t kept[static ACCOUNT_QUOTA_COUNT],
                              int64_t ret[static ACCOUNT_QUOTA_COUNT])
{
    ret[ACCOUNT_INSTANCES] = r->total;
    ret[ACCOUNT_SPOT_INSTANCES] = r->spot_total;
    ret[ACCOUNT_PER_JOB] = r->instances_max;
    ret[ACCOUNT_RUN_S] = r->runtime_max_s;
    ret[ACCOUNT_VOLUME_GB] = r->volume_max_gib;
    ret[ACCOUNT_KEEP_ALIVE_S] = r->keep_alive_s;
    for (int k = 0; k < ACCOUNT_QUOTA_COUNT; k++) {
        ret[k] = ret[k] < 0 && !r->whole ? kept[k] : ret[k];
    }
}

int leader_plan_account_quotas(const struct quota_reading *r,
                               const int64_t kept[static ACCOUNT_QUOTA_COUNT],
                               struct account_quota_write ret[static ACCOUNT_QUOTA_COUNT])
{
    int64_t read[ACCOUNT_QUOTA_COUNT];
    int n = 0;
    account_quotas_of(r, kept, read);
    for (int k = 0; k < ACCOUNT_QUOTA_COUNT; k++) {
        if (read[k] != kept[k]) {
            ret[n++] = (struct account_quota_write){(enum account_quota)k, read[k]};
        }
    }
    return n;
}

void leader_kept_account_quotas(struct leader_state *s,
                                const int64_t kept[static ACCOUNT_QUOTA_COUNT])
{
    s->account.total[MARKET_ON_DEMAND].limit = kept[ACCOUNT_INSTANCES];
    s->account.total[MARKET_SPOT].limit = kept[ACCOUNT_SPOT_INSTANCES];
    s->account.per_job = kept[ACCOUNT_PER_JOB];
    s->account.longest_run_s = kept[ACCOUNT_RUN_S];
    s->account.volume_gb = kept[ACCOUNT_VOLUME_GB];
    s->keep_alive_max_s = kept[ACCOUNT_KEEP_ALIVE_S];
}

void leader_apply_quotas(struct leader_state *s, const struct quota_reading *r)
{
    int64_t account[ACCOUNT_QUOTA_COUNT];
    const int64_t known[ACCOUNT_QUOTA_COUNT] = {
        [ACCOUNT_INSTANCES] = s->account.total[MARKET_ON_DEMAND].limit,
        [ACCOUNT_SPOT_INSTANCES] = s->account.total[MARKET_SPOT].limit,
        [ACCOUNT_PER_JOB] = s->account.per_job,
        [ACCOUNT_RUN_S] = s->account.longest_run_s,
        [ACCOUNT_VOLUME_GB] = s->account.volume_gb,
        [ACCOUNT_KEEP_ALIVE_S] = s->keep_alive_max_s};
    for (size_t i = 0; i < r->training_n; i++) {
        quota_ledger_quota_read(
            &leader_state_slots(s, r->training[i].instance_type, MARKET_ON_DEMAND)->s,
            r->training[i].limit);
    }
    for (size_t i = 0; i < r->spot_n; i++) {
        quota_ledger_quota_read(&leader_state_slots(s, r->spot[i].instance_type, MARKET_SPOT)->s,
                                r->spot[i].limit);
    }
    for (size_t i = 0; i < r->warm_n; i++) {
        leader_state_slots(s, r->warm[i].instance_type, MARKET_ON_DEMAND)->s.warm_quota =
            r->warm[i].limit;
    }
    account_quotas_of(r, known, account);
    leader_kept_account_quotas(s, account);
    s->decide = true;
}

int64_t leader_quotas_again_us(const struct leader_state *s, int64_t interval_us)
{
    return leader_quotas_known(s) ? -1 : MIN(interval_us, USEC_PER_SEC);
}

int64_t leader_quotas_write_us(int64_t now_us)
{
    return now_us + USEC_PER_SEC;
}

bool leader_quotas_known(const struct leader_state *s)
{
    for (size_t i = 0; i < s->slots_n; i++) {
        if (s->slots[i].s.quota >= 0) {
            return true;
        }
    }
    return false;
}
