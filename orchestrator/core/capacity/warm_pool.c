/* Warm pools: the fingerprint of what SageMaker compares, keep-alive by break-even, and when a pool
 * is ended. */
#include "warm_pool.h"
#include "common/hash.h"
#include "core/money/cost.h"

/* Each field is preceded by its length, so two different lists of fields never give the same
 * bytes. */
static void add_number(struct sha256 *h, int64_t n)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)((uint64_t)n >> (8 * i));
    }
    sha256_add(h, bytes, sizeof bytes);
}

static void add_text(struct sha256 *h, const char *s)
{
    size_t n = s == NULL ? 0 : strlen(s);
    add_number(h, s == NULL ? -1 : (int64_t)n);
    sha256_add(h, s == NULL ? "" : s, n);
}

static void add_texts(struct sha256 *h, const char *const *s, int n)
{
    add_number(h, n);
    for (int i = 0; i < n; i++) {
        add_text(h, s[i]);
    }
}

uint64_t warm_pool_fingerprint(const struct warm_pool_match *m)
{
    struct sha256 h;
    uint8_t digest[32];
    sha256_init(&h);
    add_text(&h, m->role);
    add_text(&h, m->instance_type);
    add_text(&h, m->volume_kms_key);
    add_number(&h, m->instance_count);
    add_number(&h, m->volume_gb);
    add_texts(&h, m->subnets, m->subnets_n);
    add_texts(&h, m->security_groups, m->security_groups_n);
    add_number(&h, m->encrypt_traffic);
    add_number(&h, m->network_isolation);
    add_number(&h, m->session_chaining);
    sha256_end(&h, digest);
    uint64_t fingerprint = 0;
    for (size_t i = 0; i < sizeof fingerprint; i++) {
        fingerprint = fingerprint << 8 | digest[i];
    }
    return fingerprint == 0 ? 1 : fingerprint;
}

uint64_t warm_pool_fingerprint_of(const struct spec_stage *stage, int instance_type_i,
                                  int volume_gb, int subnet_i)
{
    ASSERT(instance_type_i >= 0 && instance_type_i < stage->instance_type_n);
    ASSERT(subnet_i >= -1 && subnet_i < stage->subnets_n);
    if (stage->spot) {
        return 0;
    }
    const struct warm_pool_match m = {
        .role = stage->role,
        .instance_type = stage->instance_type[instance_type_i],
        .instance_count = stage->instance_count,
        .volume_gb = volume_gb,
        .subnets = subnet_i >= 0 ? &stage->subnets[subnet_i] : stage->subnets,
        .subnets_n = subnet_i >= 0 ? 1 : stage->subnets_n,
        .security_groups = stage->security_groups,
        .security_groups_n = stage->security_groups_n,
        .network_isolation = stage->network_isolation,
        .volume_kms_key = stage->volume_kms_key,
        .encrypt_traffic = stage->encrypt_traffic,
        .session_chaining = stage->session_tags,
    };
    return warm_pool_fingerprint(&m);
}

uint64_t warm_pool_print(struct warm_pool_prints *p, const struct spec_stage *stage,
                         int instance_type_i, int subnet_i)
{
    if (!p->known[instance_type_i]) {
        p->known[instance_type_i] = true;
        for (int i = -1; i < stage->subnets_n; i++) {
            p->print[instance_type_i][i + 1] =
                warm_pool_fingerprint_of(stage, instance_type_i, stage->volume_gb, i);
        }
    }
    return p->print[instance_type_i][subnet_i + 1];
}

struct warm_pool_policy warm_pool_policy_of(const struct spec_warm *w)
{
    return (struct warm_pool_policy){w->keep_alive_s, w->max_idle_cost_musd,
                                     w->end_when_queue_empty};
}

static musd_t cost_or_max(musd_t price, int64_t seconds)
{
    struct err ignored = ERR_INIT;
    musd_t cost;
    return cost_of_seconds(price, seconds, &cost, &ignored) ? cost : INT64_MAX;
}

/* True when a task is likely to be left for this pool when its job ends; each pool before it takes
 * one. Ends are known only roughly and the two errors cost differently: a pool kept in vain is
 * ended as soon as it is seen, a pool not kept costs a cold start. So half as many tasks are
 * enough. */
static bool will_match(const struct warm_pool_gap *g)
{
    return g->matching_waiting > 0 && g->matching_waiting > g->matching_live / 2;
}

/* The longest keep-alive up to `want` whose idle cost is within the cap; 0 when it would end before
 * a match can arrive. */
