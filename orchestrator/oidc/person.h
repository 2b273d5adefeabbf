/* Who a login is of, and what that person may do here: from the claims of an ID token, or from what
 * a trusted proxy says. Pure. */
#pragma once
#include "common/json.h"

#define PERSON_PROJECTS_MAX 8
#define PERSON_ID_TEXT      33
#define PERSON_ID_BEGINS    "sso-"
#define PERSON_NAME_TEXT    260 /* 64 characters */

struct person_rules {           /* strings are borrowed; "" where none is set */
    const char *role_claim;     /* a member of the claims, or a path of names joined by dots */
    const char *roles;          /* "admin=ops, operator=data, viewer=*" */
    const char *projects_claim; /* "": every project */
};
struct person {              /* strings are of the claims */
    char id[PERSON_ID_TEXT]; /* of the token that stands for this person: "sso-" and 24 digits */
    char name[PERSON_NAME_TEXT];
    const char *role;
    const char *projects[PERSON_PROJECTS_MAX]; /* n 0: all */
    size_t projects_n;
};
/* True when these can be rules; else ERR_INVALID with what to write. */
bool person_rules_check(const struct person_rules *rules, struct err *err) MUST_CHECK;
/* The id of the token that stands for sub, a text that is unique at the issuer. */
void person_id(const char *issuer, const char *sub, char ret[static PERSON_ID_TEXT]);
/* claims has a text `sub`, unique at the issuer. The highest role that one of the values of the
 * claim gives counts. ERR_FORBIDDEN: none does, or no project. */
bool person_read(const struct person_rules *rules, const char *issuer, const json_t *claims,
                 struct person *ret, struct err *err) MUST_CHECK;
