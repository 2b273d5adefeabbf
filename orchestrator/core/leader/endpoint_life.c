/* See endpoint_life.h. */
#include "endpoint_life.h"
#include "budget_state.h"
#include "call_again.h"
#include "common/retry.h"
#include "core/money/cost.h"
#include "endpoint_served.h"
#include "held_back.h"
#include "late_create.h"
#include "resource_answer.h"
#include "resource_sight.h"
#include <stdio.h>
#include <stdlib.h>

#define NOT_SEEN_YET_MAX 8                    /* Creates before what they name can be read */
#define CLOCKS_APART_US  (300 * USEC_PER_SEC) /* AWS' of ours, at most, as far as that is known */
#define SMOKE_FAILURES   5                    /* questions in a row that did not reach the model */

usec_t leader_endpoint_until(const struct endpoint_row *r)
{
    int64_t life_us = r->ttl_s * USEC_PER_SEC;
    return r->in_service_us > 0
               ? r->in_service_us + life_us
               : MAX(r->intended_us, r->created_us) + ENDPOINT_CREATE_MAX_US + life_us;
}

/* Of those that are not gone yet: the endpoint first, then what it is made of. */
static enum hosting_kind next_to_go(const struct live_endpoint *e)
{
    return (enum hosting_kind)(HOSTING_ENDPOINT - e->gone);
}

static bool delete_due(const struct live_endpoint *e)
{
    return (e->there && !e->delete_taken) || resource_sight_lost(&e->sight);
}

static struct endpoint_call call_of(const struct live_endpoint *e)
{
    const struct endpoint_row *r = &e->row;
    switch (r->state) {
    case ENDPOINT_INTENDED:
        return (struct endpoint_call){e->unsure ? ENDPOINT_ACT_DESCRIBE : ENDPOINT_ACT_CREATE,
                                      (enum hosting_kind)r->made};
    case ENDPOINT_CREATING:
    case ENDPOINT_UPDATING:
        return (struct endpoint_call){ENDPOINT_ACT_DESCRIBE, HOSTING_ENDPOINT};
    case ENDPOINT_IN_SERVICE:
        return (struct endpoint_call){r->passed           ? ENDPOINT_ACT_DESCRIBE
                                      : e->payloads_n < 0 ? ENDPOINT_ACT_PAYLOADS
                                                          : ENDPOINT_ACT_INVOKE,
                                      HOSTING_ENDPOINT};
    case ENDPOINT_DELETING:
        return (struct endpoint_call){delete_due(e) ? ENDPOINT_ACT_DELETE : ENDPOINT_ACT_DESCRIBE,
                                      next_to_go(e)};
    case ENDPOINT_DELETED:
    case ENDPOINT_FAILED:
    case ENDPOINT_STATE_COUNT:
        break;
    }
    return (struct endpoint_call){ENDPOINT_ACT_NONE, HOSTING_ENDPOINT};
}

struct endpoint_call leader_endpoint_next(const struct leader_state *s,
                                          const struct live_endpoint *e, usec_t now_us,
                                          int64_t boot_us, int64_t poll_us, int64_t *wake_us)
{
    const struct endpoint_call none = {ENDPOINT_ACT_NONE, HOSTING_ENDPOINT};
    struct endpoint_call call = call_of(e);
    int64_t due_us = e->next_us;
    if (call.act == ENDPOINT_ACT_NONE ||
        (call.act == ENDPOINT_ACT_CREATE &&
         held_back(leader_state_campaign(s, e->row.campaign_id)))) {
        return none;
    }
    if (e->described_us > 0 && call.act == ENDPOINT_ACT_DESCRIBE) {
        bool serves = e->row.state == ENDPOINT_IN_SERVICE;
        due_us = MAX(due_us, e->described_us + (serves ? LOOK_US : poll_us));
    }
    if (e->row.in_service_us > 0 && e->row.state != ENDPOINT_DELETING) { /* its time may be over */
        int64_t left_us =
            MAX(s->clock.unsure ? USEC_PER_SEC : 0, leader_endpoint_until(&e->row) - now_us);
        *wake_us = MIN(*wake_us, MAX(boot_us + left_us, e->write_us));
    }
    if (boot_us < due_us) {
        *wake_us = MIN(*wake_us, due_us);
        return none;
    }
    return call;
}

