/* Quotas: what is free, what the text of a refusal teaches about limits and foreign use, and how
 * long that is believed. */
#include "quota_ledger.h"
#include "core/failure/cause.h"
#include <strings.h>

static int64_t plus(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}

static int64_t minus(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_sub_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}

/* Minimum of two limits; -1 means unlimited. */
static int64_t lesser(int64_t a, int64_t b)
{
    return a < 0 ? b : b < 0 ? a : MIN(a, b);
}

/* n halved once per half-life, linear in between, rounded half up. A clock that went back ages the
 * value like one that went forward, so a value learned under a wrong time is not believed for
 * long. */
static int64_t decayed(int64_t n, usec_t at_us, usec_t now_us)
{
    __extension__ typedef __int128 wide;
    int64_t age_us = minus(MAX(at_us, now_us), MIN(at_us, now_us));
    ASSERT(age_us >= 0);
    int64_t lives = age_us / QUOTA_LEDGER_FOREIGN_HALF_LIFE_US;
    if (n <= 0 || lives > 62) {
        return 0;
    }
    int64_t scale_us = INT64_C(2) * QUOTA_LEDGER_FOREIGN_HALF_LIFE_US;
    int64_t left_us = scale_us - age_us % QUOTA_LEDGER_FOREIGN_HALF_LIFE_US;
    wide div = (wide)scale_us << lives;
    return (int64_t)(((wide)n * left_us * 2 + div) / (div * 2));
}

int64_t quota_ledger_foreign(const struct quota_ledger *s, usec_t now_us)
{
    return decayed(s->foreign, s->foreign_us, now_us);
}

int64_t quota_ledger_total_foreign(const struct quota_ledger_total *t, usec_t now_us)
{
    return decayed(t->foreign, t->foreign_us, now_us);
}

/* Foreign use according to a refusal: what it says is in use, and at least enough that the request
 * did not fit. */
static int64_t foreign_of(const struct quota_ledger_refusal *r, int64_t ours)
{
    int64_t no_room = plus(minus(r->limit, r->wanted), 1);
    return MAX(0, minus(MAX(r->used, no_room), MAX(0, ours)));
}

bool quota_ledger_refusal_parse(const char *text, struct quota_ledger_refusal *ret)
{
    struct quota_refusal q;
    if (!cause_parse_quota(str_of(text), &q)) {
        return false;
    }
    _Static_assert(sizeof q.quota_name == sizeof ret->quota, "one bound for a quota's name");
    *ret = (struct quota_ledger_refusal){.limit = q.limit, .used = q.in_use, .wanted = q.delta};
    memcpy(ret->quota, q.quota_name, sizeof ret->quota);
    return true;
}

/* Quota names without an instance type. */
static const struct {
    const char *name;
    enum quota_ledger_quota quota;
    enum market market;
} whole_names[] = {
    {"Number of instances across all training jobs", QUOTA_LEDGER_QUOTA_TOTAL, MARKET_ON_DEMAND},
    {"Number of instances across all spot training jobs", QUOTA_LEDGER_QUOTA_TOTAL, MARKET_SPOT},
    {"Maximum number of instances per training job", QUOTA_LEDGER_QUOTA_PER_JOB, MARKET_ON_DEMAND},
    {"Number of instances for a training job", QUOTA_LEDGER_QUOTA_PER_JOB, MARKET_ON_DEMAND},
    {"Longest run time for a training job", QUOTA_LEDGER_QUOTA_RUN_TIME, MARKET_ON_DEMAND},
    {"Size of EBS volume for a training job instance", QUOTA_LEDGER_QUOTA_VOLUME, MARKET_ON_DEMAND},
};
const char *quota_ledger_quota_name(enum quota_ledger_quota q, enum market market)
{
    size_t i = 0;
    while (i < ARRAY_LEN(whole_names) &&
           (whole_names[i].quota != q || whole_names[i].market != market)) {
        i++;
    }
    return i < ARRAY_LEN(whole_names) ? whole_names[i].name : "";
}

/* Quota names that contain the instance type. */
static const struct {
    const char *before, *after;
    enum quota_ledger_quota quota;
    enum market market;
} type_names[] = {
    {"", " for training job usage", QUOTA_LEDGER_QUOTA_TYPE, MARKET_ON_DEMAND},
    {"", " for spot training job usage", QUOTA_LEDGER_QUOTA_TYPE, MARKET_SPOT},
    {"", " for training warm pool usage", QUOTA_LEDGER_QUOTA_WARM, MARKET_ON_DEMAND},
    {"training-job/", "", QUOTA_LEDGER_QUOTA_TYPE, MARKET_ON_DEMAND},
    {"spot-training-job/", "", QUOTA_LEDGER_QUOTA_TYPE, MARKET_SPOT},
};

