/* See filesystem_use.h. */
#include "filesystem_use.h"

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

bool leader_filesystem_used(const struct leader_state *s, const struct filesystem_row *r)
{
    const struct live_campaign *lc = leader_state_campaign(s, r->campaign_id);
    const struct live_stage *own = NULL;
    if (lc == NULL) {
        return true; /* not read: its jobs may run, and its ttl bounds it */
    }
    if (campaign_state_terminal(lc->row.state)) {
        return false;
    }
    for (int i = 0; i < lc->stages_n; i++) {
        own = lc->stages[i].row.id == r->stage_id ? &lc->stages[i] : own;
    }
    if (own == NULL || own->spec == NULL || !stage_state_terminal(own->row.state)) {
        return true; /* not told apart: its ttl bounds it */
    }
    for (int i = 0; i < lc->stages_n; i++) {
        const struct live_stage *ls = &lc->stages[i];
        if (names(ls->spec, own->spec->name) &&
            (!stage_state_terminal(ls->row.state) || ls->row.counts[TASK_ACTIVE] > 0)) {
            return true;
        }
    }
    return false;
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

bool leader_filesystem_going(const struct leader_state *s, const struct live_campaign *lc,
                             const struct spec_stage *stage)
{
    for (int i = 0; i < lc->stages_n; i++) {
        const struct live_stage *ls = &lc->stages[i];
        if (names(stage, ls->row.name) && !available(s, ls->row.id)) {
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