static void say(struct endpoint_row *r, const struct aws_failure *f)
{
    (void)snprintf(r->reason, sizeof r->reason, "%.63s%s%.440s", f->code,
                   f->code[0] != '\0' ? ": " : "", f->message);
}

static void begin_delete(struct endpoint_row *r, usec_t now_us, const char *why)
{
    r->state = ENDPOINT_DELETING;
    r->deleting_us = now_us;
    if (why != NULL) {
        (void)snprintf(r->reason, sizeof r->reason, "%.500s", why);
    }
}

static void fail(struct endpoint_row *r, enum cause cause, usec_t now_us, const char *why)
{
    r->failed = true;
    r->cause = cause;
    begin_delete(r, now_us, why);
}

/* A refusal that time or a person mends: nothing was made by it. */
static bool waits(const struct live_endpoint *e, const struct aws_failure *f, enum cause *ret)
{
    bool waits = resource_answer_waits(f, ret);
    if (f->outcome == AWS_REFUSED && strcasestr(f->message, "could not find") != NULL &&
        e->row.made > 0) {
        return e->failures < NOT_SEEN_YET_MAX; /* what was just made is not readable everywhere */
    }
    return waits;
}

/* One more of the three is known to exist. */
static void made_one(struct live_endpoint *e, struct endpoint_row *r, usec_t now_us)
{
    e->unsure = false;
    r->made++;
    r->reason[0] = '\0';
    if (r->made == HOSTING_KIND_COUNT) {
        r->state = ENDPOINT_CREATING;
        r->created_us = now_us;
    }
}

static void on_create(struct live_endpoint *e, const struct endpoint_fact *f, usec_t now_us,
                      int64_t boot_us, struct endpoint_row *r)
{
    enum cause cause;
    switch (f->said) {
    case ENDPOINT_SAID_YES:
        made_one(e, r, now_us);
        break;
    case ENDPOINT_SAID_NO:
        say(r, f->failure);
        if (!waits(e, f->failure, &cause)) {
            fail(r, cause, now_us, NULL);
        }
        break;
    case ENDPOINT_SAID_NOTHING:
        if (f->failure->outcome != AWS_UNSENT) {
            e->unsure = true;
            e->signed_us = boot_us;
        }
        break;
    case ENDPOINT_SAID_ABSENT:
    case ENDPOINT_SAID_BUSY:
        break;
    }
}

static bool is(const struct endpoint_description *d, const char *status)
{
    return strcmp(d->status, status) == 0;
}

static void in_service(struct live_endpoint *e, const struct endpoint_description *d, usec_t now_us,
                       struct endpoint_row *r)
{
    usec_t since = MAX(d->modified, d->created);
    r->state = ENDPOINT_IN_SERVICE;
    r->in_service_us = since > 0 ? MIN(since, now_us) : now_us;
    e->next_us = 0;
}

/* It lives, or should: what a Describe of it says. */
static void on_seen(struct live_endpoint *e, const struct endpoint_description *d, usec_t now_us,
                    struct endpoint_row *r)
{
    if (is(d, "Failed")) {
        enum cause cause = cause_of_job(JOB_END_FAILED, str_of(d->failure_reason), false);
        fail(r, cause, now_us, d->failure_reason[0] != '\0' ? d->failure_reason : "it failed");
    } else if (is(d, "Deleting")) { /* somebody else's wish */
        begin_delete(r, now_us, "it was deleted at AWS");
        r->off_us = d->modified;
        e->there = e->delete_taken = true;
    } else if (r->state == ENDPOINT_CREATING && is(d, "InService")) {
        in_service(e, d, now_us, r);
    } else if (r->state == ENDPOINT_CREATING && now_us >= r->created_us + ENDPOINT_CREATE_MAX_US) {
        fail(r, CAUSE_TIMEOUT, now_us, "it did not come into service");
    }
}

