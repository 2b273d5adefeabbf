/* See filesystem_life.h. */
#include "filesystem_life.h"
#include "budget_state.h"
#include "call_again.h"
#include "common/retry.h"
#include "core/failure/cause.h"
#include "filesystem_bill.h"
#include "filesystem_time.h"
#include "filesystem_use.h"
#include "held_back.h"
#include "late_create.h"
#include "resource_answer.h"
#include "resource_sight.h"
#include "rows_read.h"
#include <stdio.h>

#define EXPORT_AGAIN_US (300 * USEC_PER_SEC) /* at most, after exports that failed */

static bool delete_due(const struct live_filesystem *f)
{
    return (f->there && !f->delete_taken) || resource_sight_lost(&f->sight);
}

/* DELETING: a listing tells; unless it is refused as well. */
static bool finds(const struct live_filesystem *f)
{
    return f->row.aws_id[0] == '\0' || (f->gone && !resource_sight_lost(&f->sight));
}

static enum filesystem_act act_of(const struct live_filesystem *f)
{
    const struct filesystem_row *r = &f->row;
    switch (r->state) {
    case FILESYSTEM_INTENDED:
        return f->unsure ? FILESYSTEM_ACT_FIND : FILESYSTEM_ACT_CREATE;
    case FILESYSTEM_CREATING:
        return r->available_us == 0 ? FILESYSTEM_ACT_DESCRIBE
               : f->link_us > 0     ? FILESYSTEM_ACT_TASKS
               : f->link_absent     ? FILESYSTEM_ACT_LINK
                                    : FILESYSTEM_ACT_FIND_LINK;
    case FILESYSTEM_AVAILABLE:
        return FILESYSTEM_ACT_DESCRIBE;
    case FILESYSTEM_EXPORTING:
        return f->task_due ? FILESYSTEM_ACT_EXPORT : FILESYSTEM_ACT_TASKS;
    case FILESYSTEM_DELETING:
        return finds(f)        ? FILESYSTEM_ACT_FIND
               : delete_due(f) ? FILESYSTEM_ACT_DELETE
                               : FILESYSTEM_ACT_DESCRIBE;
    case FILESYSTEM_DELETED:
    case FILESYSTEM_FAILED:
    case FILESYSTEM_MISCONFIGURED:
    case FILESYSTEM_STATE_COUNT:
        break;
    }
    return FILESYSTEM_ACT_NONE;
}

static bool looks(enum filesystem_act act)
{
    return act == FILESYSTEM_ACT_DESCRIBE || act == FILESYSTEM_ACT_FIND_LINK ||
           act == FILESYSTEM_ACT_TASKS;
}

enum filesystem_act leader_filesystem_next(const struct leader_state *s,
                                           const struct live_filesystem *f, usec_t now_us,
                                           int64_t boot_us, int64_t poll_us, int64_t *wake_us)
{
    enum filesystem_act act = act_of(f);
    int64_t due_us = f->next_us;
    if (act == FILESYSTEM_ACT_NONE ||
        (act == FILESYSTEM_ACT_CREATE && held_back(leader_state_campaign(s, f->row.campaign_id)))) {
        return FILESYSTEM_ACT_NONE;
    }
    if (f->described_us > 0 && looks(act)) {
        bool used = f->row.state == FILESYSTEM_AVAILABLE;
        due_us = MAX(due_us, f->described_us + (used ? LOOK_US : poll_us));
    }
    if (f->row.state != FILESYSTEM_DELETING && f->row.state != FILESYSTEM_INTENDED) {
        /* its time may be over */
        int64_t left_us = leader_filesystem_left_us(s, &f->row, now_us);
        *wake_us = MIN(*wake_us, MAX(boot_us + left_us, f->write_us));
    }
    if (boot_us < due_us) {
        *wake_us = MIN(*wake_us, due_us);
        return FILESYSTEM_ACT_NONE;
    }
    return act;
}

