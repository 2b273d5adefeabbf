/* See adoption.h. */
#include "adoption.h"
#include "attempt.h"
#include "attempt_answer.h"
#include "budget_state.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "core/money/cost.h"
#include "intents.h"
#include <stdio.h>

#define BACK_US (15 * 60 * USEC_PER_SEC) /* before the newest intent: clocks differ */
#define HASH_N  8

usec_t adoption_since(usec_t newest_intent_us, usec_t void_intent_us)
{
    usec_t oldest_us =
        void_intent_us > 0 ? MIN(newest_intent_us, void_intent_us) : newest_intent_us;
    return MAX(0, oldest_us - BACK_US);
}

/* The number before `end`, whose digits begin after a hyphen; ret_at: where they do. */
static bool number_before(const char *name, const char *end, int64_t max, int64_t *ret,
                          const char **ret_at)
{
    const char *p = end;
    while (p > name && p[-1] >= '0' && p[-1] <= '9') {
        p--;
    }
    *ret_at = p;
    return p < end && parse_i64((struct str){p, (size_t)(end - p)}, 0, max, ret, NULL);
}

/* <anything>-<seq>-a<n>-<hash8> */
static bool read_tail(const char *name, int64_t *ret_seq, int *ret_n)
{
    size_t length = strlen(name);
    const char *at;
    int64_t n = 0;
    if (length < HASH_N + 2 || name[length - HASH_N - 1] != '-' ||
        !number_before(name, name + length - HASH_N - 1, ATTEMPT_N_MAX, &n, &at) || n < 1 ||
        at - name < 3 || at[-1] != 'a' || at[-2] != '-') {
        return false;
    }
    *ret_n = (int)n;
    return number_before(name, at - 2, INT32_MAX, ret_seq, &at) && at > name && at[-1] == '-';
}

bool adoption_like_ours(const char *job_prefix, const char *name)
{
    char prefix[JOB_PREFIX_MAX + 1];
    int64_t seq;
    int n;
    protocol_job_prefix(job_prefix, prefix);
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 && name[length] == '-' && name[length + 1] >= '0' &&
           name[length + 1] <= '9' && read_tail(name, &seq, &n);
}

static bool agrees(const struct live_stage *ls, const char *job_prefix, const char *name,
                   int64_t seq, int n)
{
    static const uint8_t no_id[32];
    struct job_name would;
    protocol_job_name(job_prefix, ls->row.campaign_id, ls->row.name, seq, n, no_id, &would);
    size_t length = strlen(would.s);
    return strlen(name) == length && seq < ls->row.taken &&
           strncmp(name, would.s, length - HASH_N) == 0;
}

bool adoption_next_place(const struct leader_state *s, const char *job_prefix, const char *name,
                         int *cursor, struct adoption_place *ret)
{
    int at = 0;
    if (!read_tail(name, &ret->seq, &ret->n)) {
        return false;
    }
    for (size_t i = 0; i < s->campaigns_n; i++) {
        const struct live_campaign *lc = s->campaigns[i];
        for (int k = 0; k < lc->stages_n; k++) {
            const struct live_stage *ls = &lc->stages[k];
            if (at++ < *cursor || ls->spec == NULL ||
                !agrees(ls, job_prefix, name, ret->seq, ret->n)) {
                continue;
            }
            *cursor = at;
            ret->campaign_id = ls->row.campaign_id;
            ret->stage_id = ls->row.id;
            return true;
        }
    }
    return false;
}

/* Enough of itself, within bounds, to hold its slots and its money. */
static bool says_use(const struct job_description *job)
{
    return job->instances >= 1 && job->instances <= INT32_MAX && job->instance_type[0] != '\0' &&
           job->volume_gb >= 0 && job->volume_gb <= INT32_MAX && job->max_runtime_s >= 1 &&
           job->keep_alive_s >= 0;
}

/* And whose it is. */
static bool says_enough(const struct job_description *job)
{
    return says_use(job) && job->request_hash[0] != '\0' && job->attempt_id != 0;
}

/* What of an intent the job says itself. */
static void fill(struct leader_state *s, const struct job_description *job, const char *hash,
                 struct intent *in)
{
    const struct live_slots *slots =
        leader_state_slots(s, job->instance_type, job->spot ? MARKET_SPOT : MARKET_ON_DEMAND);
    (void)snprintf(in->instance_type, sizeof in->instance_type, "%s", job->instance_type);
    (void)snprintf(in->identity_hash, sizeof in->identity_hash, "%s", hash);
    in->instances = (int)job->instances;
    in->volume_gb = (int)job->volume_gb;
    in->max_runtime_s = job->max_runtime_s;
    in->keep_alive_s = job->spot ? 0 : job->keep_alive_s;
    in->market = slots->s.market;
    in->price_musd_per_hour = MAX(0, slots->s.price_musd_per_hour);
}

