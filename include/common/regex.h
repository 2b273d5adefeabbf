/* Regular expressions of users: Python's syntax, as PCRE2 reads it. */
#pragma once
#include "err.h"

/* True when the pattern compiles; *ret_groups: how many groups it captures. False: err says what is
 * wrong and at which character. */
bool regex_check(const char *pattern, int *ret_groups, struct err *err) MUST_CHECK;
