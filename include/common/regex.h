/* Regular expressions of users: Python's syntax, as PCRE2 reads it. A match is bounded in steps,
 * depth and memory, whatever the pattern. */
#pragma once
#include "err.h"
#include "str.h"

/* True when the pattern compiles; *ret_groups: how many groups it captures. False: err says what is
 * wrong and at which character. */
bool regex_check(const char *pattern, int *ret_groups, struct err *err) MUST_CHECK;

struct regex;
/* ERR_INVALID as above. The caller frees it. */
bool regex_new(const char *pattern, struct regex **ret, struct err *err) MUST_CHECK;
void regex_free(struct regex *re); /* NULL ignored */
enum regex_result {
    REGEX_NONE,
    REGEX_FOUND,
    REGEX_LIMIT /* it was given up: the pattern takes too many steps on this text */
};
/* The first group of the first match anywhere in text, borrowed from it. NONE also when the pattern
 * has no group or that group took no part. Bytes that are no UTF-8 match nothing. */
enum regex_result regex_first_group(struct regex *re, struct str text, struct str *ret);