/* The instance type between `before` and `after`, when name has that form. */
static bool type_between(const char *name, const char *before, const char *after,
                         char ret_type[static INSTANCE_TYPE_MAX + 1])
{
    size_t n = strlen(name);
    size_t b = strlen(before);
    size_t e = strlen(after);
    if (n <= b + e || n - b - e > INSTANCE_TYPE_MAX || strncasecmp(name, before, b) != 0 ||
        strcasecmp(name + n - e, after) != 0) {
        return false;
    }
    const char *type = name + b;
    if (strncmp(type, "ml.", 3) != 0 || memchr(type, ' ', n - b - e) != NULL ||
        memchr(type, '/', n - b - e) != NULL) {
        return false;
    }
    memcpy(ret_type, type, n - b - e);
    ret_type[n - b - e] = '\0';
    return true;
}

enum quota_ledger_quota quota_ledger_quota_named(const char *name,
                                                 char ret_type[static INSTANCE_TYPE_MAX + 1],
                                                 enum market *ret_market)
{
    ret_type[0] = '\0';
    *ret_market = MARKET_ON_DEMAND;
    for (size_t i = 0; i < ARRAY_LEN(whole_names); i++) {
        if (strcasecmp(name, whole_names[i].name) == 0) {
            *ret_market = whole_names[i].market;
            return whole_names[i].quota;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(type_names); i++) {
        if (type_between(name, type_names[i].before, type_names[i].after, ret_type)) {
            *ret_market = type_names[i].market;
            return type_names[i].quota;
        }
    }
    return QUOTA_LEDGER_QUOTA_OTHER;
}

void quota_ledger_refused(struct quota_ledger *s, const struct quota_ledger_refusal *r,
                          int64_t ours, usec_t now_us)
{
    int64_t limit = MAX(0, r->limit);
    s->refused_limit = limit == s->quota ? -1 : limit;
    s->foreign = foreign_of(r, ours);
    s->foreign_us = now_us;
}

static void total_refused(struct quota_ledger_total *t, const struct quota_ledger_refusal *r,
                          int64_t ours, usec_t now_us)
{
    t->limit = MAX(0, r->limit);
    t->foreign = foreign_of(r, ours);
    t->foreign_us = now_us;
}

enum quota_ledger_quota quota_ledger_learn(struct quota_ledger *s, struct quota_ledger_account *a,
                                           const struct quota_ledger_refusal *r, int64_t ours,
                                           int64_t ours_total, usec_t now_us)
{
    char type[INSTANCE_TYPE_MAX + 1];
    enum market market;
    enum quota_ledger_quota quota = quota_ledger_quota_named(r->quota, type, &market);
    bool our_type = strcasecmp(type, s->instance_type) == 0;
    switch (quota) {
    case QUOTA_LEDGER_QUOTA_TYPE:
        if (!our_type || market != s->market) {
            return QUOTA_LEDGER_QUOTA_OTHER;
        }
        quota_ledger_refused(s, r, ours, now_us);
        return quota;
    case QUOTA_LEDGER_QUOTA_WARM:
        if (!our_type) {
            return QUOTA_LEDGER_QUOTA_OTHER;
        }
        s->warm_quota = MAX(0, r->limit);
        return quota;
    case QUOTA_LEDGER_QUOTA_TOTAL:
        if (market != s->market) {
            return QUOTA_LEDGER_QUOTA_OTHER;
        }
        total_refused(&a->total[market], r, ours_total, now_us);
        return quota;
    case QUOTA_LEDGER_QUOTA_PER_JOB:
        a->per_job = MAX(0, r->limit);
        return quota;
    case QUOTA_LEDGER_QUOTA_RUN_TIME:
        a->longest_run_s = MAX(0, r->limit);
        return quota;
    case QUOTA_LEDGER_QUOTA_VOLUME:
        a->volume_gb = MAX(0, r->limit);
        return quota;
    case QUOTA_LEDGER_QUOTA_OTHER:
        return quota;
    }
    return QUOTA_LEDGER_QUOTA_OTHER;
}

/* The type's quota: as read, or as the last refusal said when that is less. */
static int64_t type_quota(const struct quota_ledger *s)
{
    return s->quota < 0 ? -1 : lesser(s->quota, s->refused_limit);
}

/* Foreign use is at most what ours leaves of the limit. Left unchanged when it already is, because
 * learning it again would reset its age. */
static void bound_foreign(int64_t limit, int64_t ours, usec_t now_us, int64_t believed,
                          int64_t *foreign, usec_t *foreign_us)
{
    int64_t rest = MAX(0, minus(limit, ours));
    if (limit >= 0 && rest < believed) {
        *foreign = rest;
        *foreign_us = now_us;
    }
}

void quota_ledger_accepted(struct quota_ledger *s, struct quota_ledger_account *a, int64_t ours,
                           int64_t ours_total, usec_t now_us)
{
    struct quota_ledger_total *t = &a->total[s->market];
    bound_foreign(type_quota(s), ours, now_us, quota_ledger_foreign(s, now_us), &s->foreign,
                  &s->foreign_us);
    bound_foreign(t->limit, ours_total, now_us, quota_ledger_total_foreign(t, now_us), &t->foreign,
                  &t->foreign_us);
}

void quota_ledger_quota_read(struct quota_ledger *s, int64_t quota)
{
    s->quota = MAX(-1, quota);
    s->refused_limit = s->quota < 0 ? s->refused_limit : -1;
}

int64_t quota_ledger_limit(const struct quota_ledger *s, const struct quota_ledger_account *a)
{
    int64_t limit = type_quota(s);
    if (limit < 0) {
        return -1;
    }
    const struct quota_ledger_total *t = &a->total[s->market];
    if (t->limit >= 0) {
        int64_t ours = plus(MAX(0, s->held), MAX(0, s->warm_idle));
        int64_t others = MAX(0, minus(MAX(0, t->held), ours));
        limit = MIN(limit, MAX(0, minus(t->limit, others)));
    }
    return lesser(limit, s->operator_limit);
}

int64_t quota_ledger_type_free(const struct quota_ledger *s, usec_t now_us)
{
    int64_t quota = type_quota(s);
    if (quota < 0) {
        return 0;
    }
    int64_t ours = plus(MAX(0, s->held), MAX(0, s->warm_idle));
    int64_t free_n = minus(quota, plus(ours, quota_ledger_foreign(s, now_us)));
    if (s->operator_limit >= 0) {
        free_n = MIN(free_n, minus(s->operator_limit, ours));
    }
    return MAX(0, free_n);
}

int64_t quota_ledger_total_free(const struct quota_ledger_account *a, enum market market,
                                usec_t now_us)
{
    const struct quota_ledger_total *t = &a->total[market];
    int64_t used = plus(MAX(0, t->held), quota_ledger_total_foreign(t, now_us));
    return t->limit < 0 ? INT64_MAX : MAX(0, minus(t->limit, used));
}

int64_t quota_ledger_free(const struct quota_ledger *s, const struct quota_ledger_account *a,
                          usec_t now_us)
{
    return MIN(quota_ledger_type_free(s, now_us), quota_ledger_total_free(a, s->market, now_us));
}

int64_t quota_ledger_warm_free(const struct quota_ledger *s)
{
    return MAX(0, minus(MAX(0, s->warm_quota), MAX(0, s->warm_held)));
}

int64_t quota_ledger_job_run_s(const struct quota_ledger_account *a, int64_t run_s, bool goes_on)
{
    return goes_on && a->longest_run_s > 0 ? MIN(run_s, a->longest_run_s) : run_s;
}

enum wait_reason quota_ledger_can_ever(const struct quota_ledger *s,
                                       const struct quota_ledger_account *a, int64_t n,
                                       int64_t max_runtime_s, int volume_gb)
{
    int64_t limit = type_quota(s);
    if (limit < 0) {
        return WAIT_QUOTA_UNREADABLE;
    }
    limit = lesser(lesser(limit, s->operator_limit), a->total[s->market].limit);
    bool fits = n <= limit && (a->per_job < 0 || n <= a->per_job) &&
                (a->longest_run_s < 0 || max_runtime_s <= a->longest_run_s) &&
                (a->volume_gb < 0 || volume_gb <= a->volume_gb);
    return fits ? WAIT_NONE : WAIT_QUOTA_TOO_SMALL;
}