static void say(struct filesystem_row *r, const struct aws_failure *f)
{
    (void)snprintf(r->reason, sizeof r->reason, "%.63s%s%.440s", f->code,
                   f->code[0] != '\0' ? ": " : "", f->message);
}

static void begin_delete(struct filesystem_row *r, usec_t now_us, const char *why)
{
    r->state = FILESYSTEM_DELETING;
    r->ending_us = r->ending_us > 0 ? r->ending_us : now_us;
    if (why != NULL) {
        (void)snprintf(r->reason, sizeof r->reason, "%.500s", why);
    }
}

static void fail(struct filesystem_row *r, enum cause cause, usec_t now_us, const char *why)
{
    r->failed = true;
    r->cause = cause;
    begin_delete(r, now_us, why);
}

static void fail_told(struct filesystem_row *r, usec_t now_us, const char *told, const char *else_)
{
    fail(r, cause_of_job(JOB_END_FAILED, str_of(told), false), now_us,
         told[0] != '\0' ? told : else_);
}

static void refused(const struct filesystem_fact *fact, usec_t now_us, struct filesystem_row *r)
{
    enum cause cause;
    say(r, fact->failure);
    if (!resource_answer_waits(fact->failure, &cause)) {
        fail(r, cause, now_us, NULL);
    }
}

/* It is known to exist, whatever is to become of it. */
static void take_id(struct live_filesystem *f, const struct filesystem_description *d,
                    usec_t now_us, struct filesystem_row *r)
{
    f->unsure = f->there = f->delete_taken = f->gone = false;
    f->described_us = r->off_us = 0;
    (void)snprintf(r->aws_id, sizeof r->aws_id, "%s", d->id);
    (void)snprintf(r->mount, sizeof r->mount, "%s", d->mount_name);
    if (r->available_us == 0) { /* else billed since the first */
        r->created_us = d->created > 0 ? MIN(d->created, now_us) : now_us;
    }
    if (r->state == FILESYSTEM_INTENDED) {
        r->state = FILESYSTEM_CREATING;
        r->reason[0] = '\0';
    }
}

static void on_create(struct live_filesystem *f, const struct filesystem_fact *fact, usec_t now_us,
                      int64_t boot_us, struct filesystem_row *r)
{
    if (fact->said == FILESYSTEM_SAID_YES) {
        take_id(f, fact->seen, now_us, r);
    } else if (fact->said == FILESYSTEM_SAID_NO) {
        refused(fact, now_us, r);
    } else if (fact->failure->outcome != AWS_UNSENT) {
        f->unsure = true;
        f->signed_us = boot_us;
    }
}

/* A create may still be on its way. None is signed once one is known or the deletion has begun. */
static bool may_come_again(const struct live_filesystem *f, const struct filesystem_fact *fact,
                           usec_t now_us, int64_t boot_us)
{
    const struct filesystem_row *r = &f->row;
    bool known = r->aws_id[0] != '\0';
    const struct late_create late = {f->signed_us,
                                     known ? leader_filesystem_made_us(r) : r->ending_us,
                                     fact->window_us, known && !f->delete_taken};
    return late_create_possible(&late, now_us, boot_us);
}

/* The list of all, by the tag. */
static void on_find(struct live_filesystem *f, const struct filesystem_fact *fact, usec_t now_us,
                    int64_t boot_us, struct filesystem_row *r)
{
    if (fact->said == FILESYSTEM_SAID_YES) {
        take_id(f, fact->seen, now_us, r);
    } else if (fact->said != FILESYSTEM_SAID_ABSENT) {
        return;
    } else if (r->state == FILESYSTEM_INTENDED) {
        f->unsure = false; /* the same again, under the same token */
    } else if (may_come_again(f, fact, now_us, boot_us)) {
        f->next_us = late_create_look_us(f->signed_us + fact->window_us, boot_us);
    } else {
        f->signed_us = 0; /* it never was, and never will be */
        r->ended_us = now_us;
    }
}