/* It was there and is not any more. */
static void on_missing(usec_t now_us, struct endpoint_row *r)
{
    if (r->in_service_us > 0) {
        begin_delete(r, now_us, "it was deleted at AWS");
    } else if (now_us >= r->created_us + LATE_READABLE_US) {
        fail(r, CAUSE_UNKNOWN, now_us, "it was deleted at AWS before it was in service");
    }
}

/* DELETING: the next of the three is gone. */
static void gone_one(struct live_endpoint *e)
{
    e->gone++;
    e->there = e->delete_taken = false;
    e->sight = (struct resource_sight){0};
    e->next_us = 0;
}

/* A Create may still be on its way, or what was made is not readable yet. None is signed once all
 * three are known to exist or the deletion has begun. */
static bool may_come_again(const struct live_endpoint *e, const struct endpoint_fact *f,
                           usec_t now_us, int64_t boot_us)
{
    bool all = e->row.made == HOSTING_KIND_COUNT;
    bool made = (int)f->call.kind < e->row.made && !e->delete_taken;
    const struct late_create late = {e->signed_us, all ? e->row.created_us : e->row.deleting_us,
                                     f->window_us, made};
    return late_create_possible(&late, now_us, boot_us);
}

static void on_absent(struct live_endpoint *e, const struct endpoint_fact *f, usec_t now_us,
                      int64_t boot_us, struct endpoint_row *r)
{
    if (may_come_again(e, f, now_us, boot_us)) {
        e->next_us = late_create_look_us(e->signed_us + f->window_us, boot_us);
    } else {
        if (f->call.kind == HOSTING_ENDPOINT) {
            endpoint_served_never(e, r);
        }
        gone_one(e);
    }
}

static void on_going(struct live_endpoint *e, const struct endpoint_fact *f, usec_t now_us,
                     int64_t boot_us, struct endpoint_row *r)
{
    if (f->said == ENDPOINT_SAID_YES) {
        e->there = true;
        if (f->call.kind == HOSTING_ENDPOINT) {
            e->found = true;
            bool ends = is(f->seen, "Deleting");
            if (r->off_us > 0 && f->seen->created > r->off_us) {
                r->off_us = 0; /* made again by a Create that came late */
            }
            e->delete_taken = ends;
            /* A Delete would be refused; or go through, and nobody knew since when it served. */
            e->there = !is(f->seen, "Creating");
            if (ends && r->off_us == 0) {
                r->off_us = f->seen->modified > 0 ? f->seen->modified : now_us;
            }
            if (endpoint_served_assumed(r) && (is(f->seen, "Failed") || is(f->seen, "Creating"))) {
                r->in_service_us = r->served_us = 0; /* it never served */
            }
            if ((r->in_service_us == 0 || endpoint_served_assumed(r)) && is(f->seen, "InService")) {
                /* while nobody looked */
                r->in_service_us = MIN(MAX(f->seen->modified, f->seen->created), now_us);
            }
            if (e->there && !ends) {
                endpoint_served(r, now_us);
            }
        } else {
            e->delete_taken = false; /* deleted at once, or not at all */
        }
    } else if (f->said == ENDPOINT_SAID_ABSENT) {
        on_absent(e, f, now_us, boot_us, r);
    }
}

static void on_describe(struct live_endpoint *e, const struct endpoint_fact *f, usec_t now_us,
                        int64_t boot_us, struct endpoint_row *r)
{
    if (f->call.kind == HOSTING_ENDPOINT) {
        e->described_us = boot_us;
    }
    if (r->state == ENDPOINT_DELETING) {
        on_going(e, f, now_us, boot_us, r);
    } else if (r->state == ENDPOINT_INTENDED) {
        if (f->said == ENDPOINT_SAID_YES) {
            made_one(e, r, now_us);
        } else if (f->said == ENDPOINT_SAID_ABSENT) {
            e->unsure = false; /* the same again, under the same name */
        }
    } else if (f->said == ENDPOINT_SAID_YES) {
        on_seen(e, f->seen, now_us, r);
    } else if (f->said == ENDPOINT_SAID_ABSENT) {
        on_missing(now_us, r);
    }
}