/* Does it use other than the attempt's row says? */
static bool uses_other(const struct attempt_row *row, const struct intent *in)
{
    return strcmp(row->instance_type, in->instance_type) != 0 || row->market != in->market ||
           row->instances != in->instances || row->keep_alive_s != in->keep_alive_s ||
           row->max_runtime_s != in->max_runtime_s;
}

bool adoption_recast(struct leader_state *s, const struct live_attempt *a,
                     const struct job_description *job, struct intent *ret)
{
    bool open = a->p.state >= ATTEMPT_UNKNOWN && a->p.state <= ATTEMPT_STOPPING;
    memset(ret, 0, sizeof *ret);
    if (!open || strcmp(job->name, a->row.name.s) != 0 || !says_use(job)) {
        return false;
    }
    if (a->p.state == ATTEMPT_UNKNOWN && leader_ours_by_name(a, job)) {
        fill(s, job, a->row.identity_hash, ret);
        return uses_other(&a->row, ret);
    }
    if (strlen(job->request_hash) != HASH_HEX_N - 1 || !says_enough(job) ||
        strcmp(job->request_hash, a->row.identity_hash) == 0) {
        return false;
    }
    fill(s, job, job->request_hash, ret);
    return true;
}

struct fact adoption_described(struct leader_state *s, struct live_attempt *a,
                               const struct job_description *job, bool not_found, bool failed,
                               usec_t now_us, int64_t boot_us, bool *ret_recast, struct intent *ret)
{
    *ret_recast = !failed && !not_found && adoption_recast(s, a, job, ret);
    return leader_describe_answer(a, job, not_found, failed || *ret_recast, now_us, boot_us);
}

/* False: there is no such place. */
static bool name_at(struct leader_state *s, const char *job_prefix,
                    const struct adoption_place *place, int64_t task_id, struct intent *in)
{
    uint8_t id[32];
    struct live_campaign *lc = leader_state_campaign(s, place->campaign_id);
    const struct live_stage *ls = lc != NULL ? leader_state_stage(lc, place->stage_id) : NULL;
    memset(in, 0, sizeof *in);
    if (ls == NULL || task_id == 0) {
        return false;
    }
    in->campaign_id = place->campaign_id;
    in->stage_id = place->stage_id;
    in->task_id = task_id;
    in->seq = (int32_t)place->seq;
    in->n = place->n;
    leader_intent_identity(s, lc->row.nonce, in, id);
    protocol_job_name(job_prefix, in->campaign_id, ls->row.name, place->seq, in->n, id, &in->name);
    return true;
}

bool adoption_is_ours(struct leader_state *s, const char *job_prefix, const char *name,
                      const struct adoption_place *place, int64_t task_id)
{
    struct intent in;
    return name_at(s, job_prefix, place, task_id, &in) && strcmp(in.name.s, name) == 0;
}

bool adoption_of(struct leader_state *s, const char *job_prefix, const struct job_description *job,
                 const struct adoption_place *place, int64_t task_id, struct adoption *ret)
{
    struct intent *in = &ret->intent;
    struct err err = ERR_INIT;
    memset(ret, 0, sizeof *ret);
    if (!name_at(s, job_prefix, place, task_id, in) || strcmp(in->name.s, job->name) != 0 ||
        !says_enough(job)) {
        return false;
    }
    fill(s, job, job->request_hash, in);
    in->attempt_id = job->attempt_id;
    in->request = STR(ATTEMPT_NO_REQUEST);
    ret->created_us = job->created;
    return cost_worst_case(in->price_musd_per_hour, in->instances, in->max_runtime_s,
                           in->keep_alive_s, &in->reserve_musd, &err);
}

bool adoption_plan_price(struct leader_state *s, const struct live_attempt *a,
                         struct late_price *ret)
{
    const struct attempt_row *row = &a->row;
    struct err ignored = ERR_INIT;
    musd_t worst_musd;
    if (row->price_musd_per_hour != 0 || !row->holds || a->recording || a->reread) {
        return false;
    }
    *ret = (struct late_price){.attempt_id = row->id};
    ret->price_musd_per_hour =
        leader_state_slots(s, row->instance_type, row->market)->s.price_musd_per_hour;
    if (ret->price_musd_per_hour > 0 &&
        cost_worst_case(ret->price_musd_per_hour, row->instances, row->max_runtime_s,
                        row->keep_alive_s, &worst_musd, &ignored)) {
        ret->more_musd = MAX(0, worst_musd - a->account.reserved_musd);
    }
    return ret->price_musd_per_hour > 0;
}

void adoption_apply_price(struct leader_state *s, struct live_attempt *a,
                          const struct late_price *p)
{
    a->row.price_musd_per_hour = p->price_musd_per_hour;
    a->row.reserved_musd += p->more_musd;
    a->account.reserved_musd += p->more_musd;
    budget_state_move(s, a->campaign, a->stage, p->more_musd, 0, 0);
}
