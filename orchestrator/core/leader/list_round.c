/* See list_round.h. */
#include "list_round.h"
#include "common/retry.h"
#include "strays.h"
#include <stdio.h>

#define PAGES_IN_3_INTERVALS  8
#define PAGES_BURST           4
#define LOOKS_IN_10_INTERVALS 40
#define LOOKS_BURST           8
#define GAPS                  10                   /* in an interval: no two pages come closer */
#define NEW_EVERY             6                    /* intervals */
#define PAGE_FAILURES_MAX     5                    /* of one page */
#define ABSENT_MAX            40                   /* Describes after one round */
#define YIELD_US              (50 * USEC_PER_MSEC) /* to the List of the sweep */
#define ABSENT_DOUBLINGS      4
#define UNSEEN_MAX            4                    /* intervals: then rotation comes to it */
#define UNSEEN_RARE           3                    /* times longer while rounds are rare */
#define NEWS_MAX              50                   /* pages */
#define NEW_PAGES             8                    /* of a round, before others' are skipped */
#define SKIP_AGAIN            20                   /* rounds after a skip that was in vain */
#define NEW_MARGIN_US         (120 * USEC_PER_SEC) /* a List may be behind */
#define NEW_FIRST_US          (900 * USEC_PER_SEC) /* the skew of AWS' clock is not known yet */

static const int pages_max[LIST_PART_COUNT] = {
    [LIST_LIVE] = 20, [LIST_STOPPING] = 20, [LIST_POOLS] = 20, [LIST_ALL] = 14};

enum list_walk_then list_walk_page(struct list_walk *w, const char *next, int most)
{
    bool over = next[0] == '\0' || strcmp(next, w->token) == 0;
    w->failures = 0;
    w->next_us = 0;
    w->pages++;
    (void)snprintf(w->token, sizeof w->token, "%s", over ? "" : next);
    return over ? LIST_WALK_OVER : w->pages < most ? LIST_WALK_ON : LIST_WALK_CUT;
}

enum list_walk_then list_walk_refused(struct list_walk *w, const struct aws_failure *f,
                                      int64_t interval_us, int64_t boot_us)
{
    int64_t wait_us = retry_step_us(interval_us / GAPS, 3 * interval_us, w->failures++);
    w->next_us = boot_us + MAX(wait_us, f->retry_after_us);
    /* A token may be too old: only a List from its beginning helps. */
    bool stale = f->outcome == AWS_REFUSED && w->token[0] != '\0';
    return stale || w->failures >= PAGE_FAILURES_MAX ? LIST_WALK_CUT : LIST_WALK_ON;
}

static double per_second(double n, int64_t span_us)
{
    return n * (double)USEC_PER_SEC / (double)span_us;
}

void list_round_init(struct list_round *r, int64_t interval_us, int64_t boot_us)
{
    ASSERT(interval_us >= GAPS);
    *r = (struct list_round){.interval_us = interval_us, .every_us = interval_us};
    token_bucket_init(&r->pages, per_second(PAGES_IN_3_INTERVALS, 3 * interval_us), PAGES_BURST,
                      boot_us);
    token_bucket_init(&r->looks, per_second(LOOKS_IN_10_INTERVALS, 10 * interval_us), LOOKS_BURST,
                      boot_us);
}

void list_round_clear(struct list_round *r)
{
    const struct list_round fresh = {.interval_us = r->interval_us,
                                     .every_us = r->every_us,
                                     .pages = r->pages,
                                     .looks = r->looks,
                                     .page_us = r->page_us,
                                     .n = r->n};
    *r = fresh;
}

void list_round_every(struct list_round *r, int64_t every_us, int64_t boot_us)
{
    bool rarer = every_us > r->every_us && r->n > 0 && r->due_us == r->began_us + r->every_us;
    r->every_us = MAX(r->interval_us, every_us);
    r->due_us = rarer ? r->began_us + r->every_us : MIN(r->due_us, boot_us + r->every_us);
}

