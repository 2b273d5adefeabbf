/* The orphan sweep: jobs at AWS that read like ours and that no live attempt stands for. A database
 * that failed over may have lost its newest commits, a restored one more, and with them the rows
 * of jobs that run and cost money; a Create that was given up may land late. So before the first
 * intent of an epoch everything with our prefix that is younger than the newest intent we know of
 * is listed, and later each List is looked through. One by one it is decided whose such a job is:
 *  - it has the very name that one of our parts would have had: it is ours. It is adopted as that
 *    attempt, of unknown outcome; where that cannot be, it is held as a stray;
 *  - its attempt is void: it goes on when nothing has replaced it, else it is a stray to be
 *    stopped. A job that says another owner is that one's;
 *  - it carries our drover-install tag: a stray of a campaign that we have lost;
 *  - anything else is nobody's business.
 * No intent commits before all that the first list has shown is decided. A job that cannot be, for
 * minutes, is set aside: it holds up nobody else, one of them is asked about again a minute, and
 * while it lives its own part does not start. None is given up. Pure; times are CLOCK_BOOTTIME. */
#pragma once
#include "adoption.h"
#include "common/aws_outcome.h"
#include "job_list.h"
#include "list_round.h"
#include "tx_error.h"

struct sweep_job { /* a job that nobody has decided on */
    struct unknown_name job;
    char arn[257];
    int failures;
    int repeats;                 /* in a row */
    int untold;                  /* Describes in a row that did not say whose it is */
    int64_t next_us;             /* asked about not before */
    bool was_aside;              /* set aside before */
    bool lives;                  /* the last Describe showed it, and no end of it */
    struct adoption_place place; /* of the task, once it is known */
    int64_t task_id;             /* ours by its name; 0: it is not */
};
struct sweep {   /* all zero at first */
    bool listed; /* the first list of this epoch was looked through */
    bool complete;
    int64_t list_us; /* the first list is asked for not before */
    struct sweep_job *jobs;
    size_t n;
    struct sweep_job *aside; /* oldest first */
    size_t aside_n;
    int64_t aside_us; /* the next of them is asked about not before */
    int adopted;
    struct name_set seen; /* decided, in jobs, or aside */
};
/* Frees what it holds; all zero again. */
void sweep_clear(struct sweep *w);

/* A page of the first list came whose next is `next`: as list_walk_page, for as many pages as an
 * account can reasonably have. */
enum list_walk_then sweep_list_page(struct list_walk *walk, const char *next);
/* The first list is to be asked for. */
bool sweep_list_due(const struct sweep *w, int64_t boot_us);
/* It is asked for. Returns what it must list from (wall), and has later Lists show what an older
 * leader has signed: it may land until its signatures are over. newest_us, void_us: as
 * adoption_since takes them. */
usec_t sweep_list_begins(struct leader_state *s, usec_t newest_us, usec_t void_us, int64_t lease_us,
                         int64_t signature_us, int64_t boot_us);
/* It was answered and looked through, or not. */
void sweep_list_answered(struct sweep *w, bool looked_through, int64_t boot_us);
/* Of names[n] the rows do not know unknown[unknown_n]: those are to be decided, the others are. */
void sweep_add(struct sweep *w, const char *const *names, size_t n,
               const struct unknown_name *unknown, size_t unknown_n, const struct job_summary *jobs,
               size_t jobs_n);

/* The first job from `at` on that is due; w->n: none. At 0 the next that was set aside comes
 * back. */
size_t sweep_due(struct sweep *w, size_t at, int64_t boot_us);
enum sweep_ask {
    SWEEP_ASK_DESCRIBE,
    SWEEP_ASK_TAG,
    SWEEP_ASK_NOTHING, /* nobody's: it cannot be asked about */
};
/* Its name is looked up among our parts first; a void attempt's name is ours. */
bool sweep_wants_task(const struct sweep_job *u);
enum sweep_ask sweep_question(const struct sweep_job *u);

enum sweep_then {
    SWEEP_DECIDED, /* it leaves */
    SWEEP_LATER,   /* asked again after a back-off */
    SWEEP_REPEAT,  /* AWS does not know it, or the rows refuse it: tried again, then set aside */
    SWEEP_ASIDE,   /* set aside at once */
    SWEEP_LOOK,    /* it is described */
    SWEEP_ADOPT,   /* as the attempt its name says */
    SWEEP_REVIVE,  /* its void attempt goes on */
    SWEEP_HOLD,    /* as a stray */
    SWEEP_UNTOLD,  /* ours, but it does not say what it uses: as SWEEP_REPEAT; a person can look */
    SWEEP_ADOPTED, /* it is an attempt again: memory is read whole */
    SWEEP_STOP,    /* the leadership is lost */
};
/* f NULL: the tag has this value, "" when there is none. A refusal lasts. */
enum sweep_then sweep_tag_answered(const char *value, const char *install_id,
                                   const struct aws_failure *f);
/* job NULL: there is no such job. *ret_row: how it would be held as a stray; no name: it does not
 * say what it uses. A job under a name of ours that does not say whose it is is asked about again;
 * after SWEEP_UNTOLD_MOST in a row its name is believed. */
enum sweep_then sweep_described(struct leader_state *s, struct sweep_job *u,
                                const struct job_description *job, const struct aws_failure *f,
                                struct stray_row *ret_row);
/* The transaction of SWEEP_ADOPT or SWEEP_REVIVE. written: the rows took it. */
enum sweep_then sweep_taken(enum tx_meaning meaning, bool written, const struct stray_row *row);
/* The transaction of SWEEP_HOLD. */
enum sweep_then sweep_held(enum tx_meaning meaning);
/* What follows for job `at`, of what takes no further step. */
void sweep_apply(struct sweep *w, size_t at, enum sweep_then then, int64_t boot_us);

enum sweep_end {
    SWEEP_GOES_ON,
    SWEEP_READ_AGAIN, /* a job was adopted: slots, money, queues and pools are read whole again */
    SWEEP_COMPLETE,   /* just now: intents may commit from here on */
};
/* When nothing is under way. */
enum sweep_end sweep_end(struct sweep *w);
/* True when this part may not start, since a job under its name lives that is set aside. */
bool sweep_keeps_part(const struct sweep *w, int64_t campaign_id, int64_t task_id);
/* True when the leader may intend: once the sweep of its epoch is complete. */
bool sweep_lets_intend(const struct sweep *w, const struct leader_state *s);