static bool is(const char *lifecycle, const char *word)
{
    return strcmp(lifecycle, word) == 0;
}

static const char misconfigured[] = "FSx says that it is misconfigured: ";

static bool says_misconfigured(const struct filesystem_row *r)
{
    return strncmp(r->reason, misconfigured, strlen(misconfigured)) == 0;
}

/* It has been there, and jobs may have written: what FSx mends by itself, or a person, is only
 * said, and what has failed for good is exported first. */
static void on_trouble(const struct filesystem_description *d, usec_t now_us,
                       struct filesystem_row *r)
{
    if (is(d->lifecycle, "MISCONFIGURED")) {
        (void)snprintf(r->reason, sizeof r->reason, "%s%.400s", misconfigured, d->failure_reason);
        return;
    }
    fail_told(r, now_us, d->failure_reason, "FSx says that it has failed");
    r->state = r->exports ? FILESYSTEM_EXPORTING : r->state;
}

/* It lives, or should: what a Describe of it says. */
static void on_seen(struct live_filesystem *f, const struct filesystem_description *d,
                    usec_t now_us, struct filesystem_row *r)
{
    if (d->mount_name[0] != '\0') {
        (void)snprintf(r->mount, sizeof r->mount, "%s", d->mount_name);
    }
    bool trouble = is(d->lifecycle, "FAILED") || is(d->lifecycle, "MISCONFIGURED");
    if (trouble && r->available_us > 0) {
        on_trouble(d, now_us, r);
    } else if (trouble) {
        fail_told(r, now_us, d->failure_reason, "FSx says that it has failed");
    } else if (is(d->lifecycle, "DELETING")) { /* somebody else's wish */
        fail(r, CAUSE_UNKNOWN, now_us, "it was deleted at AWS");
        r->off_us = now_us;
    } else if (is(d->lifecycle, "AVAILABLE") && r->available_us == 0) {
        r->available_us = now_us;
        f->described_us = 0; /* what comes next comes at once */
        if (r->import_from[0] == '\0') {
            r->state = FILESYSTEM_AVAILABLE;
            r->ready = true;
        }
    } else if (r->available_us == 0 &&
               now_us >= leader_filesystem_made_us(r) + FILESYSTEM_CREATE_MAX_US) {
        fail(r, CAUSE_TIMEOUT, now_us, "it did not become available");
    } else if (says_misconfigured(r)) { /* mended */
        r->reason[0] = '\0';
        r->kept_for_retry = false; /* is said again */
    }
}

/* It was there and is not any more. */
static void on_missing(usec_t now_us, struct filesystem_row *r)
{
    if (r->available_us > 0 || now_us >= leader_filesystem_made_us(r) + LATE_READABLE_US) {
        fail(r, CAUSE_UNKNOWN, now_us, "it was deleted at AWS");
    }
}

static void on_absent(struct live_filesystem *f, const struct filesystem_fact *fact, usec_t now_us,
                      int64_t boot_us, struct filesystem_row *r)
{
    if (may_come_again(f, fact, now_us, boot_us)) {
        f->gone = true; /* looked for until then */
    } else {
        r->ended_us = now_us;
    }
}

static void on_going(struct live_filesystem *f, const struct filesystem_fact *fact, usec_t now_us,
                     int64_t boot_us, struct filesystem_row *r)
{
    if (fact->said == FILESYSTEM_SAID_ABSENT) {
        on_absent(f, fact, now_us, boot_us, r);
    } else if (fact->said == FILESYSTEM_SAID_YES) {
        const char *lifecycle = fact->seen->lifecycle;
        f->delete_taken = is(lifecycle, "DELETING");
        /* While it is made a deletion is refused; or goes through, and nobody knew of its cost. */
        f->there = !is(lifecycle, "CREATING");
        leader_filesystem_seen_going(r, lifecycle, now_us);
    }
}

