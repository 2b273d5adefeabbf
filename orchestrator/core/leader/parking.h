/* Who has to wait because the database would not take or give its rows: subjects that are parked
 * (a value is refused) and campaigns that are locked (by somebody else). A subject is tried again
 * after a pause that doubles: soon when locked, seldom when parked, since a person has to mend it.
 * Everybody else goes on. Pure; times are CLOCK_BOOTTIME. */
#pragma once
#include "leader_state.h"
#include "tx_error.h"

struct parking_subject {
    enum parked_kind kind;
    int64_t ref_id;      /* campaign, task, attempt or operation */
    int64_t campaign_id; /* 0: of no campaign that is known */
};
#define PARKING_CAMPAIGN(id)         ((struct parking_subject){PARKED_CAMPAIGN, (id), (id)})
#define PARKING_PART(campaign, task) ((struct parking_subject){PARKED_PART, (task), (campaign)})
#define PARKING_ATTEMPT(campaign, attempt)                                                         \
    ((struct parking_subject){PARKED_ATTEMPT, (attempt), (campaign)})
#define PARKING_OPERATION(campaign, operation)                                                     \
    ((struct parking_subject){PARKED_OPERATION, (operation), (campaign)})

/* Of which only the campaign's lock counts. */
#define PARKING_LOCK(campaign) ((struct parking_subject){PARKED_ATTEMPT, 0, (campaign)})

/* True when its transaction may be tried now: the subject and its campaign are not locked, and the
 * subject itself is not parked. A parked campaign says nothing of its attempts: they are observed,
 * stopped and settled. */
bool parking_may(const struct leader_state *s, const struct parking_subject *who, int64_t boot_us);
/* Notes for every campaign why none of its parts may start (live_campaign.set_aside), and forgets
 * locks that have not been met for as long as the last pause; not one of a campaign that is not in
 * memory, which would be forgotten with it. */
void parking_mark(struct leader_state *s, int64_t boot_us);
/* It is not in memory since its rows could not be read so far: what is live of it is not there
 * either. */
bool parking_unread(struct leader_state *s, int64_t campaign_id);
/* Its stage has not ended; of a campaign that cannot be read now nobody knows that it has. */
bool parking_stage_open(struct leader_state *s, int64_t campaign_id, int64_t stage_id);
bool parking_parked(const struct leader_state *s, const struct parking_subject *who);
/* When it is tried again; 0: at once. */
int64_t parking_next_us(const struct leader_state *s, const struct parking_subject *who);
/* How long until then; 0: it may be tried. */
int64_t parking_pause_us(const struct leader_state *s, const struct parking_subject *who,
                         int64_t boot_us);

/* A transaction of the subject failed: TX_BUSY locks its campaign (the subject itself when it has
 * none), TX_REFUSED parks it. True: not so before, so people are to be told. */
bool parking_failed(struct leader_state *s, const struct parking_subject *who, enum tx_meaning why,
                    int64_t boot_us);
enum parking_tell {
    PARKING_TELL_NOBODY,
    PARKING_TELL_PARKED, /* its row among the parked ones gets the latest reason */
    PARKING_TELL_LOCKED, /* the wait reasons of its campaign's parts say so */
};
/* Who is told of such a failure. news: what parking_failed returned. */
enum parking_tell parking_tells(enum tx_meaning why, bool news);
/* A campaign's wait reasons and statistics could not be written. True when that counts as its
 * failure: it is locked. No part needs such a report: one that is refused is only logged. */
bool parking_by_report(enum tx_meaning why);
/* True when reports of the campaign may be written; those of a locked one wait with it. */
bool parking_reports(const struct live_campaign *lc);
/* Its transaction was taken. True: it was parked, so its row has to go; until parking_gone says
 * that it has, its row does not park it again. A campaign whose spec is unreadable stays parked
 * until that is read. A lock stays noted: another row of the same campaign may still be locked. */
bool parking_over(struct leader_state *s, const struct parking_subject *who, int64_t boot_us);
void parking_gone(struct leader_state *s, const struct parking_subject *who);
/* The next whose row could not be taken out of the table and is to be tried again now. */
bool parking_row_due(struct leader_state *s, int64_t boot_us, struct parking_subject *ret);
/* A person wants something else of it: a parked subject is tried at once. */
void parking_hurry(struct leader_state *s, const struct parking_subject *who);
/* Everything of a campaign is forgotten, but for rows that have still to go. */
void parking_drop(struct leader_state *s, int64_t campaign_id);

/* The table as it is now. What it has and memory has not is parked, and tried at once; what memory
 * has and it has not was unparked by a person: tried at once. True: something was unparked. */
bool parking_take(struct leader_state *s, const struct parked_row *rows, size_t n);
/* The row of a parked subject is in the table from now on. */
void parking_kept(struct leader_state *s, const struct parking_subject *who);
/* True when the row of a locked campaign's stage does not say yet that its parts wait for that. */
bool parking_tells_stage(const struct live_stage *ls);
/* That they are locked is written: so it is in memory. */
void parking_told_stages(struct live_campaign *lc);
/* How many are parked. */
int64_t parking_n(const struct leader_state *s);
