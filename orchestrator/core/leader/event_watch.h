/* How often AWS is asked about live jobs while its events tell of them. An event is never believed:
 * it says that a job is worth a Describe. Events may come late, twice, in another order or not at
 * all, so the polls go on, rarely while events flow and as often as without a queue otherwise.
 *
 * Rules:
 *  1. Events are relied on once one of a job of ours has come, and while the queue answers.
 *  2. Each end of a job owes an event. One that is not told in time shows that events are lost: the
 *     polls come back at once, and for longer with every loss.
 *  3. While events are relied on, a List comes every 60 intervals. A job that Lists do not show, or
 *     that takes longer than its stage does, is described, ever more rarely.
 *  4. What an event told and no Describe has shown yet is described again, a few times.
 * Pure; times are CLOCK_BOOTTIME unless named otherwise. */
#pragma once
#include "common/aws_outcome.h"
#include "leader_state.h"

#define EVENT_WATCH_OWED_MAX 512

struct event_watch_owed {
    uint64_t name; /* hashed */
    int64_t due_us;
};
struct event_watch {
    int64_t interval_us; /* between two rounds of Lists without events */
    int64_t began_us;
    bool answers; /* the queue did when it was last asked */
    int refusals; /* of it, in a row */
    bool earned;  /* rule 1 */
    int64_t doubt_until_us;
    int64_t lost_us;  /* when events were last relied on no longer; 0: they were never */
    int losses, told; /* losses in a row; ends told since the last */
    int64_t event_us; /* of the newest event of ours; 0: none yet */
    struct event_watch_owed owed[EVENT_WATCH_OWED_MAX];
    size_t owed_n;
};
void event_watch_init(struct event_watch *w, int64_t interval_us, int64_t boot_us);
/* The queue gave `n` messages of at most `most`, after took_us. Returns how long to wait until it
 * is asked again. */
int64_t event_watch_answered(struct event_watch *w, size_t n, size_t most, int64_t took_us,
                             int64_t boot_us);
/* The same of a queue that refused, or did not answer. */
int64_t event_watch_refused(struct event_watch *w, const struct aws_failure *f, int64_t boot_us);
/* The number of messages asked for at once, `batch` at most: one after an answer that was no use,
 * which may have been too large. */
int event_watch_most(const struct event_watch *w, int batch);
/* How many of n messages that were taken are deleted from the queue now, `batch` at most in a call;
 * spent_us: when the oldest of them was taken. 0: none yet, *ret_due_us says when, INT64_MAX: not
 * for these. */
size_t event_watch_deletes(size_t n, size_t batch, int64_t spent_us, int64_t boot_us,
                           int64_t *ret_due_us);
/* True: the queue, to be asked at next_us, is asked now: only while all that it may give at once
 * fits with the n of room that are kept to be deleted: what is not deleted comes again and again.
 * False: *ret_due_us says when, INT64_MAX: when some of those are deleted. */
bool event_watch_asks(size_t n, size_t room, size_t batch, int64_t next_us, int64_t boot_us,
                      int64_t *ret_due_us);
/* An event tells of the job `name`; a NULL: no live attempt has it. True: it is to be described. */
bool event_watch_told(struct event_watch *w, struct live_attempt *a, const char *name,
                      const struct job_seen *seen, int64_t boot_us);
/* A step of its protocol moved `a`. */
void event_watch_moved(struct event_watch *w, struct live_attempt *a,
                       const struct protocol_effect *e, int64_t boot_us);
/* A Describe of `a` was answered. When it does not show yet what an event told, or was sent before
 * that event came, a->event_due_us says when it is described again. */
void event_watch_described(const struct event_watch *w, struct live_attempt *a, int64_t boot_us);
/* Time has passed. True when events are relied on. */
bool event_watch_tick(struct event_watch *w, int64_t boot_us);
/* From one round of Lists to the next. */
int64_t event_watch_list_us(const struct event_watch *w, const struct leader_state *s);
/* A live job is described at least this often, whatever Lists show. */
int64_t event_watch_stale_us(const struct event_watch *w, int64_t stale_us, int64_t boot_us);
/* When `a` is to be described without a new event; INT64_MAX: not for that. */
int64_t event_watch_due_us(const struct event_watch *w, const struct live_attempt *a);
/* Seconds since the newest event of ours; -1: none yet. */
int64_t event_watch_age_s(const struct event_watch *w, int64_t boot_us);