static void on_describe(struct live_filesystem *f, const struct filesystem_fact *fact,
                        usec_t now_us, int64_t boot_us, struct filesystem_row *r)
{
    f->described_us = boot_us;
    if (r->state == FILESYSTEM_DELETING) {
        on_going(f, fact, now_us, boot_us, r);
    } else if (fact->said == FILESYSTEM_SAID_YES) {
        on_seen(f, fact->seen, now_us, r);
    } else if (fact->said == FILESYSTEM_SAID_ABSENT) {
        on_missing(now_us, r);
    }
}

/* Its association with S3: of one that is AVAILABLE the import begins. */
static void on_link(struct live_filesystem *f, const struct filesystem_fact *fact, usec_t now_us,
                    int64_t boot_us, struct filesystem_row *r)
{
    bool made = fact->act == FILESYSTEM_ACT_LINK;
    const struct association_description *a = fact->link;
    f->described_us = made ? 0 : boot_us;
    if (fact->said == FILESYSTEM_SAID_ABSENT && made) {
        on_missing(now_us, r); /* the file system itself */
    } else if (fact->said == FILESYSTEM_SAID_ABSENT) {
        f->link_absent = true;
    } else if (fact->said == FILESYSTEM_SAID_NO && made) {
        f->link_absent = false;
        refused(fact, now_us, r);
    } else if (fact->said != FILESYSTEM_SAID_YES) {
        f->link_absent = false; /* a listing tells what came of it */
    } else {
        f->link_absent = false;
        (void)snprintf(r->link_id, sizeof r->link_id, "%s", a->id);
        if (is(a->lifecycle, "AVAILABLE")) {
            f->link_us = boot_us;
            f->described_us = 0;
        }
        if (is(a->lifecycle, "FAILED") || is(a->lifecycle, "MISCONFIGURED")) {
            fail_told(r, now_us, a->failure_reason, "FSx cannot read its data repository");
        } else {
            (void)snprintf(r->reason, sizeof r->reason, "imports %.400s", r->import_from);
        }
    }
}

/* The tasks of one that is being filled. */
static void on_import(struct live_filesystem *f, const struct filesystem_fact *fact, usec_t now_us,
                      int64_t boot_us, struct filesystem_row *r)
{
    f->described_us = boot_us;
    if (fact->said == FILESYSTEM_SAID_ABSENT) {
        on_missing(now_us, r);
    } else if (fact->said == FILESYSTEM_SAID_YES &&
               fact->tasks.import == FILESYSTEM_IMPORT_FAILED) {
        fail_told(r, now_us, fact->tasks.import_why, "its import failed");
    } else if (fact->said == FILESYSTEM_SAID_YES &&
               resource_answer_filled(&fact->tasks, boot_us - f->link_us)) {
        r->state = FILESYSTEM_AVAILABLE;
        r->ready = true;
        r->reason[0] = '\0';
    }
}

static const char gone_before_export[] = "it was deleted at AWS before its export";

static void on_tasks(struct live_filesystem *f, const struct filesystem_fact *fact, usec_t now_us,
                     int64_t boot_us, struct filesystem_row *r)
{
    const struct filesystem_tasks *t = &fact->tasks;
    f->described_us = boot_us;
    f->tasks_us = now_us;
    f->in_vain &= fact->said == FILESYSTEM_SAID_YES && !t->runs;
    if (fact->said == FILESYSTEM_SAID_ABSENT) {
        fail(r, CAUSE_UNKNOWN, now_us, gone_before_export);
        return;
    }
    if (fact->said != FILESYSTEM_SAID_YES || t->runs) {
        return;
    }
    if (t->succeeded) {
        begin_delete(r, now_us, NULL);
        return;
    }
    f->task_due = true; /* of one whose id is not known: its token is answered with it */
    if (t->failed) {
        (void)snprintf(r->reason, sizeof r->reason, "export %d failed: %.400s", ++f->tasks_failed,
                       t->why);
        f->in_vain = true;
        f->task_id[0] = '\0';
        f->next_us = boot_us + retry_step_us(AGAIN_US, EXPORT_AGAIN_US, f->tasks_failed - 1);
    } else if (f->task_id[0] != '\0') { /* the list does not show it yet */
        f->next_us = boot_us + AGAIN_US;
    }
}

