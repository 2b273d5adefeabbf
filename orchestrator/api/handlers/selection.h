/* Which parts a list shows or a change is about: one grammar for query parameters, filters and
 * selectors.
 *   filter  = term {"AND" term}
 *   term    = "state" "=" word | "cause" "=" word | "cause" "IN" "(" list ")"
 *           | "attempts" ">=" number | "cost" ">=" dollars
 *           | "updated" (">=" | "<") time | "text" "=" (word | '"' characters '"')
 *   list    = word {"," word}
 * text is part of the input's address or of the reason, in letters of any case; cost is in USD, of
 * all attempts; a time is like 2026-11-27T12:00:00Z.
 * A selector is a JSON object of stage, state, cause, parts and filter; cause and parts are lists,
 * as text or as arrays. As text, parts take ranges: "8,70-72". Each term stands once.
 * ERR_MALFORMED for what is not understood, ERR_INVALID for an empty list, filter or selector: it
 * never means "all". */
#pragma once
#include "common/err.h"
#include "common/json.h"
#include "core/model.h"

#define SELECTION_PARTS_MAX 10000
#define SELECTION_TEXT_MAX  128 /* bytes */

struct selection {
    const char *stage; /* borrowed; NULL: every stage */
    int state;         /* enum task_state, -1: every state */
    int16_t causes[CAUSE_COUNT];
    size_t causes_n;                           /* 0: every cause */
    int64_t attempts_min;                      /* 0: any number */
    musd_t cost_min_musd;                      /* 0: any cost */
    usec_t updated_from_us, updated_before_us; /* when it last changed; 0: any time */
    char text[SELECTION_TEXT_MAX + 1];         /* "": any */
    int32_t parts[SELECTION_PARTS_MAX];
    size_t parts_n; /* 0: every part */
};
void selection_init(struct selection *s);
/* True when it asks for attempts, cost, time or text. A list may, without a cause; a retry or skip
 * may not. */
bool selection_for_lists_only(const struct selection *s);
/* NULL texts say nothing. */
bool selection_query(struct selection *s, const char *state, const char *cause, const char *filter,
                     struct err *err) MUST_CHECK;
/* json NULL: an empty selector. */
bool selection_json(struct selection *s, const json_t *json, struct err *err) MUST_CHECK;
/* The selector of an operation, as the leader reads it: stage, cause and parts as arrays. The
 * caller owns it. */
json_t *selection_to_json(const struct selection *s);
