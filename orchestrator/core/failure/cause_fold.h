/* A text made ready to be searched: in lower case with single blanks, and at the same places as it
 * was written. */
#pragma once
#include "common/str.h"
#include "core/model.h"

/* FailureReason has at most 1024 characters, API texts a few hundred. */
#define CAUSE_TEXT_MAX   4096
#define CAUSE_THREES_MAX 16384

struct folded {
    struct str text;                        /* with its lines */
    char s[CAUSE_TEXT_MAX + 1];             /* lower case */
    char raw[CAUSE_TEXT_MAX + 1];           /* as s, in its own case */
    uint64_t threes[CAUSE_THREES_MAX / 64]; /* which three characters follow each other somewhere */
};
void cause_fold(struct str text, struct folded *ret);
/* Lower case; "~word" finds it as a whole word only, "" is everywhere. */
bool cause_has(const struct folded *f, const char *pattern);
/* Where `word` stands as a whole word at or behind `from`; NULL when nowhere. */
const char *cause_find_word(const char *s, const char *from, const char *word);
/* A number of at most 5 digits behind blanks and separators; false when there is none. */
bool cause_number_at(const char *p, int *ret);
bool cause_is_word(char c);