/* Its create is refused: for good, as far as one can know, or for now. */
static void export_refused(struct live_filesystem *f, const struct filesystem_fact *fact,
                           int64_t boot_us, struct filesystem_row *r)
{
    enum cause ignored;
    f->in_vain = !resource_answer_waits(fact->failure, &ignored);
    if (!f->in_vain) {
        say(r, fact->failure);
        return;
    }
    f->tasks_refused = MIN(f->tasks_refused + 1, 1000);
    (void)snprintf(r->reason, sizeof r->reason, "its export was refused %d times: %.63s: %.300s",
                   f->tasks_refused, fact->failure->code, fact->failure->message);
    f->next_us = boot_us + retry_step_us(AGAIN_US, EXPORT_AGAIN_US, f->tasks_refused - 1);
}

static void on_export(struct live_filesystem *f, const struct filesystem_fact *fact, usec_t now_us,
                      int64_t boot_us, struct filesystem_row *r)
{
    f->task_due = f->in_vain = false; /* a listing tells what came of it */
    f->described_us = 0;
    f->tasks_refused = fact->said == FILESYSTEM_SAID_NO ? f->tasks_refused : 0;
    if (fact->said == FILESYSTEM_SAID_ABSENT) {
        fail(r, CAUSE_UNKNOWN, now_us, gone_before_export);
    } else if (fact->said == FILESYSTEM_SAID_NO) {
        export_refused(f, fact, boot_us, r);
    } else if (fact->said == FILESYSTEM_SAID_YES && resource_answer_task_failed(fact->task)) {
        f->tasks_failed++; /* one of an earlier leader: the next token, which may succeed */
        f->task_due = true;
        f->next_us = boot_us + AGAIN_US;
    } else if (fact->said == FILESYSTEM_SAID_YES) {
        (void)snprintf(f->task_id, sizeof f->task_id, "%s", fact->task->id);
    }
}

static void on_delete(struct live_filesystem *f, const struct filesystem_fact *fact, usec_t now_us,
                      int64_t boot_us, struct filesystem_row *r)
{
    resource_sight_tried(&f->sight);
    f->described_us = 0; /* look at once */
    if (fact->said == FILESYSTEM_SAID_YES) {
        f->delete_taken = true;
        r->off_us = r->off_us > 0 ? r->off_us : now_us;
        resource_sight_remark(r->reason, DELETE_REFUSED, NULL);
        return;
    }
    f->there = false; /* seen once more before the next try */
    if (fact->said == FILESYSTEM_SAID_NO) {
        resource_sight_remark(r->reason, DELETE_REFUSED, fact->failure);
    } else if (fact->said == FILESYSTEM_SAID_ABSENT) {
        on_absent(f, fact, now_us, boot_us, r);
    }
}

/* True: people are alerted that AWS does not tell of it. */
static bool look(struct live_filesystem *f, const struct filesystem_fact *fact,
                 struct filesystem_row *r)
{
    bool told = fact->said == FILESYSTEM_SAID_YES || fact->said == FILESYSTEM_SAID_ABSENT;
    return (looks(fact->act) || fact->act == FILESYSTEM_ACT_FIND) &&
           resource_sight_note(&f->sight, told ? NULL : fact->failure, r->reason);
}

