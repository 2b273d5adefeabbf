/* See filter_pattern.h. */
#include "filter_pattern.h"
#include "common/cleanup.h"
#include "common/regex.h"
#include <stdlib.h>
#include <string.h>

#define TERMS_MAX 64

enum term_kind { TERM_ALL, TERM_ANY, TERM_NONE };
struct term {
    enum term_kind kind;
    char *text;          /* NULL: the expression */
    struct regex *regex; /* of one group: the whole match */
};
struct filter_pattern {
    struct term terms[TERMS_MAX];
    size_t n;
    bool any_counts;
};

void filter_pattern_free(struct filter_pattern *p)
{
    for (size_t i = 0; p != NULL && i < p->n; i++) {
        free(p->terms[i].text);
        regex_free(p->terms[i].regex);
    }
    free(p);
}

/* The text up to the closing mark at rest->p[-1], which is taken; a backslash keeps a quote. */
static bool quoted(struct str *rest, char mark, char **ret)
{
    size_t n = 0;
    char *out = xmalloc(rest->n + 1);
    for (size_t i = 0; i < rest->n; i++) {
        if (rest->p[i] == mark) {
            out[n] = '\0';
            *ret = out;
            *rest = (struct str){rest->p + i + 1, rest->n - i - 1};
            return true;
        }
        i += mark == '"' && rest->p[i] == '\\' && i + 1 < rest->n;
        out[n++] = rest->p[i];
    }
    free(out);
    return false;
}

static bool term_read(struct filter_pattern *p, struct str *rest, struct err *err)
{
    struct term *t = &p->terms[p->n];
    char first = rest->p[0];
    *t = (struct term){.kind = first == '?' ? TERM_ANY : first == '-' ? TERM_NONE : TERM_ALL};
    if (t->kind != TERM_ALL) {
        *rest = (struct str){rest->p + 1, rest->n - 1};
        first = rest->n > 0 ? rest->p[0] : ' ';
    }
    p->n++;
    if (first == '"' || first == '%') {
        *rest = (struct str){rest->p + 1, rest->n - 1};
        if (!quoted(rest, first, &t->text)) {
            return err_set(err, ERR_INVALID, "Invalid character(s) in term: %c is not closed",
                           first);
        }
        if (first == '%') {
            AUTO_FREE char *group = xasprintf("(%s)", t->text);
            free(t->text);
            t->text = NULL;
            return regex_new(group, &t->regex, err);
        }
        return true;
    }
    size_t n = 0;
    while (n < rest->n && rest->p[n] != ' ') {
        n++;
    }
    t->text = xstrndup(rest->p, n);
    *rest = (struct str){rest->p + n, rest->n - n};
    return n > 0 ||
           err_set(err, ERR_INVALID, "Invalid character(s) in term: a mark without a term");
}

bool filter_pattern_new(const char *text, struct filter_pattern **ret, struct err *err)
{
    struct str rest = str_trim(str_of(text));
    if (rest.n > 0 && (rest.p[0] == '{' || rest.p[0] == '[')) {
        return err_set(err, ERR_INVALID, "drover-local filters by terms, not by JSON or columns");
    }
    struct filter_pattern *p = xcalloc(1, sizeof *p);
    p->any_counts = true;
    while (rest.n > 0) {
        if (p->n == TERMS_MAX || !term_read(p, &rest, err)) {
            bool many = p->n == TERMS_MAX;
            filter_pattern_free(p);
            return many ? err_set(err, ERR_INVALID, "a pattern has at most %d terms", TERMS_MAX)
                        : false;
        }
        p->any_counts &= p->terms[p->n - 1].kind != TERM_ALL;
        rest = str_trim(rest);
    }
    *ret = p;
    return true;
}

static bool holds(const struct term *t, struct str message)
{
    struct str group;
    return t->regex != NULL ? regex_first_group(t->regex, message, &group) == REGEX_FOUND
                            : str_find(message, str_of(t->text)) >= 0;
}

bool filter_pattern_fits(const struct filter_pattern *p, struct str message)
{
    bool wanted = false;
    bool one = false;
    for (size_t i = 0; i < p->n; i++) {
        const struct term *t = &p->terms[i];
        bool has = (t->kind != TERM_ANY || p->any_counts) && holds(t, message);
        if ((t->kind == TERM_ALL && !has) || (t->kind == TERM_NONE && has)) {
            return false;
        }
        wanted |= t->kind == TERM_ANY && p->any_counts;
        one |= t->kind == TERM_ANY && has;
    }
    return one || !wanted;
}