static bool is_listed_live(enum attempt_state s)
{
    return s >= ATTEMPT_SUBMITTED && s < ATTEMPT_STOPPING;
}

static void want_parts(struct list_round *r, const struct leader_state *s, int64_t boot_us)
{
    bool *left = r->left;
    memset(r->left, 0, sizeof r->left);
    memset(r->whole, 0, sizeof r->whole);
    left[LIST_LIVE] = s->attempts_n > 0 || s->strays_n > 0 || boot_us < s->watch_until_us;
    for (size_t i = 0; i < s->attempts_n; i++) {
        left[LIST_STOPPING] |= s->attempts[i]->p.state == ATTEMPT_STOPPING;
    }
    for (size_t i = 0; i < s->strays_n; i++) {
        left[LIST_STOPPING] |= strcmp(s->strays[i].row.status, "Stopping") == 0;
    }
    for (size_t i = 0; i < s->pools_n; i++) {
        left[LIST_POOLS] |= s->pools[i]->row.state == POOL_AVAILABLE;
    }
    if (r->late) {
        bool any = left[LIST_LIVE] || left[LIST_POOLS];
        memset(r->left, 0, sizeof r->left);
        left[LIST_ALL] = any;
    }
}

/* The next part begins; none is left: the round is over. */
static void next_part(struct list_round *r)
{
    for (enum list_part p = 0; p < LIST_PART_COUNT; p++) {
        if (r->left[p]) {
            r->left[p] = false;
            r->part = p;
            r->walk = (struct list_walk){.pages = 0};
            r->before_us = 0;
            r->new_shown = false;
            r->under_way = true;
            return;
        }
    }
    r->under_way = false;
}

static void begin(struct list_round *r, const struct leader_state *s, int64_t boot_us)
{
    r->due_us = boot_us + r->every_us;
    r->began_us = boot_us;
    r->absent_n = 0;
    r->oldest_us = USEC_NEVER;
    want_parts(r, s, boot_us);
    next_part(r);
    r->n += r->under_way;
}

/* Where filters are late a round shows what is new by itself. */
static void news_begin(struct list_round *r, const struct leader_state *s, usec_t aws_us,
                       int64_t boot_us)
{
    bool watch = boot_us < s->watch_until_us;
    if (r->new_from_us == 0) { /* what is older is the sweep's */
        r->new_from_us = MAX(1, aws_us - NEW_FIRST_US);
    }
    r->new_open |= watch;
    if (r->news_on || !r->new_open || boot_us < r->new_due_us) {
        return;
    }
    r->news_on = !r->late;
    r->news = (struct list_walk){.pages = 0};
    r->new_due_us = boot_us + NEW_EVERY * r->interval_us;
    r->new_open = watch; /* else these are the last */
    r->new_began_us = MAX(0, aws_us);
}

int64_t list_round_wait_us(struct list_round *r, const struct leader_state *s, usec_t now_us,
                           int64_t skew_us, int64_t boot_us)
{
    if (!r->under_way && boot_us >= r->due_us) {
        begin(r, s, boot_us);
    }
    news_begin(r, s, now_us + skew_us, boot_us);
    int64_t token_us = token_bucket_wait_us(&r->pages, boot_us);
    int64_t round_us = MAX(1, r->due_us - boot_us);
    if (r->under_way) {
        round_us = MAX(token_us, MAX(r->walk.next_us, r->page_us) - boot_us);
    }
    int64_t behind_us = r->page_us + r->interval_us / 2; /* the rounds go first */
    int64_t news_us = MAX(token_us, MAX(r->news.next_us, behind_us) - boot_us);
    r->asks_new = r->news_on && news_us < round_us;
    return MAX(0, r->asks_new ? news_us : round_us);
}

int64_t list_round_urgent_wait_us(const struct list_round *r, int64_t boot_us)
{
    return MAX(0, r->page_us - boot_us);
}

void list_round_sent(struct list_round *r, int64_t boot_us)
{
    (void)token_bucket_take(&r->pages, boot_us); /* an urgent one may find none */
    r->page_us = boot_us + r->interval_us / GAPS;
}

