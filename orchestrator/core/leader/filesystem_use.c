/* See filesystem_use.h. */
#include "filesystem_use.h"
#include <stdio.h>

/* Does a channel of the stage name that file system? */
static bool names(const struct spec_stage *sp, const char *stage)
{
    for (int i = 0; sp != NULL && sp->training != NULL && i < sp->training->channels_n; i++) {
        const char *of = sp->training->channels[i].lustre_stage;
        if (of != NULL && strcmp(of, stage) == 0) {
            return true;
        }
    }
    return false;
}

static const struct live_stage *stage_of(const struct live_campaign *lc, int64_t id)
{
    for (int i = 0; i < lc->stages_n; i++) {
        if (lc->stages[i].row.id == id && lc->stages[i].spec != NULL) {
            return &lc->stages[i];
        }
    }
    return NULL;
}

/* A retry can run a stage again that mounts it: one that failed, or was skipped for another one. */
static bool awaits_retry(const struct live_campaign *lc, const char *stage)
{
    bool failed = false, skipped = false;
    for (int i = 0; i < lc->stages_n; i++) {
        const struct live_stage *ls = &lc->stages[i];
        bool of_jobs = ls->spec != NULL && ls->spec->kind == SPEC_KIND_JOBS;
        if (names(ls->spec, stage) && ls->row.state == STAGE_FAILED) {
            return true;
        }
        skipped |= names(ls->spec, stage) && ls->row.state == STAGE_SKIPPED;
        failed |= of_jobs && ls->row.state == STAGE_FAILED;
    }
    return failed && skipped;
}

enum filesystem_use leader_filesystem_use(const struct leader_state *s,
                                          const struct filesystem_row *r)
{
    const struct live_campaign *lc = leader_state_campaign(s, r->campaign_id);
    const struct live_stage *own = lc != NULL ? stage_of(lc, r->stage_id) : NULL;
    if (lc == NULL) {
        return FILESYSTEM_USED; /* not read: its jobs may run, and its ttl bounds it */
    }
    if (lc->row.state == CAMPAIGN_SUCCEEDED || lc->row.state == CAMPAIGN_CANCELLED) {
        return FILESYSTEM_UNUSED;
    }
    if (own == NULL || !stage_state_terminal(own->row.state)) {
        return FILESYSTEM_USED; /* not told apart: its ttl bounds it */
    }
    for (int i = 0; i < lc->stages_n; i++) {
        const struct live_stage *ls = &lc->stages[i];
        if (names(ls->spec, own->spec->name) &&
            (!stage_state_terminal(ls->row.state) || ls->row.counts[TASK_ACTIVE] > 0)) {
            return FILESYSTEM_USED;
        }
    }
    return awaits_retry(lc, own->spec->name) ? FILESYSTEM_KEPT : FILESYSTEM_UNUSED;
}

bool leader_filesystem_say_kept(const struct leader_state *s, struct filesystem_row *r)
{
    bool is = !r->keep && leader_filesystem_use(s, r) == FILESYSTEM_KEPT;
    if (r->state != FILESYSTEM_AVAILABLE || r->kept_for_retry == is ||
        leader_state_campaign(s, r->campaign_id) == NULL) {
        return false;
    }
    r->kept_for_retry = is;
    r->reason[0] = '\0';
    if (is) {
        (void)snprintf(r->reason, sizeof r->reason,
                       "kept for a retry until its ttl is over: drover retry c-%lld, or drover "
                       "filesystems delete %s",
                       (long long)r->campaign_id, r->token.s);
    }
    return true;
}

const struct live_stage *leader_filesystem_lost(const struct leader_state *s,
                                                const struct live_campaign *lc,
                                                const struct spec_stage *stage)
{
    for (int i = 0; i < lc->stages_n; i++) {
        const struct live_stage *ls = &lc->stages[i];
        if (ls->row.state != STAGE_SUCCEEDED || !names(stage, ls->row.name)) {
            continue;
        }
        bool there = false; /* ended ones are forgotten */
        for (size_t k = 0; k < s->filesystems_n; k++) {
            const struct filesystem_row *r = &s->filesystems[k]->row;
            there |= r->stage_id == ls->row.id && !filesystem_state_terminal(r->state);
        }
        if (!there) {
            return ls;
        }
    }
    return NULL;
}

static bool available(const struct leader_state *s, int64_t stage_id)
{
    for (size_t i = 0; i < s->filesystems_n; i++) {
        const struct filesystem_row *r = &s->filesystems[i]->row;
        if (r->stage_id == stage_id && r->state == FILESYSTEM_AVAILABLE) {
            return true;
        }
    }
    return false;
}

/* sp NULL: nobody can read the stage. */
static bool mounts(const struct spec_stage *sp)
{
    bool any = false;
    for (int i = 0; sp != NULL && sp->training != NULL && i < sp->training->channels_n; i++) {
        any |= sp->training->channels[i].lustre_stage != NULL;
    }
    return any;
}

bool leader_filesystem_going(const struct leader_state *s, const struct live_campaign *lc,
                             const struct spec_stage *stage)
{
    if (!mounts(stage)) { /* asked of every stage at every plan */
        return false;
    }
    for (int i = 0; i < lc->stages_n; i++) {
        const struct live_stage *ls = &lc->stages[i];
        if (names(stage, ls->row.name) && !available(s, ls->row.id)) {
            return true;
        }
    }
    return false;
}

int leader_filesystem_volumes(const struct leader_state *s, int64_t campaign_id,
                              const struct spec_stage *stage,
                              struct request_volume ret[static SPEC_CHANNELS_MAX])
{
    int n = 0;
    const struct live_campaign *lc = leader_state_campaign(s, campaign_id);
    for (size_t i = 0; lc != NULL && i < s->filesystems_n && n < SPEC_CHANNELS_MAX; i++) {
        const struct filesystem_row *r = &s->filesystems[i]->row;
        const struct live_stage *ls =
            r->state == FILESYSTEM_AVAILABLE ? stage_of(lc, r->stage_id) : NULL;
        if (ls != NULL && names(stage, ls->spec->name)) {
            ret[n++] = (struct request_volume){ls->spec->name, r->aws_id, r->mount};
        }
    }
    return n;
}

bool leader_filesystem_end_due(const struct live_filesystem *f, int64_t boot_us)
{
    return boot_us >= f->write_us;
}
