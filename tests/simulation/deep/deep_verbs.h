/* Verbs of people in every state, and the cells of operation_table.def that they have met. */
#pragma once
#include "core/leader/verbs.h"
#include "deep.h"
#include "store/api/campaigns.h"

/* Beside the states themselves: CANCELLING, GATED, ARCHIVED. */
#define VERBS_CAMPAIGNS (CAMPAIGN_STATE_COUNT + 3)

struct verb_cells { /* value */
    bool met[VERB_COUNT][VERBS_CAMPAIGNS][STAGE_STATE_COUNT];
};

/* In worlds that have such people: something is asked, maybe at a time when it is refused. */
bool verbs_verb(void);
/* Of the table: a state, or one of the three beside them. */
size_t verbs_row(const struct campaign *c, const struct apidb_wish *now);
/* `verb` is asked of the stage of that number, 0: of all, in the transaction that has locked the
 * campaign's row. */
void verbs_met(const struct campaign *c, enum verb verb, const struct apidb_wish *now,
               int64_t stage_id);
/* As api/handlers decide: false with the refusal's words. */
bool verbs_allow(enum verb verb, const struct apidb_wish *now, struct err *err);
/* stage_id 0: of all stages, or of any. False: it was refused, or could not be asked. */
bool verbs_ask(struct campaign *c, enum verb v, int64_t stage_id);
void verbs_start(void);
void verbs_soon(struct campaign *c);     /* it was submitted just now */
void verbs_take(struct verb_cells *ret); /* what the world that ends has met */
void verbs_add(struct verb_cells *sum, const struct verb_cells *one);
/* least >= 0: those that nobody has met, too, and false when fewer than that were met. */
bool verbs_tell(const struct verb_cells *sum, int least);

/* deep_seldom.c, in the same worlds */
void seldom_start(void);
void seldom_moved(const char *statement); /* a droverd runs that query */
void seldom_between(void);                /* two transactions of a droverd */
/* All has ended and was judged: every campaign is archived, and its rows must go. */
void seldom_end(void);
bool seldom_at_end(void);
/* Can a campaign in that row have a stage in that state? */
bool seldom_can_be(size_t row, size_t stage);

/* deep_people.c: in one transaction, as api/handlers/campaigns.c does. */
bool people_want(struct campaign *c, enum verb verb, struct err *err);
