/* See event_watch.h. */
#include "event_watch.h"
#include "common/retry.h"

/* In intervals between two rounds of Lists (10 s): */
#define LIST_EVERY     60  /* while events are relied on */
#define POOLS_EVERY    3   /* while a pool is kept: its end raises no event */
#define LATE_MAX       6   /* an event comes so late at most */
#define DOUBT          30  /* after a loss */
#define DOUBT_MAX      960 /* after one more each time */
#define UNSEEN         72  /* a job that no List has shown for so long is described */
#define END_WITHIN     6   /* and of one that uploads or stops */
#define STALE_EVERY    2160
#define FORGIVEN_AFTER 200           /* ends told in a row */
#define LOOKS_MAX      3             /* Describes for one event */
#define SAME_TIME_US   USEC_PER_MSEC /* an event has milliseconds */
/* From one question to the queue to the next: */
#define PAUSE_FULL_US   (200 * USEC_PER_MSEC)
#define PAUSE_SOME_US   (2 * USEC_PER_SEC)  /* so that one answer has several */
#define PAUSE_SHORT_US  USEC_PER_SEC        /* a queue that does not wait */
#define DELETE_AFTER_US (15 * USEC_PER_SEC) /* well before messages come again */
#define REFUSED_BASE_US USEC_PER_SEC
#define REFUSED_CAP_US  (60 * USEC_PER_SEC)

void event_watch_init(struct event_watch *w, int64_t interval_us, int64_t boot_us)
{
    memset(w, 0, sizeof *w);
    w->interval_us = interval_us;
    w->began_us = boot_us;
}

static bool ended(const struct job_seen *seen)
{
    return seen->status == JOB_COMPLETED || seen->status == JOB_FAILED ||
           seen->status == JOB_STOPPED;
}

static bool relies(const struct event_watch *w)
{
    return w->answers && w->earned;
}

static bool exists(enum attempt_state s)
{
    return s >= ATTEMPT_SUBMITTED && s <= ATTEMPT_STOPPING;
}

/* FNV-1a. */
static uint64_t name_hash(const char *name)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (const char *p = name; *p != '\0'; p++) {
        h = (h ^ (uint8_t)*p) * UINT64_C(1099511628211);
    }
    return h;
}

static void lose(struct event_watch *w, int64_t boot_us)
{
    int64_t doubt_us = retry_step_us(DOUBT * w->interval_us, DOUBT_MAX * w->interval_us, w->losses);
    w->doubt_until_us = boot_us + doubt_us;
    w->losses++;
    w->told = 0;
    w->lost_us = w->earned ? boot_us : w->lost_us;
    w->earned = false;
    w->owed_n = 0;
}

int64_t event_watch_answered(struct event_watch *w, size_t n, size_t most, int64_t took_us,
                             int64_t boot_us)
{
    for (size_t i = 0; i < w->owed_n && !w->answers; i++) { /* what was told meanwhile comes now */
        w->owed[i].due_us = boot_us + LATE_MAX * w->interval_us;
    }
    w->answers = true;
    w->refusals = 0;
    if (n >= most) {
        return PAUSE_FULL_US;
    }
    return n > 0 ? PAUSE_SOME_US : took_us < PAUSE_SHORT_US ? PAUSE_SHORT_US : 0;
}

int64_t event_watch_refused(struct event_watch *w, const struct aws_failure *f, int64_t boot_us)
{
    if (w->answers && w->earned) {
        w->lost_us = boot_us;
    }
    w->answers = false;
    int64_t wait_us = retry_step_us(REFUSED_BASE_US, REFUSED_CAP_US, w->refusals);
    w->refusals++;
    return MAX(f->retry_after_us, wait_us);
}

int event_watch_most(const struct event_watch *w, int batch)
{
    return w->refusals > 0 ? 1 : batch;
}

size_t event_watch_deletes(size_t n, size_t batch, int64_t spent_us, int64_t boot_us,
                           int64_t *ret_due_us)
{
    *ret_due_us = n == 0 ? INT64_MAX : n < batch ? spent_us + DELETE_AFTER_US : boot_us;
    if (boot_us < *ret_due_us) {
        return 0;
    }
    return MIN(n, batch);
}

bool event_watch_asks(size_t n, size_t room, size_t batch, int64_t next_us, int64_t boot_us,
                      int64_t *ret_due_us)
{
    *ret_due_us = n + batch <= room ? next_us : INT64_MAX;
    return boot_us >= *ret_due_us;
}

static void pay(struct event_watch *w, const char *name)
{
    uint64_t h = name_hash(name);
    for (size_t i = 0; i < w->owed_n; i++) {
        if (w->owed[i].name == h) {
            w->owed[i] = w->owed[--w->owed_n];
            return;
        }
    }
}

static void owe(struct event_watch *w, const char *name, int64_t boot_us)
{
    if (w->owed_n < EVENT_WATCH_OWED_MAX) {
        w->owed[w->owed_n++] = (struct event_watch_owed){
            .name = name_hash(name), .due_us = boot_us + LATE_MAX * w->interval_us};
    }
}

/* It says what is known of the job already. */
static bool is_known(const struct live_attempt *a, const struct job_seen *seen)
{
    if (seen->status != JOB_IN_PROGRESS) {
        return false; /* it would not be a live attempt's any more */
    }
    if (seen->modified != 0 && seen->modified + SAME_TIME_US <= a->p.modified) {
        return true;
    }
    enum attempt_state s = a->p.state;
    return (s == ATTEMPT_SUBMITTED && seen->phase == PHASE_PENDING) ||
           (s == ATTEMPT_STARTING && seen->phase == PHASE_PENDING) ||
           (s == ATTEMPT_STARTING && seen->phase == PHASE_STARTING) ||
           (s == ATTEMPT_RUNNING && seen->phase == PHASE_RUNNING) ||
           (s == ATTEMPT_UPLOADING && seen->phase == PHASE_UPLOADING);
}