static void pause_after(struct live_filesystem *f, const struct filesystem_fact *fact,
                        int64_t boot_us)
{
    bool failed = fact->said == FILESYSTEM_SAID_NO || fact->said == FILESYSTEM_SAID_NOTHING;
    ASSERT(!failed || fact->failure != NULL);
    f->failures = failed ? MIN(f->failures + 1, 1000) : 0;
    if (failed) {
        f->next_us = boot_us + retry_step_us(AGAIN_US, AGAIN_MAX_US, f->failures - 1);
    }
}

void leader_plan_filesystem_fact(struct live_filesystem *f, const struct filesystem_fact *fact,
                                 usec_t now_us, int64_t boot_us, struct filesystem_writes *ret)
{
    *ret =
        (struct filesystem_writes){.news = FILESYSTEM_AS_BEFORE, .row = f->row, .error = ERR_INIT};
    pause_after(f, fact, boot_us);
    if (fact->said == FILESYSTEM_SAID_ABSENT) { /* when it was asked, however long the answer lay */
        now_us -= boot_us - fact->asked_us;
        boot_us = fact->asked_us;
    }
    switch (fact->act) {
    case FILESYSTEM_ACT_NONE:
        break;
    case FILESYSTEM_ACT_FIND:
        on_find(f, fact, now_us, boot_us, &ret->row);
        break;
    case FILESYSTEM_ACT_CREATE:
        on_create(f, fact, now_us, boot_us, &ret->row);
        break;
    case FILESYSTEM_ACT_DESCRIBE:
        on_describe(f, fact, now_us, boot_us, &ret->row);
        break;
    case FILESYSTEM_ACT_FIND_LINK:
    case FILESYSTEM_ACT_LINK:
        on_link(f, fact, now_us, boot_us, &ret->row);
        break;
    case FILESYSTEM_ACT_TASKS:
        (f->row.state == FILESYSTEM_CREATING ? on_import : on_tasks)(f, fact, now_us, boot_us,
                                                                     &ret->row);
        break;
    case FILESYSTEM_ACT_EXPORT:
        on_export(f, fact, now_us, boot_us, &ret->row);
        break;
    case FILESYSTEM_ACT_DELETE:
        on_delete(f, fact, now_us, boot_us, &ret->row);
        break;
    }
    ret->tell = look(f, fact, &ret->row);
    leader_filesystem_unseen(f, &ret->row);
    if (f->row.state == FILESYSTEM_DELETING && ret->row.ended_us > 0) {
        struct filesystem_row *r = &ret->row;
        r->state = r->failed ? FILESYSTEM_FAILED : FILESYSTEM_DELETED;
        bool ok = leader_filesystem_book(f, r, &ret->end, &ret->error);
        ret->news = ok ? FILESYSTEM_OVER : FILESYSTEM_AS_BEFORE;
        if (!ok) {
            leader_filesystem_not_written(f, boot_us);
        }
        return;
    }
    if (rows_filesystem_differ(&f->row, &ret->row)) {
        ret->news = FILESYSTEM_MOVED;
        ret->tell |= (says_misconfigured(&ret->row) && !says_misconfigured(&f->row)) ||
                     (leader_filesystem_in_vain(f) && !f->vain_told);
    }
}

/* Why it is to end; NULL: it goes on. */
static const char *end_of(const struct leader_state *s, const struct live_campaign *lc,
                          const struct filesystem_row *r, usec_t now_us)
{
    if (r->delete_asked) {
        return "a person asked for it";
    }
    if (r->state != FILESYSTEM_INTENDED && leader_filesystem_left_us(s, r, now_us) == 0) {
        return "its ttl is over";
    }
    if (lc != NULL && lc->row.wanted == WANTED_CANCEL) {
        bool job_writes = r->state == FILESYSTEM_AVAILABLE && lc->live > 0;
        return job_writes ? NULL : "its campaign was cancelled"; /* they are being stopped */
    }
    bool used = r->keep || r->state != FILESYSTEM_AVAILABLE ||
                leader_filesystem_use(s, r) != FILESYSTEM_UNUSED;
    return used ? NULL : "no stage uses it any more";
}