/* New is what was made since the last whole look for it, by AWS' clock. */
static usec_t new_from(const struct list_round *r, const struct leader_state *s)
{
    return MAX(s->watch_from_us, MIN(r->new_from_us, r->new_began_us));
}

bool list_round_is_first_try(const struct list_round *r)
{
    return (r->asks_new ? r->news : r->walk).failures == 0;
}

int64_t list_round_yields_us(int64_t wait_us, bool sweep_asked)
{
    return wait_us == 0 && !sweep_asked ? YIELD_US : wait_us;
}

void list_round_query(struct list_round *r, const struct leader_state *s, const char *job_prefix,
                      int64_t skew_us, int64_t boot_us, struct job_list_query *ret)
{
    static const char *const status[LIST_PART_COUNT] = {
        [LIST_LIVE] = "InProgress", [LIST_STOPPING] = "Stopping"};
    ASSERT(r->asks_new || r->under_way);
    enum list_part part = r->asks_new ? LIST_ALL : r->part;
    usec_t since_us =
        r->asks_new ? MAX(0, new_from(r, s) - NEW_MARGIN_US) : leader_list_since(s, boot_us);
    if (since_us == USEC_NEVER) { /* all has ended since the round began */
        since_us = r->new_from_us;
    }
    *ret = (struct job_list_query){.status = status[part] != NULL ? status[part] : "",
                                   .pool = part == LIST_POOLS ? "Available" : "",
                                   .created_after = leader_list_from(since_us, skew_us),
                                   .created_before = r->asks_new ? 0 : r->before_us};
    _Static_assert(sizeof ret->contains >= JOB_PREFIX_MAX + 2, "a prefix fits");
    leader_list_prefix(job_prefix, ret->contains);
    (void)snprintf(ret->token, sizeof ret->token, "%s",
                   r->asks_new ? r->news.token : r->walk.token);
    list_round_sent(r, boot_us);
}

static bool is_running(const struct live_stray *st)
{
    return st->ended_us == 0 && strcmp(st->row.status, "InProgress") == 0;
}

/* The part under way is to show it. */
static bool is_expected(const struct list_round *r, const struct live_attempt *a)
{
    bool stopping = a->p.state == ATTEMPT_STOPPING;
    return r->part == LIST_STOPPING
               ? stopping
               : is_listed_live(a->p.state) || (r->part == LIST_ALL && stopping);
}

/* The rest of this List has nothing that we wait for. */
static bool all_seen(const struct list_round *r, const struct leader_state *s)
{
    if (r->part == LIST_POOLS) {
        return false;
    }
    for (size_t i = 0; i < s->attempts_n; i++) {
        const struct live_attempt *a = s->attempts[i];
        if (is_expected(r, a) && a->listed_round != r->n) {
            return false;
        }
    }
    for (size_t i = 0; i < s->strays_n && r->part == LIST_LIVE; i++) {
        if (is_running(&s->strays[i]) && s->strays[i].listed_round != r->n) {
            return false;
        }
    }
    for (size_t i = 0; i < s->pools_n && r->part == LIST_ALL; i++) {
        if (s->pools[i]->row.state == POOL_AVAILABLE && s->pools[i]->listed_round != r->n) {
            return false;
        }
    }
    return true;
}

/* True: a live attempt's. */
static bool mark(struct list_round *r, struct leader_state *s, const struct job_summary *job,
                 int64_t boot_us)
{
    struct live_attempt *a = leader_state_attempt_named(s, job->name);
    r->oldest_us = MIN(r->oldest_us, job->created);
    if (a != NULL) {
        a->listed_round = r->n;
        a->listed_us = boot_us;
        a->absent = 0;
        a->absent_due_us = a->unfound_us = 0;
        return true;
    }
    struct live_stray *st = leader_stray_named(s, job->name);
    if (st != NULL) {
        st->listed_round = r->n;
        return false;
    }
    for (size_t i = 0; i < s->pools_n; i++) {
        if (strcmp(s->pools[i]->row.job.s, job->name) == 0) {
            s->pools[i]->listed_round = r->n;
        }
    }
    return false;
}

