/* A text made ready to be searched: in lower case with single blanks, and at the same places as it
 * was written. */
#pragma once
#include "common/str.h"
#include "core/model.h"

/* FailureReason has at most 1024 characters, API texts a few hundred. */
#define CAUSE_TEXT_MAX   4096
#define CAUSE_THREES_MAX 16384
/* The place in `threes` of three characters, and of the first three of a pattern that is written
 * out, which costs nothing when the program runs; none: the pattern is shorter. */
#define CAUSE_THREE(a, b, c)                                                                       \
    (((unsigned char)(a)*961U + (unsigned char)(b)*31U + (unsigned char)(c)) % CAUSE_THREES_MAX)
#define CAUSE_NO_THREE CAUSE_THREES_MAX
#define CAUSE_FIRST_THREE(s)                                                                       \
    (sizeof(s) < 5   ? CAUSE_NO_THREE                                                              \
     : (s)[0] == '~' ? CAUSE_THREE((s)[1], (s)[2], (s)[3])                                         \
                     : CAUSE_THREE((s)[0], (s)[1], (s)[2]))

struct folded {
    struct str text;                        /* with its lines */
    char s[CAUSE_TEXT_MAX + 1];             /* lower case */
    char raw[CAUSE_TEXT_MAX + 1];           /* as s, in its own case */
    uint64_t threes[CAUSE_THREES_MAX / 64]; /* which three characters follow each other somewhere */
};
void cause_fold(struct str text, struct folded *ret);
/* Lower case; "~word" finds it as a whole word only, "" is everywhere. */
bool cause_has(const struct folded *f, const char *pattern);
/* False: a pattern that begins with these three is not there. */
static inline bool cause_may_have(const struct folded *f, unsigned three)
{
    return three == CAUSE_NO_THREE || (f->threes[three / 64] >> (three % 64) & 1) != 0;
}
/* Both, within `reach` characters of each other: in one sentence. */
bool cause_has_near(const struct folded *f, const char *a, const char *b, size_t reach);
/* Where `word` stands as a whole word at or behind `from`; NULL when nowhere. */
const char *cause_find_word(const char *s, const char *from, const char *word);
/* Where a pattern stands at or behind `from`; NULL when nowhere. */
const char *cause_find(const struct folded *f, const char *from, const char *pattern);
/* A number of at most 5 digits behind blanks and separators; false when there is none. */
bool cause_number_at(const char *p, int *ret);
bool cause_is_word(char c);
/* True when t contains one of these n texts as it is written. */
bool cause_has_part(struct str t, const char *const *parts, size_t n);
