/* Which pages of ListTrainingJobs are asked for, when, and what follows when a live job is in none.
 *
 * One round of Lists stands for hundreds of Describes. A round asks for what is in progress, what
 * is stopping and what pools are available. What has ended since the oldest live job is not listed:
 * a live attempt that a whole round does not show has moved, and is described; so is a stray, one a
 * round. While a Create may land unnoticed, all that is new is listed behind the rounds, with the
 * pages that they leave.
 *
 * AWS documents that it cuts a page of a hundred jobs of the whole account first and filters it
 * then. Such a service shows itself by a short page that is not the last; from then on a round asks
 * for everything, newest first, for a few pages, and stops when all live names were seen. A page
 * that shows none of ours is followed by the one that begins at the next of ours, by its time of
 * creation. What was not seen is described in rotation, the one longest unseen first, as often as
 * the rate allows.
 *
 * Rules:
 *  1. What a page shows is used when it comes. A page that was refused is asked for again, alone,
 *     after a back-off; the others of its round are not.
 *  2. Pages are paced: at most 8 in three intervals in the long run, never two at once. AWS gives a
 *     whole account about two Lists a second.
 *  3. A page says only that a job is worth a Describe (protocol.h P6).
 * Pure; times are CLOCK_BOOTTIME unless named otherwise. */
#pragma once
#include "common/aws_outcome.h"
#include "common/token_bucket.h"
#include "job_list.h"

/* From page to page of one List; all zero at its beginning. */
struct list_walk {
    char token[JOB_LIST_TOKEN_MAX]; /* of the page asked for next; "": the first */
    int pages, failures;            /* failures: of this page, in a row */
    int64_t next_us;                /* asked for not before */
};
enum list_walk_then {
    LIST_WALK_ON,   /* a page is to be asked for */
    LIST_WALK_OVER, /* that was the last */
    LIST_WALK_CUT   /* given up before the last */
};
/* A page came whose next is `next`, "" for none. A token that comes again ends the List. */
enum list_walk_then list_walk_page(struct list_walk *w, const char *next, int pages_max);
/* The page was not given. interval_us: of the rounds; the back-off follows it. */
enum list_walk_then list_walk_refused(struct list_walk *w, const struct aws_failure *f,
                                      int64_t interval_us, int64_t boot_us);

enum list_part {
    LIST_LIVE,     /* in progress */
    LIST_STOPPING, /* when something of ours is */
    LIST_POOLS,    /* available, when we have one */
    LIST_ALL,      /* in place of all of these where filters are late */
    LIST_PART_COUNT
};
struct list_round {
    int64_t interval_us;
    int64_t every_us;                  /* from round to round: interval_us, or more */
    struct token_bucket pages, looks;  /* looks: Describes in rotation */
    int64_t n;                         /* of this round, from 1; 0: none yet */
    bool under_way, late;              /* late: filters come after the cut */
    bool left[LIST_PART_COUNT];        /* still to be asked for in this round */
    bool whole[LIST_PART_COUNT];       /* was told to the end */
    enum list_part part;               /* that is being asked for */
    struct list_walk walk;             /* of it */
    struct list_walk news;             /* of what is new, behind the rounds */
    int64_t began_us, due_us, page_us; /* of the round; the next; the next page of any List */
    usec_t oldest_us;                  /* CreationTime of what this round has shown */
    usec_t before_us;                  /* the walk began again before it; 0: it did not */
    int64_t skip_from_n;               /* no round before this one skips others' jobs */
    bool new_shown;                    /* the walk has shown all that is new */
    int absent_n;                      /* Describes asked for since it ended */
    bool news_on, asks_new;            /* news are under way; the page under way is of them */
    bool new_open;                     /* they are to come once more */
    int64_t new_due_us;
    usec_t new_began_us, new_from_us; /* AWS' wall clock: of those under way; of the last whole */
};
/* interval_us: from round to round. */
void list_round_init(struct list_round *r, int64_t interval_us, int64_t boot_us);
/* From round to round it takes so long from now on, at least interval_us: events tell of what
 * moves. A shorter time holds for the round that is waited for, too. */
void list_round_every(struct list_round *r, int64_t every_us, int64_t boot_us);
/* Forgets the round under way and what was learned; the pace stays. */
void list_round_clear(struct list_round *r);

/* How long until a page is to be asked for; 0: now. Begins a round that is due. now_us: wall. */
int64_t list_round_wait_us(struct list_round *r, const struct leader_state *s, usec_t now_us,
                           int64_t skew_us, int64_t boot_us);
/* The page to ask for. It counts as sent. skew_us: see leader_list_from. */
void list_round_query(struct list_round *r, const struct leader_state *s, const char *job_prefix,
                      int64_t skew_us, int64_t boot_us, struct job_list_query *ret);
/* The page came, and leader_listed was told of each job. */
void list_round_page(struct list_round *r, struct leader_state *s, const struct job_summary *jobs,
                     size_t n, const char *next, int64_t boot_us);
void list_round_refused(struct list_round *r, const struct aws_failure *f, int64_t boot_us);
/* After a page: the next attempt that is worth a Describe as no page has shown it; NULL: no
 * more. Pools of which that is true are told. */
struct live_attempt *list_round_absent(struct list_round *r, struct leader_state *s,
                                       int64_t boot_us);

/* The page to ask for was not refused before. */
bool list_round_is_first_try(const struct list_round *r);
/* wait_us as list_round_wait_us gives it, or longer: the List of the sweep goes first, since
 * intents wait for it. */
int64_t list_round_yields_us(int64_t wait_us, bool sweep_asked);
/* Another List, of the sweep, goes first: how long it waits. The page counts when it is sent. */
int64_t list_round_urgent_wait_us(const struct list_round *r, int64_t boot_us);
void list_round_sent(struct list_round *r, int64_t boot_us);
