/* See event_intake.h. What an event means is decided by core/leader/event_watch.h. */
#include "event_intake.h"
#include "attempt.h"
#include "aws/event_queue.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/attempt_answer.h"
#include "core/leader/strays.h"
#include "lease.h"
#include "metrics.h"

#define SPENT_MAX (2 * EVENT_QUEUE_BATCH)

struct event_intake {
    struct controller *c;
    struct loop_timer *timer;
    struct event_queue_call *receive, *remove;
    int64_t asked_us, next_us; /* boot: the last question, the next */
    int most;                  /* messages asked for */
    char *spent[SPENT_MAX];    /* receipts of messages that are to be deleted */
    size_t spent_n;
    int64_t spent_us; /* boot: the oldest of them */
    bool relied;
};

static void go_on(struct event_intake *e);

static void on_timer(void *ctx)
{
    go_on(ctx);
}

struct event_intake *event_intake_new(struct controller *c)
{
    if (c->cfg.events_queue_url == NULL || c->cfg.events_queue_url[0] == '\0') {
        return NULL;
    }
    struct event_intake *e = xcalloc(1, sizeof *e);
    e->c = c;
    e->timer = loop_timer_new(c->loop, on_timer, e);
    return e;
}

void event_intake_free(struct event_intake *e)
{
    if (e != NULL) {
        loop_timer_free(e->timer);
        free(e);
    }
}

static void forget_spent(struct event_intake *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(e->spent[i]);
    }
    e->spent_n -= n;
    memmove(e->spent, e->spent + n, e->spent_n * sizeof e->spent[0]);
    e->spent_us = clock_boot_us();
}

static void note_failed(const char *what, const struct aws_failure *f)
{
    metric_add(METRIC_AWS_ERRORS, 1);
    metric_add(METRIC_AWS_THROTTLED, f->outcome == AWS_THROTTLED);
    if (log_allow(what)) {
        log_event(LOG_WARN, what, LF_S("code", f->code), LF_I("status", f->status),
                  LF_S("text", f->message));
    }
}

/* True: the job is to be described. */
static bool take_event(struct controller *c, const struct training_event *event)
{
    struct live_attempt *a = leader_state_attempt_named(&c->state, event->name);
    const struct job_seen seen = leader_job_seen(event->status, event->secondary, event->modified);
    int64_t now_us = clock_boot_us();
    if (a == NULL) {
        leader_stray_listed(&c->state, event->name, event->status);
    }
    if (event_watch_told(&c->events, a, event->name, &seen, now_us)) {
        attempt_fact(a, &(struct fact){.kind = FACT_HINT, .at_us = now_us});
        return true;
    }
    return false;
}

static void take_messages(struct event_intake *e, const struct queue_message *m, size_t n)
{
    int64_t looks = 0;
    for (size_t i = 0; i < n; i++) {
        metric_add(m[i].is_event ? METRIC_EVENTS : METRIC_EVENTS_FOREIGN, 1);
        looks += m[i].is_event && take_event(e->c, &m[i].event);
        if (e->spent_n == 0) {
            e->spent_us = clock_boot_us();
        }
        if (e->spent_n < SPENT_MAX) {
            e->spent[e->spent_n++] = xstrdup(m[i].receipt);
        }
    }
    if (n > 0) {
        log_event(LOG_DEBUG, "events_received", LF_I("messages", n), LF_I("looks", looks));
    }
}

static void on_messages(void *ctx, const struct queue_message *m, size_t n,
                        const struct aws_failure *f)
{
    struct event_intake *e = ctx;
    struct event_watch *w = &e->c->events;
    int64_t now_us = clock_boot_us();
    e->receive = NULL;
    if (f != NULL) {
        note_failed("events_unreadable", f);
        e->next_us = now_us + event_watch_refused(w, f, now_us);
    } else {
        take_messages(e, m, n);
        e->next_us =
            now_us + event_watch_answered(w, n, (size_t)e->most, now_us - e->asked_us, now_us);
    }
    go_on(e);
}

static void on_deleted(void *ctx, const struct aws_failure *f)
{
    struct event_intake *e = ctx;
    e->remove = NULL;
    if (f != NULL) {
        note_failed("events_undeletable", f);
    }
    go_on(e);
}

/* Returns when to look again. */
static int64_t delete_spent(struct event_intake *e, int64_t now_us)
{
    struct controller *c = e->c;
    int64_t due_us;
    if (e->remove != NULL) {
        return INT64_MAX;
    }
    size_t n = event_watch_deletes(e->spent_n, EVENT_QUEUE_BATCH, e->spent_us, now_us, &due_us);
    if (n == 0) {
        return due_us;
    }
    metric_add(METRIC_AWS_REQUESTS, 1);
    e->remove = event_queue_delete(c->aws, lease_gate(c), c->cfg.events_queue_url, e->spent, n,
                                   on_deleted, e);
    forget_spent(e, n);
    return INT64_MAX;
}

static void go_on(struct event_intake *e)
{
    struct controller *c = e->c;
    int64_t now_us = clock_boot_us();
    if (!c->leading) {
        return;
    }
    int64_t wake_us = delete_spent(e, now_us);
    int64_t due_us = INT64_MAX;
    if (e->receive == NULL &&
        event_watch_asks(e->spent_n, SPENT_MAX, EVENT_QUEUE_BATCH, e->next_us, now_us, &due_us)) {
        e->asked_us = now_us;
        e->most = event_watch_most(&c->events, EVENT_QUEUE_BATCH);
        metric_add(METRIC_AWS_REQUESTS, 1);
        e->receive = event_queue_receive(c->aws, lease_gate(c), c->cfg.events_queue_url, e->most,
                                         on_messages, e);
    } else if (e->receive == NULL) {
        wake_us = MIN(wake_us, due_us);
    }
    if (wake_us != INT64_MAX) {
        loop_timer_set(e->timer, MAX(1000, wake_us - now_us));
    }
}

void event_intake_start(struct controller *c)
{
    event_watch_init(&c->events, c->cfg.observe_interval_us, clock_boot_us());
    if (c->intake != NULL) {
        c->intake->next_us = 0;
        c->intake->relied = false;
        loop_timer_set(c->intake->timer, 0);
    }
}

void event_intake_tick(struct controller *c)
{
    int64_t now_us = clock_boot_us();
    bool relies = event_watch_tick(&c->events, now_us);
    metric_set(METRIC_EVENT_AGE_S, event_watch_age_s(&c->events, now_us));
    if (c->intake != NULL && c->intake->relied != relies) {
        c->intake->relied = relies;
        log_event(relies ? LOG_INFO : LOG_WARN, relies ? "events_flow" : "events_lost",
                  LF_I("lists_every_s", event_watch_list_us(&c->events, &c->state) / USEC_PER_SEC));
        loop_timer_set(c->observe_timer, 0);
    }
}

void event_intake_cancel(struct controller *c)
{
    struct event_intake *e = c->intake;
    if (e == NULL) {
        return;
    }
    loop_timer_set(e->timer, -1);
    event_queue_cancel(e->receive);
    event_queue_cancel(e->remove);
    e->receive = e->remove = NULL;
    forget_spent(e, e->spent_n);
}
