/* White space becomes one blank, "couldn't" "could not", so that a pattern has one form to match;
 * which three characters follow each other is kept, since most patterns fail by that. */
#include "cause_fold.h"
#include <ctype.h>

static unsigned three_of(const char *p)
{
    return CAUSE_THREE(p[0], p[1], p[2]);
}

void cause_fold(struct str text, struct folded *ret)
{
    size_t n = 0;
    ret->text = (struct str){text.p, MIN(text.n, (size_t)CAUSE_TEXT_MAX)};
    memset(ret->threes, 0, sizeof ret->threes);
    for (size_t i = 0; i < text.n && n < CAUSE_TEXT_MAX; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == 0xe2 && text.n - i > 2 && (unsigned char)text.p[i + 1] == 0x80 &&
            ((unsigned char)text.p[i + 2] | 1) == 0x99) { /* a typographic apostrophe */
            c = '\'';
            i += 2;
        }
        if (c == 0 || isspace(c)) {
            if (n > 0 && ret->s[n - 1] != ' ') {
                ret->raw[n] = ' ';
                ret->s[n++] = ' ';
            }
        } else {
            ret->raw[n] = (char)c;
            ret->s[n++] = (char)tolower(c);
        }
        if (n >= 4 && n + 3 <= CAUSE_TEXT_MAX && strncmp(ret->s + n - 3, "n't", 3) == 0) {
            bool can = ret->s[n - 4] == 'a'; /* "can't" to "cannot", "couldn't" to "could not" */
            memcpy(ret->s + n - 3, can ? "nnot" : " not", 4);
            memcpy(ret->raw + n - 3, can ? "nnot" : " not", 4);
            n++;
        }
    }
    ret->s[n] = '\0';
    ret->raw[n] = '\0';
    for (size_t i = 0; i + 2 < n; i++) {
        unsigned k = three_of(ret->s + i);
        ret->threes[k / 64] |= UINT64_C(1) << (k % 64);
    }
}

bool cause_is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

const char *cause_find_word(const char *s, const char *from, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = strstr(from, word); p != NULL; p = strstr(p + 1, word)) {
        if ((p == s || !cause_is_word(p[-1])) && !cause_is_word(p[n])) {
            return p;
        }
    }
    return NULL;
}

bool cause_has(const struct folded *f, const char *pattern)
{
    bool whole = pattern[0] == '~';
    const char *p = pattern + whole;
    if (p[0] == '\0') {
        return true;
    }
    for (const char *q = p; q[1] != '\0' && q[2] != '\0'; q++) {
        if (!cause_may_have(f, three_of(q))) {
            return false;
        }
    }
    return whole ? cause_find_word(f->s, f->s, p) != NULL : strstr(f->s, p) != NULL;
}

const char *cause_find(const struct folded *f, const char *from, const char *pattern)
{
    return pattern[0] == '~' ? cause_find_word(f->s, from, pattern + 1) : strstr(from, pattern);
}

bool cause_has_near(const struct folded *f, const char *a, const char *b, size_t reach)
{
    if (!cause_has(f, a) || !cause_has(f, b)) {
        return false;
    }
    if (a[0] == '\0' || b[0] == '\0') {
        return true;
    }
    for (const char *p = f->s; (p = cause_find(f, p, a)) != NULL; p++) {
        size_t back = MIN((size_t)(p - f->s), reach);
        const char *q = cause_find(f, p - back, b);
        if (q != NULL && (q <= p || (size_t)(q - p) <= reach)) {
            return true;
        }
    }
    return false;
}

bool cause_number_at(const char *p, int *ret)
{
    // cppcheck-suppress nullPointerRedundantCheck ; the callers have found something at p
    p += strspn(p, " :='\"([#");
    bool negative = *p == '-';
    p += negative;
    size_t n = strspn(p, "0123456789");
    if (n == 0) {
        return false;
    }
    int value = 0;
    for (size_t i = 0; i < n && i < 5; i++) {
        value = value * 10 + (p[i] - '0');
    }
    *ret = negative ? -value : value;
    return true;
}

bool cause_has_part(struct str t, const char *const *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (str_find(t, str_of(parts[i])) >= 0) {
            return true;
        }
    }
    return false;
}
