/* The quota ledger of one instance type and market, and what is known of everybody else's use. A
 * slot is held from intent to release: creating, running, uploading, stopping, unknown, and idle in
 * a warm pool. Pure values: the caller keeps them, times are wall clock. */
#pragma once
#include "common/err.h"
#include "model.h"

#define SLOTS_FOREIGN_HALF_LIFE_US INT64_C(600000000) /* learned foreign use halves in this time   \
                                                       */

struct slots { /* counts are instances */
    char instance_type[INSTANCE_TYPE_MAX + 1];
    enum market market;
    int64_t held;           /* by live attempts, from intent to release, unknown ones included */
    int64_t warm_idle;      /* kept by pools expected or available; on demand only */
    int64_t warm_held;      /* against the warm quota: pools expected, available or in use */
    int64_t quota;          /* of the type and market, as read; -1 unreadable: nothing starts */
    int64_t warm_quota;     /* -1 unreadable, which counts as 0 */
    int64_t operator_limit; /* of the operator's settings; -1 none */
    int64_t foreign;        /* others' use as last learned, at foreign_us */
    usec_t foreign_us;
    int64_t refused_limit;      /* the limit a refusal named when it differs from quota; -1 none */
    musd_t price_musd_per_hour; /* -1 unknown */
};
struct slots_account {       /* quotas over all types; -1: not listed, no such limit */
    int64_t total_instances; /* of all types in use at once */
    int64_t total_held;      /* ours, all types, warm_idle included */
    int64_t per_job;         /* instances of one job */
    int64_t longest_run_s;
    int64_t volume_gb; /* of one instance */
};
struct slots_refusal { /* ResourceLimitExceeded, read out of its text */
    char quota[128];
    int64_t limit, used, wanted;
};
/* The three numbers and the quota's name; false when the text does not have them. Any text. */
bool slots_refusal_parse(const char *text, struct slots_refusal *ret);
/* What the refusal teaches: limit, and use that is not ours. `ours` is what we know to exist at
 * AWS (accepted, not released). A limit read later replaces refused_limit. */
void slots_refused(struct slots *s, const struct slots_refusal *r, int64_t ours, usec_t now_us);
/* Somebody else's use as believed now: halves every SLOTS_FOREIGN_HALF_LIFE_US, 0 in the end. */
int64_t slots_foreign(const struct slots *s, usec_t now_us);
/* A Create was accepted: there was room for all we hold, so foreign use is at most the rest. */
void slots_accepted(struct slots *s, usec_t now_us);
/* The least of every limit that applies to this type now; -1: unreadable. */
int64_t slots_limit(const struct slots *s, const struct slots_account *a);
/* Instances that may still be intended (>= 0): limit - held - warm_idle - foreign. */
int64_t slots_free(const struct slots *s, const struct slots_account *a, usec_t now_us);
/* Can one job of n instances, this long and with this volume, ever run? NONE, QUOTA_UNREADABLE,
 * QUOTA_TOO_SMALL. */
enum wait_reason slots_can_ever(const struct slots *s, const struct slots_account *a, int64_t n,
                                int64_t max_runtime_s, int volume_gb);
