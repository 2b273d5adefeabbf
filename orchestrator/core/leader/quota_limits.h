/* The limits that Service Quotas names: which rows differ from them, and what memory takes over.
 * Pure. */
#pragma once
#include "core/capacity/quota_reading.h"
#include "leader_state.h"

struct quota_limit_write {     /* one row of quotas; value */
    const char *instance_type; /* borrowed from the reading */
    enum market market;
    bool warm;
    int64_t limit;
};
/* Rows by type that differ from what we hold, into ret[training_n + spot_n + warm_n]. */
size_t leader_plan_quotas(struct leader_state *s, const struct quota_reading *r,
                          struct quota_limit_write *ret);
struct account_quota_write { /* one value over all types; value */
    enum account_quota quota;
    int64_t limit;
};
/* Values over all types that differ from kept[], those of the rows. Returns how many. */
int leader_plan_account_quotas(const struct quota_reading *r,
                               const int64_t kept[static ACCOUNT_QUOTA_COUNT],
                               struct account_quota_write ret[static ACCOUNT_QUOTA_COUNT]);
/* Values over all types as their rows have them: a new leader goes by them until it has read. */
void leader_kept_account_quotas(struct leader_state *s,
                                const int64_t kept[static ACCOUNT_QUOTA_COUNT]);
/* After the commit. */
void leader_apply_quotas(struct leader_state *s, const struct quota_reading *r);
/* True when any limit is known. Nothing starts before one is, so it is asked for again soon. */
bool leader_quotas_known(const struct leader_state *s);
/* They could not be read: how long until they are asked for again; -1: as planned. */
int64_t leader_quotas_again_us(const struct leader_state *s, int64_t interval_us);
/* A reading that the database did not take is kept: when, by the clock of now_us, it is written
 * again. The next one takes its place. */
int64_t leader_quotas_write_us(int64_t now_us);