static int64_t under_cap(const struct warm_pool_policy *p, const struct warm_pool_gap *g,
                         int64_t want)
{
    __extension__ typedef __int128 wide;
    if (p->max_idle_cost_musd < 0 || g->price_musd_per_hour == 0) {
        return want;
    }
    musd_t left = p->max_idle_cost_musd - g->idle_spent_musd;
    if (g->price_musd_per_hour < 0 || left <= 0) {
        return 0;
    }
    wide fits = (wide)left * 3600 / ((wide)g->price_musd_per_hour * g->instances);
    want = fits < want ? (int64_t)fits : want;
    return want > g->expected_gap_s ? want : 0;
}

int64_t warm_pool_keep_alive(const struct warm_pool_policy *p, const struct warm_pool_gap *g)
{
    ASSERT(g->instances > 0 && p->keep_alive_s <= WARM_POOL_KEEP_ALIVE_MAX_S);
    if (g->spot || p->keep_alive_s == 0 || g->warm_free < g->instances) {
        return 0;
    }
    if (p->keep_alive_s > 0) {
        bool kept = !p->end_when_queue_empty || will_match(g);
        return kept ? under_cap(p, g, p->keep_alive_s) : 0;
    }
    if (!will_match(g) || g->expected_gap_s >= g->start_saved_s) {
        return 0;
    }
    return under_cap(p, g, MIN(g->start_saved_s, (int64_t)WARM_POOL_KEEP_ALIVE_MAX_S));
}

bool warm_pool_takes(const struct warm_pool *p, uint64_t fingerprint, usec_t now_us)
{
    return p->state == POOL_AVAILABLE && !p->ending && fingerprint != 0 &&
           p->fingerprint == fingerprint && p->expires_us - now_us > WARM_POOL_EXPIRY_MARGIN_US;
}

bool warm_pool_worth_waiting(const struct warm_pool *p, uint64_t fingerprint, int64_t cold_start_s,
                             int64_t warm_start_s, usec_t now_us, usec_t *ret_until_us)
{
    if (p->state != POOL_EXPECTED || p->ending || fingerprint == 0 ||
        p->fingerprint != fingerprint || p->available_us == USEC_NEVER) {
        return false;
    }
    usec_t until_us = p->available_us + WARM_POOL_HAND_OVER_US;
    int64_t wait_us = MAX(p->available_us - now_us, INT64_C(0));
    int64_t warm_us = wait_us + (WARM_POOL_GAP_S + warm_start_s) * USEC_PER_SEC;
    if (now_us >= until_us || wait_us > WARM_POOL_HAND_OVER_US ||
        warm_us >= cold_start_s * USEC_PER_SEC) {
        return false;
    }
    *ret_until_us = until_us;
    return true;
}

musd_t warm_pool_idle_cost(const struct warm_pool *p, usec_t now_us)
{
    int64_t span_us = MAX(now_us - p->available_us, INT64_C(0));
    if (p->state != POOL_AVAILABLE || p->price_musd_per_hour < 0) {
        return 0;
    }
    int64_t seconds = span_us / USEC_PER_SEC + (span_us % USEC_PER_SEC != 0 ? 1 : 0);
    return cost_or_max(p->price_musd_per_hour, seconds * p->instances);
}

musd_t warm_pool_idle_worst(const struct warm_pool *p)
{
    bool there = p->state == POOL_AVAILABLE || p->state == POOL_EXPECTED;
    if (!there || p->price_musd_per_hour < 0) {
        return 0;
    }
    return cost_or_max(p->price_musd_per_hour, p->keep_alive_s * p->instances);
}

const char *warm_pool_end_name(enum warm_pool_end e)
{
    switch (e) {
    case WARM_POOL_KEEP:
        return "keep";
    case WARM_POOL_END_NO_MATCH:
        return "no_match";
    case WARM_POOL_END_BLOCKS_QUOTA:
        return "blocks_quota";
    case WARM_POOL_END_COST:
        return "cost";
    case WARM_POOL_END_EXPIRED:
        return "expired";
    case WARM_POOL_END_ASKED:
        return "asked";
    }
    return "keep";
}

enum warm_pool_end warm_pool_ends_now(const struct warm_pool *p, const struct warm_pool_use *u,
                                      usec_t now_us)
{
    if (p->state != POOL_AVAILABLE || p->ending || u->matched) {
        return WARM_POOL_KEEP;
    }
    if (u->blocks) {
        return WARM_POOL_END_BLOCKS_QUOTA;
    }
    if (u->left_musd <= 0) {
        return WARM_POOL_END_COST;
    }
    if (now_us - p->expires_us > WARM_POOL_HAND_OVER_US) {
        /* SageMaker ends it by itself; it is still visible */
        return WARM_POOL_END_EXPIRED;
    }
    return u->wanted || p->stays ? WARM_POOL_KEEP : WARM_POOL_END_NO_MATCH;
}
