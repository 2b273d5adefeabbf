/* A setting of drover-worker, and its value: numbers like 1e6, True, None, lists in JSON or Python
 * syntax. img2dataset's command line reads Python literals, so its users' scripts contain them. */
#pragma once
#include "common/buf.h"

enum setting_kind {
    SETTING_TEXT,
    SETTING_OPTIONAL, /* a text; None or nothing: "" */
    SETTING_LIST,     /* the same; a further value is appended with a comma */
    SETTING_WORDS,    /* some of `words`, with commas between */
    SETTING_INT,      /* also 1e6 or 1_000 */
    SETTING_REAL,     /* above 0, or inf */
    SETTING_FLAG,     /* --NAME alone is true, --noNAME false */
};
struct setting {
    const char *name;
    const char *flag; /* a second name of the flag; NULL: no second name */
    enum setting_kind kind;
    const char *dflt;  /* NULL: required, not empty */
    int64_t min, max;  /* of INT */
    size_t offset;     /* in the command's struct: char *, int64_t, double or bool */
    const char *words; /* "a, b": the only ones that are taken; NULL: any text */
    const char *help;
};

/* The row of that name or second name; NULL: none. */
const struct setting *setting_find(const struct setting *rows, size_t rows_n, const char *name);
/* The row whose name is nearest to one that no row has; NULL: none is near. */
const struct setting *setting_nearest(const struct setting *rows, size_t rows_n, const char *name);
/* True when the row can have the value; else "NAME 'value': expected ..." and a line feed are
 * appended. */
bool setting_check(const struct setting *row, const char *value, struct buf *fault);
/* The index of a word in "a, b"; -1: it is not there. */
int setting_word(const char *words, struct str word);

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
