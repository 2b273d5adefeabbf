/* Rules for texts that parameters and bodies share. */
#pragma once
#include "common/str.h"

/* The whole of v matches the pattern, PCRE2's and ECMAScript's syntax where they are the same. */
bool text_matches(const char *pattern, struct str v) MUST_CHECK;
int64_t text_length(struct str v); /* characters of UTF-8 */
