/* See filesystem_intent.h. */
#include "filesystem_intent.h"
#include "common/retry.h"
#include "core/failure/retry_policy.h"
#include "core/money/cost.h"
#include "filesystem_use.h"
#include "held_back.h"
#include "intents.h"
#include <stdio.h>

/* The newest try of a stage; NULL: none. */
static const struct live_filesystem *newest_of(const struct leader_state *s, int64_t stage_id)
{
    const struct live_filesystem *newest = NULL;
    for (size_t i = 0; i < s->filesystems_n; i++) {
        const struct live_filesystem *f = s->filesystems[i];
        if (f->row.stage_id == stage_id && (newest == NULL || f->row.n > newest->row.n)) {
            newest = f;
        }
    }
    return newest;
}

static bool is_lustre(const struct live_stage *ls)
{
    return ls->spec != NULL && ls->spec->kind == SPEC_KIND_LUSTRE;
}

/* Another try after this one has failed and is gone? */
static bool again(const struct live_stage *ls, const struct filesystem_row *r, usec_t *ret_from_us)
{
    const struct spec_retry *row = retry_row(ls->spec, r->cause);
    int64_t wait_us =
        retry_step_us(row->wait_from_s * USEC_PER_SEC, row->wait_to_s * USEC_PER_SEC, r->n - 1);
    *ret_from_us = r->ended_us + wait_us;
    return r->failed && r->n < ATTEMPTS_MAX && (row->times < 0 || r->n <= row->times);
}

static void mark(const struct leader_state *s, struct live_stage *ls)
{
    const struct live_filesystem *f = newest_of(s, ls->row.id);
    usec_t from_us;
    bool there = f != NULL && !filesystem_state_terminal(f->row.state);
    if (!is_lustre(ls)) {
        ls->endpoint_there |= there; /* of a file that cannot be read, perhaps */
        return;
    }
    ls->endpoint = ENDPOINT_NOT_YET;
    ls->endpoint_there = there;
    ls->filesystem_kept =
        f != NULL && f->row.state == FILESYSTEM_AVAILABLE && f->row.kept_for_retry;
    ls->endpoint_unmade = ls->endpoint_unmade && ls->row.state == STAGE_RUNNING;
    if (f != NULL && f->row.ready) {
        ls->endpoint = ENDPOINT_SERVES;
    } else if (!ls->endpoint_there && ls->endpoint_unmade) {
        ls->endpoint = ENDPOINT_GAVE_UP; /* and says why: resource_pace.h */
    } else if (f != NULL && !ls->endpoint_there && !again(ls, &f->row, &from_us)) {
        ls->endpoint = ENDPOINT_GAVE_UP;
        (void)snprintf(ls->endpoint_why, sizeof ls->endpoint_why, "%.280s",
                       f->row.reason[0] != '\0' ? f->row.reason : "the file system was deleted");
    }
}

void leader_filesystems_mark(struct leader_state *s, usec_t now_us)
{
    for (size_t i = 0; i < s->campaigns_n; i++) {
        for (int k = 0; k < s->campaigns[i]->stages_n; k++) {
            mark(s, &s->campaigns[i]->stages[k]);
        }
    }
    for (size_t i = 0; i < s->filesystems_n && !s->act; i++) {
        struct filesystem_writes w;
        leader_plan_filesystem_end(s, s->filesystems[i], now_us, &w);
        s->act = w.news != FILESYSTEM_AS_BEFORE; /* its last stage has ended, or a person asks */
    }
}

bool leader_filesystem_due(const struct leader_state *s, const struct live_campaign *lc,
                           const struct live_stage *ls, usec_t now_us, int *ret_n)
{
    if (s->tries_unread) {
        return false;
    }
    const struct live_filesystem *f = newest_of(s, ls->row.id);
    usec_t from_us = 0;
    if (!is_lustre(ls) || ls->row.state != STAGE_RUNNING || held_back(lc) ||
        lc->set_aside != WAIT_NONE || ls->endpoint_unmade) {
        return false;
    }
    *ret_n = f != NULL ? f->row.n + 1 : 1;
    if (f == NULL) {
        return true;
    }
    return filesystem_state_terminal(f->row.state) && !f->row.ready &&
           again(ls, &f->row, &from_us) && now_us >= from_us;
}

static musd_t price_of(const struct leader_state *s, struct str tier)
{
    char name[INSTANCE_TYPE_MAX + 1];
    (void)snprintf(name, sizeof name, SPEC_STORAGE_PREFIX STR_FMT, STR_ARG(tier));
    for (size_t i = 0; i < s->slots_n; i++) {
        const struct quota_ledger *q = &s->slots[i].s;
        if (q->market == MARKET_ON_DEMAND && strcmp(q->instance_type, name) == 0) {
            return q->price_musd_per_hour; /* of storage: a GB and month */
        }
    }
    return -1;
}

musd_t leader_storage_price(const struct leader_state *s, const char *tier, bool *ret_exact)
{
    struct str rest = str_of(tier);
    musd_t musd = price_of(s, rest);
    *ret_exact = musd >= 0;
    return musd >= 0 ? musd : price_of(s, str_split(&rest, '/'));
}

bool leader_plan_filesystem_intent(const struct leader_state *s, const struct live_campaign *lc,
                                   const struct live_stage *ls,
                                   const struct filesystem_intent_facts *f,
                                   struct filesystem_row *ret, struct buf *ret_request,
                                   enum wait_reason *ret_why, bool *ret_exact, struct err *err)
{
    const struct spec_stage *sp = ls->spec;
    const struct spec_filesystem *fs = sp->filesystem;
    uint8_t id[32];
    char tier[SPEC_STORAGE_TIER_MAX];
    spec_storage_tier(fs->deployment, fs->throughput, tier);
    musd_t price = leader_storage_price(s, tier, ret_exact);
    *ret = (struct filesystem_row){.id = f->filesystem_id,
                                   .project_id = lc->row.project_id,
                                   .campaign_id = lc->row.id,
                                   .stage_id = ls->row.id,
                                   .n = f->n,
                                   .state = FILESYSTEM_INTENDED,
                                   .size_gib = fs->capacity_gib,
                                   .ttl_s = fs->ttl_s,
                                   .keep = fs->keep,
                                   .exports = fs->exports && fs->import_from != NULL,
                                   .price_musd_per_gb_month = price,
                                   .intended_us = f->now_us};
    *ret_why = WAIT_PRICE_UNKNOWN;
    if (ret->price_musd_per_gb_month < 0) {
        return true;
    }
    (void)snprintf(ret->deployment, sizeof ret->deployment, "%s", fs->deployment);
    (void)snprintf(ret->import_from, sizeof ret->import_from, "%s",
                   fs->import_from != NULL ? fs->import_from : "");
    const struct intent identity = {
        .campaign_id = lc->row.id, .stage_id = ls->row.id, .n = f->n}; /* of no task */
    leader_intent_identity(s, lc->row.nonce, &identity, id);
    protocol_job_name(f->job_prefix, lc->row.id, sp->name, 0, f->n, id, &ret->token);
    const struct filesystem_request_input in = {.spec = lc->spec,
                                                .stage = sp,
                                                .campaign_id = lc->row.id,
                                                .token = &ret->token,
                                                .attempt_id = f->filesystem_id,
                                                .install_id = s->install_id};
    *ret_why = WAIT_NONE;
    return cost_storage_worst_case(ret->price_musd_per_gb_month, ret->size_gib, ret->ttl_s,
                                   &ret->reserved_musd, err) &&
           filesystem_request_make(&in, ret_request, err);
}
