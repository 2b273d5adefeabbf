/* See parking.h. Few subjects are ever in trouble, so an array is walked. */
#include "parking.h"
#include "awake.h"
#include "common/retry.h"
#include "core/sched/ready_queue.h"

#define LOCKED_BASE_US   (100 * USEC_PER_MSEC)
#define LOCKED_CAP_US    (5 * USEC_PER_SEC)
#define PARKED_BASE_US   (60 * USEC_PER_SEC)
#define PARKED_CAP_US    (3600 * USEC_PER_SEC)
#define LOCKED_FORGET_US USEC_PER_SEC
#define UNPARK_AGAIN_US  (5 * USEC_PER_SEC)

static struct parked *find_any(const struct leader_state *s, enum parked_kind kind, int64_t ref_id,
                               bool locked)
{
    for (size_t i = 0; i < s->parked_n; i++) {
        struct parked *p = &s->parked[i];
        if (p->row.kind == kind && p->row.ref_id == ref_id && p->locked == locked) {
            return p;
        }
    }
    return NULL;
}

/* Of those who wait. */
static struct parked *find(const struct leader_state *s, enum parked_kind kind, int64_t ref_id,
                           bool locked)
{
    struct parked *p = find_any(s, kind, ref_id, locked);
    return p != NULL && !p->mended ? p : NULL;
}

static struct parked *add(struct leader_state *s, const struct parked_row *row, bool locked)
{
    s->parked = xrealloc(s->parked, (s->parked_n + 1) * sizeof *s->parked);
    struct parked *p = &s->parked[s->parked_n++];
    *p = (struct parked){.row = *row, .locked = locked};
    return p;
}

static void forget(struct leader_state *s, struct parked *p)
{
    *p = s->parked[--s->parked_n];
}

static bool waits(const struct parked *p, int64_t boot_us)
{
    return p != NULL && p->next_us > boot_us;
}

bool parking_may(const struct leader_state *s, const struct parking_subject *who, int64_t boot_us)
{
    return s->parked_n == 0 || (!waits(find(s, PARKED_CAMPAIGN, who->campaign_id, true), boot_us) &&
                                !waits(find(s, who->kind, who->ref_id, true), boot_us) &&
                                !waits(find(s, who->kind, who->ref_id, false), boot_us));
}

static void mark(const struct leader_state *s, struct live_campaign *lc, int64_t boot_us)
{
    bool parked = find(s, PARKED_CAMPAIGN, lc->row.id, false) != NULL;
    const struct parked *lock = find(s, PARKED_CAMPAIGN, lc->row.id, true);
    lc->locked = lock != NULL;
    enum wait_reason why = parked ? WAIT_PARKED : waits(lock, boot_us) ? WAIT_LOCKED : WAIT_NONE;
    if (lc->set_aside != why) {
        lc->set_aside = why;
        campaign_wake(lc);
    }
}

/* A lock that is all that is known of a campaign: it has ended, but an attempt of it is not settled
 * or a pool is open, and it could not be read when the leader began. */
static bool of_absent(struct leader_state *s, const struct parked *p)
{
    return p->row.kind == PARKED_CAMPAIGN && leader_state_campaign(s, p->row.ref_id) == NULL;
}

void parking_mark(struct leader_state *s, int64_t boot_us)
{
    for (size_t i = s->parked_n; i-- > 0;) {
        const struct parked *p = &s->parked[i];
        if (p->locked && !of_absent(s, p) &&
            boot_us >= p->next_us + MAX(p->pause_us, LOCKED_FORGET_US)) {
            forget(s, &s->parked[i]);
        }
    }
    for (size_t i = 0; i < s->campaigns_n; i++) {
        mark(s, s->campaigns[i], boot_us);
    }
}

bool parking_unread(struct leader_state *s, int64_t campaign_id)
{
    return leader_state_campaign(s, campaign_id) == NULL &&
           (find(s, PARKED_CAMPAIGN, campaign_id, true) != NULL ||
            find(s, PARKED_CAMPAIGN, campaign_id, false) != NULL);
}

bool parking_stage_open(struct leader_state *s, int64_t campaign_id, int64_t stage_id)
{
    struct live_campaign *lc = leader_state_campaign(s, campaign_id);
    const struct live_stage *ls = lc != NULL ? leader_state_stage(lc, stage_id) : NULL;
    return parking_unread(s, campaign_id) || (ls != NULL && !stage_state_terminal(ls->row.state));
}

bool parking_parked(const struct leader_state *s, const struct parking_subject *who)
{
    return find(s, who->kind, who->ref_id, false) != NULL;
}

int64_t parking_next_us(const struct leader_state *s, const struct parking_subject *who)
{
    const struct parked *locked = find(s, PARKED_CAMPAIGN, who->campaign_id, true);
    const struct parked *own = find(s, who->kind, who->ref_id, false);
    return MAX(locked != NULL ? locked->next_us : 0, own != NULL ? own->next_us : 0);
}

