/* Parses values of settings: numbers like 1e6, True, None, lists in JSON or Python syntax.
 * img2dataset's command line reads Python literals, so its users' scripts contain them. */
#pragma once
#include "common/str.h"

/* None, none, null or empty. */
bool value_is_none(const char *text);
/* true, True, 1, yes; false, False, 0, no. */
bool value_flag(const char *text, bool *ret) MUST_CHECK;
/* A whole number from min to max, also as 1_000, 1e6 or 256.0. */
bool value_int(const char *text, int64_t min, int64_t max, int64_t *ret) MUST_CHECK;
/* A number above 0, or inf. */
bool value_real(const char *text, double *ret) MUST_CHECK;
/* 'x' and "x" to x, in place. */
void value_unquote(char *text);
/* Split ["a", "b"], ['a', 'b'], ('a', 'b'), [a, b] or a,b into at most words_max words. *store
 * holds their text; the caller frees it, also after an error. -1: *ret_why says what is wrong. */
int value_list(const char *text, char **store, char **words, int words_max, const char **ret_why);
