/* The quota ledger of one instance type and market, and the estimated use by others. A slot is held
 * from intent to release: creating, running, uploading, stopping, unknown, and idle in a warm pool.
 * Pure values: the caller keeps them; times are wall clock. Sums saturate at INT64_MIN and
 * INT64_MAX. */
#pragma once
#include "common/err.h"
#include "core/model.h"

#define QUOTA_LEDGER_FOREIGN_HALF_LIFE_US                                                          \
    INT64_C(600000000) /* half-life of learned foreign use                                  \ */
#define QUOTA_LEDGER_QUOTA_NAME_MAX 127

struct quota_ledger { /* counts are instances */
    char instance_type[INSTANCE_TYPE_MAX + 1];
    enum market market;
    int64_t held;           /* by live attempts, from intent to release, unknown ones included */
    int64_t warm_idle;      /* kept by pools whose job has ended: available, or not yet seen */
    int64_t warm_held;      /* against the warm quota: pools expected, available or in use */
    int64_t quota;          /* of the type and market, as read; -1: unreadable, nothing starts */
    int64_t warm_quota;     /* -1: unreadable, counts as 0 */
    int64_t operator_limit; /* the operator's limit on our own use; -1: no limit */
    int64_t foreign;        /* others' use as last learned, at foreign_us */
    usec_t foreign_us;
    /* the limit a refusal named when it differs from quota; -1: not known */
    int64_t refused_limit;
    musd_t price_musd_per_hour; /* -1: unknown */
};
struct quota_ledger_total { /* the quota over all types of one market */
    int64_t limit;          /* -1: not listed, unlimited */
    int64_t held;           /* ours, all types, warm_idle included */
    int64_t foreign;        /* others' use as last learned, at foreign_us */
    usec_t foreign_us;      /* foreign and foreign_us start at 0 */
};
struct quota_ledger_account { /* quotas over all types; -1: not listed, unlimited */
    struct quota_ledger_total total[MARKET_COUNT];
    int64_t per_job; /* instances per job */
    int64_t longest_run_s;
    int64_t volume_gb; /* of one instance */
};
/* An account without known quotas over all types. */
#define QUOTA_LEDGER_ACCOUNT_UNLIMITED                                                             \
    {                                                                                              \
        .total = {{.limit = -1}, {.limit = -1}}, .per_job = -1, .longest_run_s = -1,               \
        .volume_gb = -1                                                                            \
    }
struct quota_ledger_refusal { /* ResourceLimitExceeded, parsed from its text */
    char quota[QUOTA_LEDGER_QUOTA_NAME_MAX + 1];
    int64_t limit, used, wanted;
};
/* What a quota limits. */
enum quota_ledger_quota {
    QUOTA_LEDGER_QUOTA_TYPE,     /* instances of one type and market */
    QUOTA_LEDGER_QUOTA_WARM,     /* of one type, kept in warm pools */
    QUOTA_LEDGER_QUOTA_TOTAL,    /* of all types of one market */
    QUOTA_LEDGER_QUOTA_PER_JOB,  /* per job */
    QUOTA_LEDGER_QUOTA_RUN_TIME, /* per job, seconds */
    QUOTA_LEDGER_QUOTA_VOLUME,   /* of one instance, GB */
    QUOTA_LEDGER_QUOTA_OTHER     /* not about training jobs */
};
/* How Service Quotas calls a quota without an instance type; "" of one that has a type. */
const char *quota_ledger_quota_name(enum quota_ledger_quota q, enum market market);
/* Parse the three numbers and the quota's name; false when the text lacks them. Accepts any
 * text. */
bool quota_ledger_refusal_parse(const char *text, struct quota_ledger_refusal *ret);
/* The quota with this name, in the wording of Service Quotas or of old refusals
 * ("training-job/ml.p2.xlarge"). ret_type is set for TYPE and WARM, else "". ret_market is set for
 * TYPE and TOTAL, else on demand. */
enum quota_ledger_quota quota_ledger_quota_named(const char *name,
                                                 char ret_type[static INSTANCE_TYPE_MAX + 1],
                                                 enum market *ret_market);
/* Learn from a refusal of a job of s's type and market. ours, ours_total: instances known to exist
 * at AWS (accepted, not released, pools included), of this type and of all types of the market.
 * Returns the quota it was about; OTHER, or another type's quota: nothing learned. */
enum quota_ledger_quota quota_ledger_learn(struct quota_ledger *s, struct quota_ledger_account *a,
                                           const struct quota_ledger_refusal *r, int64_t ours,
                                           int64_t ours_total, usec_t now_us);
/* Learn limit and foreign use from a refusal by the type's own quota. A refusal means that the
 * request did not fit, even when its numbers say otherwise. A limit read later replaces
 * refused_limit. */
void quota_ledger_refused(struct quota_ledger *s, const struct quota_ledger_refusal *r,
                          int64_t ours, usec_t now_us);
/* Estimated foreign use now: halves every QUOTA_LEDGER_FOREIGN_HALF_LIFE_US down to 0. */
int64_t quota_ledger_foreign(const struct quota_ledger *s, usec_t now_us);
int64_t quota_ledger_total_foreign(const struct quota_ledger_total *t, usec_t now_us);
/* A Create was accepted: all of ours fitted (counted as in quota_ledger_learn, this one included),
 * so foreign use is at most the rest. */
void quota_ledger_accepted(struct quota_ledger *s, struct quota_ledger_account *a, int64_t ours,
                           int64_t ours_total, usec_t now_us);
/* The quota was read: it replaces what a refusal said. -1: unreadable now, the last refusal stays
 * valid. */
void quota_ledger_quota_read(struct quota_ledger *s, int64_t quota);
/* How many instances of this type we may hold: the minimum of every limit that applies. Our
 * instances of other types count against the account's limits; foreign use is not subtracted. -1:
 * unreadable. */
int64_t quota_ledger_limit(const struct quota_ledger *s, const struct quota_ledger_account *a);
/* Instances that may still be intended (>= 0): the minimum of what the quotas of type and account
 * leave after our use and foreign use, and of what the operator's limit leaves after our use. */
int64_t quota_ledger_free(const struct quota_ledger *s, const struct quota_ledger_account *a,
                          usec_t now_us);
/* The two halves of it: what the type leaves alone, and what the quota over all types of the market
 * leaves; INT64_MAX without one. */
int64_t quota_ledger_type_free(const struct quota_ledger *s, usec_t now_us);
int64_t quota_ledger_total_free(const struct quota_ledger_account *a, enum market market,
                                usec_t now_us);
/* Instances that may still be given a keep-alive (>= 0). */
int64_t quota_ledger_warm_free(const struct quota_ledger *s);
/* How long one job of a run of run_s seconds may last: the run, or the quota of run time where that
 * is shorter and the run goes on in its next job. */
int64_t quota_ledger_job_run_s(const struct quota_ledger_account *a, int64_t run_s, bool goes_on);
/* Whether one job of n instances, this long and with this volume, can ever run: NONE (yes),
 * QUOTA_UNREADABLE or QUOTA_TOO_SMALL. */
enum wait_reason quota_ledger_can_ever(const struct quota_ledger *s,
                                       const struct quota_ledger_account *a, int64_t n,
                                       int64_t max_runtime_s, int volume_gb);