/* Its time is over, or its export is in vain and its end is wanted: then it goes without. */
static void end_export(const struct leader_state *s, const struct live_filesystem *f, usec_t now_us,
                       struct filesystem_writes *ret)
{
    char why[500];
    const char *wish = leader_filesystem_given_up(s, f, now_us);
    if (leader_filesystem_left_us(s, &ret->row, now_us) == 0) {
        wish = "its time is over";
    }
    if (wish == NULL) {
        return;
    }
    (void)snprintf(why, sizeof why, "%s, and its export did not succeed%s%.400s", wish,
                   f->in_vain ? ": " : "", f->in_vain ? ret->row.reason : "");
    fail(&ret->row, CAUSE_TIMEOUT, now_us, why);
    ret->news = FILESYSTEM_MOVED;
}

void leader_plan_filesystem_end(const struct leader_state *s, const struct live_filesystem *f,
                                usec_t now_us, struct filesystem_writes *ret)
{
    const struct live_campaign *lc = leader_state_campaign(s, f->row.campaign_id);
    struct filesystem_row *r = &ret->row;
    *ret =
        (struct filesystem_writes){.news = FILESYSTEM_AS_BEFORE, .row = f->row, .error = ERR_INIT};
    if (r->state == FILESYSTEM_EXPORTING) {
        end_export(s, f, now_us, ret);
        return;
    }
    if (!filesystem_edge(r->state, FILESYSTEM_DELETING)) {
        return;
    }
    const char *why = end_of(s, lc, r, now_us);
    if (why == NULL) {
        bool intended = r->state == FILESYSTEM_INTENDED && !f->unsure;
        bool says = intended ? held_back_say(lc, r->reason) : leader_filesystem_say_kept(s, r);
        ret->news = says ? FILESYSTEM_MOVED : FILESYSTEM_AS_BEFORE;
        return;
    }
    begin_delete(r, now_us, why);
    leader_filesystem_unseen(f, r);
    if (f->row.state == FILESYSTEM_AVAILABLE && r->exports) {
        r->state = FILESYSTEM_EXPORTING;
    }
    ret->news = FILESYSTEM_MOVED;
}

void leader_apply_filesystem(struct leader_state *s, struct live_filesystem *f,
                             const struct filesystem_writes *w)
{
    ASSERT(w->news != FILESYSTEM_AS_BEFORE);
    if (f->row.state != w->row.state) {
        f->next_us = f->described_us = 0;
        f->failures = 0;
        f->there = f->delete_taken = f->task_due = false;
    }
    filesystem_set_state(f, w->row.state);
    f->vain_told |= leader_filesystem_in_vain(f);
    bool asked = f->row.delete_asked;
    f->row = w->row;
    f->row.delete_asked |= asked;
    s->act = true;
    if (w->news == FILESYSTEM_OVER) {
        f->account.closed = true;
        f->account.reserved_musd = 0;
        budget_state_move_of(s, f->row.project_id, f->row.campaign_id, f->row.stage_id,
                             budget_state_reserved_by(w->end.entries, w->end.entries_n),
                             budget_state_spent_by(w->end.entries, w->end.entries_n));
        budget_state_freed(s, f->row.project_id, leader_state_campaign(s, f->row.campaign_id));
    }
    s->look_at_db = s->decide = true;
}

void leader_filesystem_not_written(struct live_filesystem *f, int64_t boot_us)
{
    f->failures = MIN(f->failures + 1, 1000);
    f->next_us = f->write_us = boot_us + retry_step_us(AGAIN_US, AGAIN_MAX_US, f->failures - 1);
    f->described_us = 0;
    resource_sight_not_written(&f->sight);
    f->there = false; /* what it is billed for is written before its deletion is asked for */
    f->unsure |= f->row.aws_id[0] == '\0'; /* it may have been made, and its id is forgotten */
    f->signed_us = f->unsure ? boot_us : f->signed_us;
}
