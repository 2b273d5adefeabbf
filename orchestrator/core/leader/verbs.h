/* What people may do to a campaign in each of its states: operation_table.def, and its words.
 * Pure. */
#pragma once
#include "core/model.h"

enum verb {
    VERB_RETRY,
    VERB_SKIP,
    VERB_HOLD, /* waiting parts start when a person releases them */
    VERB_RELEASE,
    VERB_PAUSE,
    VERB_RESUME,
    VERB_DRAIN,
    VERB_CANCEL,
    VERB_ARCHIVE,
    VERB_COUNT
};
enum verb_answer {
    VERB_CARRIED_OUT, /* done, or done already; states stay */
    VERB_REOPENS,     /* what has ended among stage and campaign runs again */
    VERB_GOES_ON,     /* a held stage runs */
    VERB_CANCELLED,   /* this and the following: refused */
    VERB_CANCELLING,
    VERB_ENDED,
    VERB_STAGE_CANCELLED,
    VERB_GATED,
    VERB_NOT_ENDED,
    VERB_ARCHIVED,
    VERB_NO_SUCH_TYPE, /* no cell: of a retry on a type that the stage does not list */
    VERB_ANSWER_COUNT
};

const char *verb_name(enum verb v);
enum verb verb_parse(const char *s); /* VERB_COUNT: none */
/* The cell of the table. A state of a newer version is refused as ended. What is wanted of a
 * campaign that has ended is of no account: a cancel may have come too late. */
enum verb_answer verb_answer(enum verb v, enum campaign_state campaign, enum wanted wanted,
                             enum stage_state stage);
/* For all stages of a campaign together: refused only when no state of a stage would allow it. */
enum verb_answer verb_answer_any(enum verb v, enum campaign_state campaign, enum wanted wanted);
/* For a campaign that is wanted to run and that gates alone hold. */
enum verb_answer verb_answer_gated(enum verb v);
/* For a campaign that is archived, or is being. */
enum verb_answer verb_answer_archived(enum verb v);
bool verb_refused(enum verb_answer a);
/* Why, for people; "" when it is not refused. */
const char *verb_refusal(enum verb_answer a);
/* Whether it moves parts; from which state, and to which. */
bool verb_moves_parts(enum verb v);
enum task_state verb_parts_from(enum verb v);
enum task_state verb_parts_to(enum verb v);