/* A pool that was available and is not in a whole list of those is looked at. */
static void pools_absent(const struct list_round *r, struct leader_state *s)
{
    for (size_t i = 0; i < s->pools_n; i++) {
        struct live_pool *p = s->pools[i];
        bool older = p->described_us > 0 && p->described_us < r->began_us;
        if (p->row.state == POOL_AVAILABLE && p->seen && older && p->listed_round != r->n) {
            p->look_now = s->act = true;
        }
    }
}

/* A stray that was running has ended when a whole list of running jobs does not show it. Each round
 * looks at one, so that a List that leaves out ours stays cheap. */
static void strays_absent(const struct list_round *r, struct leader_state *s)
{
    struct live_stray *oldest = NULL;
    for (size_t i = 0; i < s->strays_n; i++) {
        struct live_stray *st = &s->strays[i];
        bool older = st->described_us > 0 && st->described_us < r->began_us;
        if (is_running(st) && older && st->listed_round != r->n &&
            (oldest == NULL || st->described_us < oldest->described_us)) {
            oldest = st;
        }
    }
    if (oldest != NULL) {
        oldest->look_now = s->act = true;
    }
}

static void part_over(struct list_round *r, struct leader_state *s, bool whole)
{
    r->whole[r->part] = whole;
    if (whole && r->part == LIST_POOLS) {
        pools_absent(r, s);
    } else if (whole && r->part == LIST_LIVE) {
        strays_absent(r, s);
    } else if (r->part == LIST_ALL && r->new_shown) {
        r->new_from_us = MAX(r->new_from_us, r->new_began_us);
    }
    next_part(r);
}

/* The newest of ours that is older than all that this round has shown; 0: there is none. */
static usec_t next_of_ours_us(const struct list_round *r, const struct leader_state *s)
{
    usec_t next = 0;
    for (size_t i = 0; i < s->attempts_n; i++) {
        const struct live_attempt *a = s->attempts[i];
        if (is_expected(r, a) && a->listed_round != r->n && a->created_us < r->oldest_us) {
            next = MAX(next, a->created_us);
        }
    }
    return next;
}

/* The List begins again at the next of ours. */
static void skip_others(struct list_round *r, const struct leader_state *s)
{
    usec_t next = next_of_ours_us(r, s);
    bool older = r->before_us == 0 || next < r->before_us - USEC_PER_SEC;
    if (r->part == LIST_ALL && next > 0 && older && r->n >= r->skip_from_n) {
        r->before_us = (next / USEC_PER_SEC + 1) * USEC_PER_SEC;
        r->walk.token[0] = '\0';
    }
}

/* ours: the page shows one of ours. While a Create may land unnoticed, what is new may be ours,
 * too: up to NEW_PAGES of it are listed before jobs of others are skipped. */
static void round_page(struct list_round *r, struct leader_state *s, bool ours, const char *next,
                       int64_t boot_us)
{
    bool skipped = r->before_us > 0 && r->walk.token[0] == '\0';
    enum list_walk_then then = list_walk_page(&r->walk, next, pages_max[r->part]);
    bool from_newest = r->part == LIST_ALL && r->before_us == 0;
    r->new_shown |= from_newest && (r->oldest_us <= new_from(r, s) || then == LIST_WALK_OVER);
    bool new_over = boot_us >= s->watch_until_us || r->new_shown || r->before_us > 0;
    if (then == LIST_WALK_ON && new_over && all_seen(r, s)) {
        part_over(r, s, true);
    } else if (then != LIST_WALK_ON) {
        part_over(r, s, then == LIST_WALK_OVER);
    } else if (skipped && !ours) { /* this page should have shown it */
        r->skip_from_n = r->n + SKIP_AGAIN;
        part_over(r, s, false);
    } else if (!ours && (new_over || r->walk.pages >= NEW_PAGES)) {
        skip_others(r, s);
    }
}