bool event_watch_told(struct event_watch *w, struct live_attempt *a, const char *name,
                      const struct job_seen *seen, int64_t boot_us)
{
    size_t owed = w->owed_n;
    if (ended(seen)) {
        pay(w, name);
    }
    if (a == NULL && w->owed_n == owed) {
        return false; /* nobody waits for it */
    }
    w->event_us = boot_us;
    w->earned |= boot_us >= w->doubt_until_us;
    if (ended(seen) && ++w->told >= FORGIVEN_AFTER) {
        w->losses = 0;
    }
    if (a == NULL || (!exists(a->p.state) && a->p.state != ATTEMPT_UNKNOWN)) {
        return false;
    }
    a->end_told |= ended(seen);
    if (exists(a->p.state) && is_known(a, seen)) {
        return false;
    }
    a->event_us = boot_us;
    a->event_modified = MAX(a->event_modified, seen->modified);
    a->event_looks = 0;
    return true;
}

void event_watch_moved(struct event_watch *w, struct live_attempt *a,
                       const struct protocol_effect *e, int64_t boot_us)
{
    if (!e->changed) {
        return;
    }
    a->moved_us = boot_us;
    bool is_end = exists(e->from) && !exists(a->p.state) && a->p.state != ATTEMPT_CONFLICT;
    if (is_end && !a->end_told) {
        owe(w, a->row.name.s, boot_us);
    }
}

void event_watch_described(const struct event_watch *w, struct live_attempt *a, int64_t boot_us)
{
    bool before = a->describe_sent_us < a->event_us;
    bool shown = a->p.modified + SAME_TIME_US >= a->event_modified;
    if (a->event_us == 0) {
        return;
    }
    if (!exists(a->p.state) || (!before && (shown || ++a->event_looks >= LOOKS_MAX))) {
        a->event_us = 0;
        a->event_due_us = 0;
        return;
    }
    a->event_due_us =
        boot_us + (before ? 0 : retry_step_us(w->interval_us / 10, w->interval_us, a->event_looks));
}

bool event_watch_tick(struct event_watch *w, int64_t boot_us)
{
    for (size_t i = 0; i < w->owed_n && w->answers; i++) {
        if (boot_us >= w->owed[i].due_us) {
            lose(w, boot_us);
        }
    }
    return relies(w);
}

int64_t event_watch_list_us(const struct event_watch *w, const struct leader_state *s)
{
    if (!relies(w)) {
        return w->interval_us;
    }
    for (size_t i = 0; i < s->pools_n; i++) {
        if (s->pools[i]->row.state == POOL_AVAILABLE) {
            return POOLS_EVERY * w->interval_us;
        }
    }
    return LIST_EVERY * w->interval_us;
}

/* When events are lost, what was not described for hours is not described all at once. */
int64_t event_watch_stale_us(const struct event_watch *w, int64_t stale_us, int64_t boot_us)
{
    int64_t rare_us = STALE_EVERY * w->interval_us;
    if (relies(w)) {
        return MAX(stale_us, rare_us);
    }
    int64_t less_us = STALE_EVERY / LIST_EVERY * (boot_us - w->lost_us);
    return w->lost_us == 0 ? stale_us : MAX(stale_us, rare_us - less_us);
}

/* Last known to be as it is. */
static int64_t known_us(const struct live_attempt *a)
{
    return MAX(a->p.described_us, a->listed_us);
}

static int64_t since_us(const struct event_watch *w, const struct live_attempt *a)
{
    return a->moved_us != 0 ? a->moved_us : w->began_us; /* a takeover found it so */
}

/* As long as it has been so already, but at least this many intervals. */
static int64_t again_us(const struct event_watch *w, const struct live_attempt *a, int64_t least)
{
    return MAX(least * w->interval_us, known_us(a) - since_us(w, a));
}

/* How long parts of its size run; 0: not known. */
static int64_t expected_us(const struct live_attempt *a)
{
    const struct duration *d = &a->stage->duration;
    return duration_known(d) && !d->stale ? duration_quantile_us(d, size_mb_of(a->row.size), 90)
                                          : 0;
}

static int64_t running_due_us(const struct event_watch *w, const struct live_attempt *a)
{
    int64_t expected = expected_us(a);
    int64_t past_us = known_us(a) - since_us(w, a) - expected;
    if (expected == 0) {
        return known_us(a) + again_us(w, a, UNSEEN);
    }
    return past_us < 0 ? since_us(w, a) + expected
                       : known_us(a) + MAX(END_WITHIN * w->interval_us, past_us);
}

int64_t event_watch_due_us(const struct event_watch *w, const struct live_attempt *a)
{
    if (!exists(a->p.state) || a->p.look_now) {
        return INT64_MAX;
    }
    if (a->event_due_us != 0) {
        return a->event_due_us;
    }
    if (!relies(w)) { /* Lists show it */
        return INT64_MAX;
    }
    if (a->p.state == ATTEMPT_RUNNING) {
        return running_due_us(w, a);
    }
    bool starts = a->p.state == ATTEMPT_SUBMITTED || a->p.state == ATTEMPT_STARTING;
    return known_us(a) + again_us(w, a, starts ? UNSEEN : END_WITHIN);
}

int64_t event_watch_age_s(const struct event_watch *w, int64_t boot_us)
{
    return w->event_us == 0 ? -1 : (boot_us - w->event_us) / USEC_PER_SEC;
}