/* A deletion without a sight of it that has no answer may have been taken: it served until then. */
static void deleted_unseen(struct live_endpoint *e, const struct endpoint_fact *f, usec_t now_us,
                           struct endpoint_row *r)
{
    bool lost = f->said == ENDPOINT_SAID_NOTHING && f->failure->outcome != AWS_UNSENT;
    e->found |= lost || f->said == ENDPOINT_SAID_YES || f->said == ENDPOINT_SAID_BUSY;
    if (lost) {
        endpoint_served(r, now_us);
    }
}

static void on_delete(struct live_endpoint *e, const struct endpoint_fact *f, usec_t now_us,
                      int64_t boot_us, struct endpoint_row *r)
{
    if (f->call.kind == HOSTING_ENDPOINT && resource_sight_lost(&e->sight)) {
        deleted_unseen(e, f, now_us, r);
    }
    resource_sight_tried(&e->sight);
    e->described_us = 0; /* look at once */
    if (f->said == ENDPOINT_SAID_YES || f->said == ENDPOINT_SAID_NO) {
        resource_sight_remark(r->reason, DELETE_REFUSED,
                              f->said == ENDPOINT_SAID_NO ? f->failure : NULL);
    }
    if (f->said == ENDPOINT_SAID_YES) {
        e->delete_taken = true;
        if (f->call.kind == HOSTING_ENDPOINT) {
            endpoint_served(r, now_us);
        }
        return;
    }
    e->there = false; /* seen once more before the next try */
    if (f->said == ENDPOINT_SAID_ABSENT) {
        on_absent(e, f, now_us, boot_us, r);
    }
}