static void news_page(struct list_round *r, const char *next)
{
    enum list_walk_then then = list_walk_page(&r->news, next, NEWS_MAX);
    r->news_on = then == LIST_WALK_ON;
    if (then == LIST_WALK_OVER) {
        r->new_from_us = MAX(r->new_from_us, r->new_began_us);
    }
}

void list_round_page(struct list_round *r, struct leader_state *s, const struct job_summary *jobs,
                     size_t n, const char *next, int64_t boot_us)
{
    bool ours = false;
    for (size_t i = 0; i < n; i++) {
        ours |= mark(r, s, &jobs[i], boot_us);
    }
    if (next[0] != '\0' && n < JOB_LIST_PAGE && !r->late) { /* and all of it again */
        r->late = true;
        r->news_on = r->asks_new = false;
        r->oldest_us = USEC_NEVER;
        memset(r->left, 0, sizeof r->left);
        r->left[LIST_ALL] = true;
        next_part(r);
    } else if (r->asks_new) {
        news_page(r, next);
    } else {
        round_page(r, s, ours, next, boot_us);
    }
}

void list_round_refused(struct list_round *r, const struct aws_failure *f, int64_t boot_us)
{
    struct list_walk *w = r->asks_new ? &r->news : &r->walk;
    bool cut = list_walk_refused(w, f, r->interval_us, boot_us) == LIST_WALK_CUT;
    if (cut && r->asks_new) {
        r->news_on = false;
        r->new_open = true;
    } else if (cut) {
        r->due_us = MAX(MIN(r->due_us, boot_us + r->interval_us), r->walk.next_us);
        r->under_way = false;
    }
}

/* It was to be in what was listed to the end, and was not. */
static bool is_absent(const struct list_round *r, const struct live_attempt *a, int64_t boot_us)
{
    bool stopping = a->p.state == ATTEMPT_STOPPING;
    return (!stopping || r->whole[LIST_STOPPING]) && a->listed_round != r->n &&
           a->p.described_us < r->began_us && boot_us >= a->absent_due_us;
}

static int64_t known_us(const struct live_attempt *a)
{
    return MAX(a->p.described_us, a->listed_us);
}

/* So long it may be unseen before it is described in rotation. */
static int64_t unseen_us(const struct list_round *r)
{
    return UNSEEN_MAX * r->every_us * (r->every_us > r->interval_us ? UNSEEN_RARE : 1);
}

/* Neither this round nor the one before has shown it, and nothing else tells of it. */
static bool is_out_of_reach(const struct list_round *r, const struct live_attempt *a,
                            int64_t boot_us)
{
    return a->listed_round + 1 < r->n && boot_us - known_us(a) > unseen_us(r) &&
           boot_us >= a->absent_due_us;
}

static bool may_look(struct list_round *r, bool rotation, int64_t boot_us)
{
    return rotation ? token_bucket_take(&r->looks, boot_us) : ++r->absent_n <= ABSENT_MAX;
}

struct live_attempt *list_round_absent(struct list_round *r, struct leader_state *s,
                                       int64_t boot_us)
{
    struct live_attempt *oldest = NULL;
    bool rotation = r->late || !r->whole[LIST_LIVE];
    if (r->n == 0 || (r->under_way && !rotation)) {
        return NULL;
    }
    for (size_t i = 0; i < s->attempts_n; i++) {
        struct live_attempt *a = s->attempts[i];
        bool exists = is_listed_live(a->p.state) || a->p.state == ATTEMPT_STOPPING;
        bool wanted = rotation ? is_out_of_reach(r, a, boot_us) : is_absent(r, a, boot_us);
        if (exists && wanted && !a->p.look_now && !a->p.describe_in_flight &&
            (oldest == NULL || known_us(a) < known_us(oldest))) {
            oldest = a;
        }
    }
    if (oldest == NULL || !may_look(r, rotation, boot_us)) {
        return NULL;
    }
    oldest->absent = MIN(oldest->absent + 1, rotation ? 1 : ABSENT_DOUBLINGS);
    oldest->absent_due_us = boot_us + (r->interval_us << oldest->absent);
    return oldest;
}
