/* See attempt.h. */
#include "attempt.h"
#include "calls.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/attempt.h"
#include "core/leader/job_list.h"
#include "core/leader/rows_read.h"
#include "lease.h"
#include "outcome.h"
#include "output_check.h"
#include "parking.h"
#include "store/rows/view.h"
#include "wall.h"

void attempt_protocol_config(const struct controller *c, struct protocol_config *ret)
{
    leader_protocol_config(c->cfg.signature_window_us, ret);
    ret->describe_stale_us =
        event_watch_stale_us(&c->events, ret->describe_stale_us, clock_boot_us());
}

/* People are told of a part whose rows are gone; its job is looked after all the same. */
static void tell_part(struct controller *c, const struct attempt_row *row)
{
    struct parking_subject part = PARKING_PART(row->campaign_id, row->task_id);
    struct err err = ERR_INIT;
    if (row->part_lost) {
        (void)err_set(&err, ERR_DATABASE, "job %s runs for part %d, whose row is gone", row->name.s,
                      row->seq);
        parking_refuse(c, part, TX_REFUSED, &err);
    } else {
        parking_done(c, part);
    }
}

static void take_over(struct controller *c, struct attempt_row *row, struct live_campaign *lc,
                      bool again)
{
    struct protocol_config pc;
    struct protocol_effect e;
    attempt_protocol_config(c, &pc);
    const struct attempt_takeover t = {.protocol = &pc,
                                       .now_us = leader_now(c),
                                       .lease_end_us = lease_others_end_us(c),
                                       .again = again};
    struct live_attempt *a = leader_take_over_attempt(&c->state, row, lc, &t, &e);
    row->uri = row->vars_json = row->artifacts = row->reason = NULL; /* the live attempt's now */
    attempt_attach_io(c, a);
    if (leader_attempt_records(&e)) {
        record_push(a, &e);
    }
    tell_part(c, row);
}

void attempt_take_over(struct controller *c, struct attempt_row *row, struct live_campaign *lc)
{
    struct err err = ERR_INIT;
    if (rows_attempt_placed(lc, row, &err)) {
        take_over(c, row, lc, false);
    } else {
        parking_refuse(c, PARKING_ATTEMPT(row->campaign_id, row->id), TX_REFUSED, &err);
    }
}

struct reread {
    int64_t attempt_id;
    struct attempt_row *rows;
    size_t n;
};

static bool read_row(struct controller *c, void *arg, struct err *err)
{
    struct reread *r = arg;
    return view_attempts(c->store, 0, r->attempt_id, &r->rows, &r->n, err);
}

static struct parking_subject subject_of(const struct live_attempt *a)
{
    return PARKING_ATTEMPT(a->row.campaign_id, a->row.id);
}

/* False: leadership lost. */
static bool reread(struct controller *c, struct live_attempt *a)
{
    struct err err;
    struct reread r = {.attempt_id = a->row.id};
    struct live_campaign *lc = a->campaign;
    enum tx_meaning meaning = leader_try(c, read_row, &r, &err);
    if (meaning == TX_BUSY || meaning == TX_REFUSED) {
        parking_refuse(c, subject_of(a), meaning, &err);
        return c->leading;
    }
    if (meaning == TX_DONE && r.n == 0) { /* only a takeover counts everything again */
        leader_lose(c, "attempt_ended_elsewhere", NULL);
    }
    if (c->leading && !rows_attempt_placed(lc, &r.rows[0], &err)) {
        parking_refuse(c, subject_of(a), TX_REFUSED, &err);
    } else if (c->leading) {
        attempt_remove(c, a);
        take_over(c, &r.rows[0], lc, true);
    }
    attempt_rows_free(r.rows, r.n);
    return c->leading;
}

void attempts_reread(struct controller *c)
{
    for (size_t i = c->state.attempts_n; i-- > 0;) { /* what is read again moves to the end */
        struct live_attempt *a = c->state.attempts[i];
        if (leader_attempt_reread_due(&c->state, a, clock_boot_us()) && !reread(c, a)) {
            return;
        }
    }
}

bool attempt_waits(const struct live_attempt *a)
{
    return leader_attempt_waits(&a->io->c->state, a, clock_boot_us());
}

void attempt_fact(struct live_attempt *a, const struct fact *f)
{
    struct protocol_config pc;
    struct protocol_effect e;
    if (!leader_attempt_hears(&a->io->c->state, a, f, clock_boot_us())) {
        return;
    }
    attempt_protocol_config(a->io->c, &pc);
    leader_attempt_fact(&a->io->c->state, a, f, &pc, &e);
    if (e.alert) {
        log_event(LOG_ERROR, "attempt_needs_attention", LF_S("job", a->row.name.s),
                  LF_S("state", attempt_state_name(a->p.state)), LF_S("reason", a->reason));
    }
    if (e.changed || e.task_ends || e.release_slot) {
        log_event(LOG_INFO, "attempt_moved", LF_S("job", a->row.name.s),
                  LF_S("from", attempt_state_name(e.from)),
                  LF_S("to", attempt_state_name(a->p.state)), LF_S("cause", cause_name(e.cause)));
    }
    event_watch_moved(&a->io->c->events, a, &e, clock_boot_us());
    leader_list_moved(&a->io->c->state, a, &e, f->at_us, pc.signature_window_us);
    if (leader_attempt_records(&e)) {
        record_push(a, &e);
    }
}

bool attempts_go_on(struct controller *c)
{
    bool any = false;
    struct fact f;
    for (size_t i = 0; i < c->state.attempts_n; i++) {
        while (leader_attempt_kept_fact(c->state.attempts[i], &f)) {
            attempt_fact(c->state.attempts[i], &f);
            any = true;
        }
    }
    return any;
}

void attempt_unwant(struct live_attempt *a)
{
    struct fact fact;
    if (leader_attempt_unwant(&a->io->c->state, a, clock_boot_us(), &fact)) {
        attempt_fact(a, &fact);
    }
}