static int compare_us(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* All payloads were answered. */
static void judge_smoke(struct live_endpoint *e, int p95_ms, usec_t now_us, struct endpoint_row *r)
{
    char why[128];
    size_t n = (size_t)e->asked;
    if (n > 0) {
        qsort(e->took_us, n, sizeof e->took_us[0], compare_us);
        r->p95_us = e->took_us[(n * 95 + 99) / 100 - 1];
    }
    if (p95_ms > 0 && r->p95_us > p95_ms * USEC_PER_MSEC) {
        (void)snprintf(why, sizeof why, "smoke test: p95 is %lld ms, more than %d ms",
                       (long long)(r->p95_us / USEC_PER_MSEC), p95_ms);
        fail(r, CAUSE_USER_CODE, now_us, why);
        return;
    }
    r->passed = true;
    r->tested_us = now_us;
    r->tested_n = e->asked;
    r->reason[0] = '\0';
}

static void on_invoke(struct live_endpoint *e, const struct endpoint_fact *f, usec_t now_us,
                      struct endpoint_row *r)
{
    char why[512];
    if (f->said != ENDPOINT_SAID_YES) {
        bool sent = f->failure->outcome != AWS_UNSENT && f->failure->outcome != AWS_THROTTLED &&
                    f->failure->outcome != AWS_CREDENTIALS;
        say(r, f->failure);
        e->unanswered += sent ? 1 : 0;
        if (e->unanswered >= SMOKE_FAILURES) {
            fail(r, CAUSE_NETWORK, now_us, NULL);
        }
    } else if (f->status != 200) {
        (void)snprintf(why, sizeof why, "smoke test: payload %d was answered with %d: %.400s",
                       e->asked + 1, f->status, f->text != NULL ? f->text : "");
        fail(r, CAUSE_USER_CODE, now_us, why);
    } else {
        e->unanswered = 0;
        e->took_us[e->asked++] = f->took_us;
        if (e->asked == e->payloads_n) {
            judge_smoke(e, f->p95_ms, now_us, r);
        }
    }
}

static void on_payloads(struct live_endpoint *e, const struct endpoint_fact *f, usec_t now_us,
                        struct endpoint_row *r)
{
    if (f->said == ENDPOINT_SAID_YES) {
        e->payloads_n = f->payloads_n;
        e->asked = e->unanswered = 0;
        if (f->payloads_n == 0) {
            judge_smoke(e, 0, now_us, r);
        }
    } else if (f->said == ENDPOINT_SAID_NO) {
        fail(r, CAUSE_BAD_INPUT, now_us, f->text);
    }
}

/* All three are gone: what it cost. False: it cannot be booked. */
static bool book(const struct live_endpoint *e, usec_t now_us, struct endpoint_row *r,
                 struct endpoint_end *end, struct err *err)
{
    struct ledger_account_of_attempt account = e->account;
    bool ignored;
    int n = 0;
    usec_t least = r->deleting_us > 0 ? MAX(r->deleting_us, r->served_us) : now_us;
    /* AWS says until when, but not that it ended before it was seen in service. */
    bool told = r->off_us > 0 && r->off_us >= MAX(r->in_service_us, r->served_us - CLOCKS_APART_US);
    usec_t off = told ? r->off_us : MAX(r->off_us, least);
    r->ended_us = now_us;
    r->state = r->failed ? ENDPOINT_FAILED : ENDPOINT_DELETED;
    *end = (struct endpoint_end){.estimated =
                                     r->in_service_us > 0 && (!told || endpoint_served_assumed(r))};
    if (r->in_service_us > 0) {
        end->billable_s = cost_billable_s(0, r->in_service_us, MAX(off, r->in_service_us),
                                          r->instances, &ignored);
        if (!cost_of_seconds(r->price_musd_per_hour, end->billable_s, &end->cost_musd, err) ||
            !ledger_settle_job(&account, 0, end->cost_musd, end->billable_s, end->estimated, 0,
                               end->entries, &end->entries_n, err)) {
            return false;
        }
    }
    bool ok = ledger_close(&account, 0, 0, 0, end->entries + end->entries_n, &n, err);
    end->entries_n += ok ? n : 0;
    return ok;
}

/* Whether anything that its row says has changed. */
static bool differs(const struct endpoint_row *a, const struct endpoint_row *b)
{
    return a->state != b->state || a->made != b->made || a->passed != b->passed ||
           a->failed != b->failed || a->in_service_us != b->in_service_us ||
           a->served_us != b->served_us || a->off_us != b->off_us ||
           strcmp(a->reason, b->reason) != 0;
}

static void pause_after(struct live_endpoint *e, const struct endpoint_fact *f, int64_t boot_us)
{
    bool failed = f->said == ENDPOINT_SAID_NO || f->said == ENDPOINT_SAID_NOTHING ||
                  f->said == ENDPOINT_SAID_BUSY;
    e->failures = failed ? MIN(e->failures + 1, 1000) : 0;
    if (failed) {
        e->next_us = boot_us + retry_step_us(AGAIN_US, AGAIN_MAX_US, e->failures - 1);
    }
}

/* True: people are alerted that AWS does not tell of it. */
static bool look(struct live_endpoint *e, const struct endpoint_fact *f, struct endpoint_row *r)
{
    bool told = f->said == ENDPOINT_SAID_YES || f->said == ENDPOINT_SAID_ABSENT;
    return resource_sight_note(&e->sight, told ? NULL : f->failure, r->reason);
}

void leader_plan_endpoint_fact(struct live_endpoint *e, const struct endpoint_fact *f,
                               usec_t now_us, int64_t boot_us, struct endpoint_writes *ret)
{
    *ret = (struct endpoint_writes){.news = ENDPOINT_AS_BEFORE, .row = e->row, .error = ERR_INIT};
    ASSERT((f->said != ENDPOINT_SAID_NO && f->said != ENDPOINT_SAID_NOTHING) ||
           f->failure != NULL || f->call.act == ENDPOINT_ACT_PAYLOADS);
    pause_after(e, f, boot_us);
    if (f->said == ENDPOINT_SAID_ABSENT) { /* when it was asked, however long the answer lay here */
        now_us -= boot_us - f->asked_us;
        boot_us = f->asked_us;
    }
    switch (f->call.act) {
    case ENDPOINT_ACT_NONE:
        break;
    case ENDPOINT_ACT_CREATE:
        on_create(e, f, now_us, boot_us, &ret->row);
        break;
    case ENDPOINT_ACT_DESCRIBE:
        on_describe(e, f, now_us, boot_us, &ret->row);
        ret->tell = look(e, f, &ret->row);
        endpoint_served_assume(e, &ret->row);
        break;
    case ENDPOINT_ACT_DELETE:
        on_delete(e, f, now_us, boot_us, &ret->row);
        break;
    case ENDPOINT_ACT_PAYLOADS:
        on_payloads(e, f, now_us, &ret->row);
        break;
    case ENDPOINT_ACT_INVOKE:
        on_invoke(e, f, now_us, &ret->row);
        break;
    }
    if (e->row.state == ENDPOINT_DELETING && e->gone == HOSTING_KIND_COUNT) {
        bool ok = book(e, now_us, &ret->row, &ret->end, &ret->error);
        ret->news = ok ? ENDPOINT_OVER : ENDPOINT_AS_BEFORE;
        if (!ok) {
            leader_endpoint_not_written(e, boot_us);
        }
        return;
    }
    if (differs(&e->row, &ret->row)) {
        ret->news = ENDPOINT_MOVED;
    }
}

bool leader_endpoint_end_due(const struct live_endpoint *e, int64_t boot_us)
{
    return boot_us >= e->write_us;
}

/* In service for its time; or never seen, and it cannot be looked at: it may serve since long, also
 * if its Create has no answer. */
static bool time_over(const struct live_endpoint *e, usec_t now_us)
{
    const struct endpoint_row *r = &e->row;
    bool made = r->created_us > 0 || e->unsure;
    bool ages = r->in_service_us > 0 || (made && resource_sight_lost(&e->sight));
    return ages && now_us >= leader_endpoint_until(r);
}

void leader_plan_endpoint_end(const struct leader_state *s, const struct live_endpoint *e,
                              usec_t now_us, struct endpoint_writes *ret)
{
    const struct live_campaign *lc = leader_state_campaign(s, e->row.campaign_id);
    *ret = (struct endpoint_writes){.news = ENDPOINT_AS_BEFORE, .row = e->row, .error = ERR_INIT};
    const char *why = NULL;
    if (e->row.delete_asked) {
        why = "a person asked for it";
    } else if (lc != NULL && lc->row.wanted == WANTED_CANCEL) {
        why = "its campaign was cancelled";
    } else if (!s->clock.unsure && time_over(e, now_us)) {
        why = "its ttl is over";
    }
    if (why != NULL && endpoint_edge(e->row.state, ENDPOINT_DELETING)) {
        begin_delete(&ret->row, now_us, why);
        endpoint_served_assume(e, &ret->row);
        ret->news = ENDPOINT_MOVED;
    } else if (e->row.state == ENDPOINT_INTENDED && !e->unsure &&
               held_back_say(lc, ret->row.reason)) {
        ret->news = ENDPOINT_MOVED;
    }
}

void leader_apply_endpoint(struct leader_state *s, struct live_endpoint *e,
                           const struct endpoint_writes *w)
{
    ASSERT(w->news != ENDPOINT_AS_BEFORE);
    if (e->row.state != w->row.state) {
        e->next_us = e->described_us = 0;
        e->failures = 0;
    }
    endpoint_set_state(e, w->row.state);
    e->row = w->row;
    s->act = true;
    if (w->news == ENDPOINT_OVER) {
        e->account.closed = true;
        e->account.reserved_musd = 0;
        leader_endpoint_money(s, &e->row,
                              budget_state_reserved_by(w->end.entries, w->end.entries_n),
                              budget_state_spent_by(w->end.entries, w->end.entries_n));
        budget_state_freed(s, e->row.project_id, leader_state_campaign(s, e->row.campaign_id));
    }
    s->look_at_db = s->decide = true;
}

void leader_endpoint_not_written(struct live_endpoint *e, int64_t boot_us)
{
    e->failures = MIN(e->failures + 1, 1000);
    e->next_us = boot_us + retry_step_us(AGAIN_US, AGAIN_MAX_US, e->failures - 1);
    e->write_us = e->next_us;
    resource_sight_not_written(&e->sight);
    bool guess = endpoint_served_guessed(&e->row) && !e->found; /* proven wrong, if it is gone */
    e->gone = guess ? 0 : MIN(e->gone, HOSTING_KIND_COUNT - 1); /* the last is looked at again */
    e->payloads_n = -1; /* and the smoke test is made again */
    e->unsure |=
        e->row.made < HOSTING_KIND_COUNT; /* one more may have been made, and is forgotten */
    e->signed_us = e->unsure ? boot_us : e->signed_us;
}