bool parking_failed(struct leader_state *s, const struct parking_subject *who, enum tx_meaning why,
                    int64_t boot_us)
{
    bool locked = why == TX_BUSY;
    struct parked_row row = {
        .kind = who->kind, .ref_id = who->ref_id, .campaign_id = who->campaign_id};
    if (locked && who->campaign_id != 0) {
        row = (struct parked_row){PARKED_CAMPAIGN, who->campaign_id, who->campaign_id};
    }
    struct parked *p = find_any(s, row.kind, row.ref_id, locked);
    if (p == NULL) {
        p = add(s, &row, locked);
    } else if (p->mended) {
        *p = (struct parked){.row = row, .kept = p->kept};
    }
    int64_t base_us = locked ? LOCKED_BASE_US : PARKED_BASE_US;
    p->pause_us = retry_step_us(base_us, locked ? LOCKED_CAP_US : PARKED_CAP_US, p->times);
    p->next_us = boot_us + p->pause_us;
    struct live_campaign *lc = leader_state_campaign(s, who->campaign_id);
    if (lc != NULL) {
        mark(s, lc, boot_us);
    }
    return p->times++ == 0;
}

enum parking_tell parking_tells(enum tx_meaning why, bool news)
{
    if (why == TX_REFUSED) {
        return PARKING_TELL_PARKED;
    }
    return news ? PARKING_TELL_LOCKED : PARKING_TELL_NOBODY;
}

bool parking_by_report(enum tx_meaning why)
{
    return why == TX_BUSY;
}

bool parking_reports(const struct live_campaign *lc)
{
    return !lc->locked;
}

bool parking_over(struct leader_state *s, const struct parking_subject *who, int64_t boot_us)
{
    struct parked *own = find(s, who->kind, who->ref_id, false);
    if (own == NULL) {
        return false;
    }
    const struct live_campaign *lc = leader_state_campaign(s, who->campaign_id);
    if (who->kind == PARKED_CAMPAIGN && lc != NULL && lc->spec_unreadable) {
        return false;
    }
    own->mended = true;
    own->next_us = boot_us + UNPARK_AGAIN_US;
    return true;
}

void parking_gone(struct leader_state *s, const struct parking_subject *who)
{
    struct parked *p = find_any(s, who->kind, who->ref_id, false);
    if (p != NULL && p->mended) {
        forget(s, p);
    }
}

bool parking_row_due(struct leader_state *s, int64_t boot_us, struct parking_subject *ret)
{
    for (size_t i = 0; i < s->parked_n; i++) {
        struct parked *p = &s->parked[i];
        if (p->mended && p->next_us <= boot_us) {
            p->next_us = boot_us + UNPARK_AGAIN_US;
            *ret = (struct parking_subject){p->row.kind, p->row.ref_id, p->row.campaign_id};
            return true;
        }
    }
    return false;
}

void parking_hurry(struct leader_state *s, const struct parking_subject *who)
{
    struct parked *p = find(s, who->kind, who->ref_id, false);
    if (p != NULL) {
        p->next_us = 0;
    }
}

void parking_drop(struct leader_state *s, int64_t campaign_id)
{
    for (size_t i = s->parked_n; i-- > 0;) {
        if (s->parked[i].row.campaign_id == campaign_id && !s->parked[i].mended) {
            forget(s, &s->parked[i]);
        }
    }
}

static bool among(const struct parked_row *rows, size_t n, const struct parked_row *row)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].kind == row->kind && rows[i].ref_id == row->ref_id) {
            return true;
        }
    }
    return false;
}

/* A parked part waits in its queue. */
static void hurry_part(struct leader_state *s, const struct parked_row *row)
{
    struct live_campaign *lc = leader_state_campaign(s, row->campaign_id);
    for (int k = 0; lc != NULL && row->kind == PARKED_PART && k < lc->stages_n; k++) {
        (void)ready_queue_hurry(lc->stages[k].ready, row->ref_id);
    }
}

bool parking_take(struct leader_state *s, const struct parked_row *rows, size_t n)
{
    bool unparked = false;
    for (size_t i = s->parked_n; i-- > 0;) {
        struct parked *p = &s->parked[i];
        if (!p->locked && p->kept && !among(rows, n, &p->row)) {
            unparked |= !p->mended;
            hurry_part(s, &p->row);
            forget(s, p);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (find_any(s, rows[i].kind, rows[i].ref_id, false) == NULL) {
            struct parked *p = add(s, &rows[i], false);
            p->kept = true;
            p->times = 1; /* people know of it already */
        }
    }
    return unparked;
}

void parking_kept(struct leader_state *s, const struct parking_subject *who)
{
    struct parked *p = find(s, who->kind, who->ref_id, false);
    if (p != NULL) {
        p->kept = true;
    }
}

int64_t parking_n(const struct leader_state *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->parked_n; i++) {
        n += !s->parked[i].locked && !s->parked[i].mended;
    }
    return n;
}

int64_t parking_pause_us(const struct leader_state *s, const struct parking_subject *who,
                         int64_t boot_us)
{
    return MAX(0, parking_next_us(s, who) - boot_us);
}

bool parking_tells_stage(const struct live_stage *ls)
{
    return ls->row.counts[TASK_WAITING] > 0 && ls->reason != WAIT_LOCKED;
}

void parking_told_stages(struct live_campaign *lc)
{
    for (int k = 0; k < lc->stages_n; k++) {
        if (parking_tells_stage(&lc->stages[k])) {
            lc->stages[k].reason = WAIT_LOCKED;
        }
    }
}
