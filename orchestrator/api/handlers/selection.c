/* The parser of filters and selectors; see selection.h. */
#include "selection.h"
#include "common/str.h"
#include "common/time_text.h"
#include <stdio.h>

#define WORD_SHOWN_MAX 64

void selection_init(struct selection *s)
{
    s->stage = NULL;
    s->state = -1;
    s->causes_n = s->parts_n = 0;
    s->attempts_min = 0;
    s->cost_min_musd = 0;
    s->updated_from_us = s->updated_before_us = 0;
    s->text[0] = '\0';
}

bool selection_for_lists_only(const struct selection *s)
{
    return s->attempts_min > 0 || s->cost_min_musd > 0 || s->updated_from_us > 0 ||
           s->updated_before_us > 0 || s->text[0] != '\0';
}

typedef bool (*add_word)(struct selection *s, struct str word, struct err *err);

static bool add_state(struct selection *s, struct str word, struct err *err)
{
    if (s->state >= 0) {
        return err_set(err, ERR_MALFORMED, "state is given twice");
    }
    for (int i = 0; i < TASK_STATE_COUNT; i++) {
        if (str_eq_cstr(word, task_state_name((enum task_state)i))) {
            s->state = i;
            return true;
        }
    }
    return err_set(err, ERR_MALFORMED,
                   "'%.*s' is not a state; there are waiting, active, held, done, failed, skipped, "
                   "cancelled",
                   (int)MIN(word.n, WORD_SHOWN_MAX), word.p);
}

static bool add_cause(struct selection *s, struct str word, struct err *err)
{
    for (int i = 1; i < CAUSE_COUNT; i++) {
        if (!str_eq_cstr(word, cause_name((enum cause)i))) {
            continue;
        }
        for (size_t j = 0; j < s->causes_n; j++) {
            if (s->causes[j] == i) {
                return true;
            }
        }
        s->causes[s->causes_n++] = (int16_t)i;
        return true;
    }
    return err_set(err, ERR_MALFORMED,
                   "'%.*s' is not a cause, like disk_full; see failures for those there are",
                   (int)MIN(word.n, WORD_SHOWN_MAX), word.p);
}

static bool add_part_number(struct selection *s, int64_t n, struct err *err)
{
    if (s->parts_n == ARRAY_LEN(s->parts)) {
        return err_set(err, ERR_LIMIT, "parts: at most %zu; select by cause instead",
                       ARRAY_LEN(s->parts));
    }
    s->parts[s->parts_n++] = (int32_t)n;
    return true;
}

static bool add_part(struct selection *s, struct str word, struct err *err)
{
    struct str rest = word;
    struct str first = str_split(&rest, '-');
    bool range = first.n < word.n;
    int64_t from, to;
    bool ok = parse_i64(first, 0, INT32_MAX, &from, NULL);
    to = from;
    if (!ok || (range && !parse_i64(rest, 0, INT32_MAX, &to, NULL)) || to < from) {
        return err_set(err, ERR_MALFORMED,
                       "'%.*s' is not the number of a part, nor a range like 70-72",
                       (int)MIN(word.n, WORD_SHOWN_MAX), word.p);
    }
    if (to - from >= SELECTION_PARTS_MAX) {
        return err_set(err, ERR_LIMIT, "parts: at most %d; select by cause instead",
                       SELECTION_PARTS_MAX);
    }
    for (int64_t n = from; n <= to; n++) {
        if (!add_part_number(s, n, err)) {
            return false;
        }
    }
    return true;
}

/* "a, b": at least one word, none of them empty. */
static bool read_list(struct selection *s, const char *what, struct str list, add_word add,
                      struct err *err)
{
    struct str rest = str_trim(list);
    if (rest.n == 0) {
        return err_set(err, ERR_INVALID, "%s: the list is empty, which never means all", what);
    }
    for (bool more = true; more;) {
        const char *comma = memchr(rest.p, ',', rest.n);
        more = comma != NULL;
        size_t n = more ? (size_t)(comma - rest.p) : rest.n;
        struct str word = str_trim((struct str){rest.p, n});
        if (word.n == 0) {
            return err_set(err, ERR_INVALID, "%s: a word of the list is empty", what);
        }
        if (!add(s, word, err)) {
            return err_wrap(err, "%s", what);
        }
        rest = (struct str){rest.p + n + more, rest.n - n - more};
    }
    return true;
}

static bool read_causes(struct selection *s, struct str list, struct err *err)
{
    if (s->causes_n > 0) {
        return err_set(err, ERR_MALFORMED, "cause is given twice");
    }
    return read_list(s, "cause", list, add_cause, err);
}

/* Takes `word` from the front, after blanks. */
static bool take(struct str *text, const char *word)
{
    struct str s = str_trim(*text);
    if (!str_starts(s, word)) {
        return false;
    }
    size_t n = strlen(word);
    *text = (struct str){s.p + n, s.n - n};
    return true;
}

/* The word at the front: up to a blank or a parenthesis. */
static struct str take_word(struct str *text)
{
    struct str s = str_trim(*text);
    size_t n = 0;
    while (n < s.n && s.p[n] != ' ' && s.p[n] != '(' && s.p[n] != ')') {
        n++;
    }
    *text = (struct str){s.p + n, s.n - n};
    return (struct str){s.p, n};
}

static bool read_attempts(struct selection *s, struct str word, struct err *err)
{
    if (s->attempts_min > 0) {
        return err_set(err, ERR_MALFORMED, "attempts is given twice");
    }
    return parse_i64(word, 0, INT16_MAX, &s->attempts_min, NULL) ||
           err_set(err, ERR_MALFORMED, "attempts>= takes a number");
}

static bool read_cost(struct selection *s, struct str word, struct err *err)
{
    if (s->cost_min_musd > 0) {
        return err_set(err, ERR_MALFORMED, "cost is given twice");
    }
    return parse_usd(word, &s->cost_min_musd, NULL) ||
           err_set(err, ERR_MALFORMED, "cost>= takes an amount of USD like 0.50");
}

static bool read_time(usec_t *ret, struct str word, struct err *err)
{
    char text[64];
    if (*ret > 0) {
        return err_set(err, ERR_MALFORMED, "updated is given twice");
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)MIN(word.n, sizeof text - 1), word.p);
    return clock_parse_rfc3339(text, ret, NULL) ||
           err_set(err, ERR_MALFORMED, "updated takes a time like 2026-11-27T12:00:00Z");
}

/* A word, or what stands in quotation marks. */
static bool read_text(struct selection *s, struct str *rest, struct err *err)
{
    struct str text, at = str_trim(*rest);
    if (at.n > 0 && at.p[0] == '"') {
        const char *end = memchr(at.p + 1, '"', at.n - 1);
        if (end == NULL) {
            return err_set(err, ERR_MALFORMED, "text: the quotation mark has no second one");
        }
        text = (struct str){at.p + 1, (size_t)(end - at.p) - 1};
        *rest = (struct str){end + 1, at.n - text.n - 2};
    } else {
        text = take_word(rest);
    }
    if (s->text[0] != '\0') {
        return err_set(err, ERR_MALFORMED, "text is given twice");
    }
    if (text.n == 0) {
        return err_set(err, ERR_INVALID, "text: it is empty, which never means all");
    }
    if (text.n > SELECTION_TEXT_MAX) {
        return err_set(err, ERR_MALFORMED, "text: at most %d bytes", SELECTION_TEXT_MAX);
    }
    memcpy(s->text, text.p, text.n);
    s->text[text.n] = '\0';
    return true;
}

/* The terms that no index has. *ret_known false: not one of them, nothing is wrong yet. */
static bool read_narrow_term(struct selection *s, struct str *rest, bool *ret_known,
                             struct err *err)
{
    struct str before = *rest;
    *ret_known = true;
    if (take(rest, "attempts") && take(rest, ">=")) {
        return read_attempts(s, take_word(rest), err);
    }
    *rest = before;
    if (take(rest, "cost") && take(rest, ">=")) {
        return read_cost(s, take_word(rest), err);
    }
    *rest = before;
    if (take(rest, "updated")) {
        if (take(rest, ">=")) {
            return read_time(&s->updated_from_us, take_word(rest), err);
        }
        if (take(rest, "<")) {
            return read_time(&s->updated_before_us, take_word(rest), err);
        }
    }
    *rest = before;
    if (take(rest, "text") && take(rest, "=")) {
        return read_text(s, rest, err);
    }
    *rest = before;
    *ret_known = false;
    return true;
}

static bool read_term(struct selection *s, struct str *rest, struct err *err)
{
    struct str at = str_trim(*rest);
    bool known;
    bool ok = read_narrow_term(s, rest, &known, err);
    if (known) {
        return ok;
    }
    if (take(rest, "state")) {
        if (take(rest, "=")) {
            return add_state(s, take_word(rest), err);
        }
    } else if (take(rest, "cause")) {
        if (take(rest, "=")) {
            return read_causes(s, take_word(rest), err);
        }
        const char *end =
            take(rest, "IN") && take(rest, "(") ? memchr(rest->p, ')', rest->n) : NULL;
        if (end != NULL) {
            struct str list = {rest->p, (size_t)(end - rest->p)};
            *rest = (struct str){end + 1, rest->n - list.n - 1};
            return read_causes(s, list, err);
        }
    }
    return err_set(err, ERR_MALFORMED,
                   "'%.*s' is not understood; write state=S, cause=C, cause IN (C, D), "
                   "attempts>=N, cost>=USD, updated>=TIME, updated<TIME or text=\"...\", joined "
                   "by AND",
                   (int)MIN(at.n, WORD_SHOWN_MAX), at.p);
}

static bool read_filter(struct selection *s, struct str filter, struct err *err)
{
    struct str rest = filter;
    if (str_trim(rest).n == 0) {
        return err_set(err, ERR_INVALID, "filter: it is empty, which never means all");
    }
    do {
        if (!read_term(s, &rest, err)) {
            return err_wrap(err, "filter");
        }
    } while (take(&rest, "AND "));
    struct str left = str_trim(rest);
    return left.n == 0 ||
           err_set(err, ERR_MALFORMED, "filter: '%.*s' is left over; join terms by AND",
                   (int)MIN(left.n, WORD_SHOWN_MAX), left.p);
}

bool selection_query(struct selection *s, const char *state, const char *cause, const char *filter,
                     struct err *err)
{
    if (state != NULL && state[0] == '\0') {
        return err_set(err, ERR_INVALID, "state: it is empty, which never means all");
    }
    return (state == NULL || add_state(s, str_of(state), err)) &&
           (cause == NULL || read_causes(s, str_of(cause), err)) &&
           (filter == NULL || read_filter(s, str_of(filter), err));
}

/* A list as text, or as an array of words or numbers. */
static bool json_list(struct selection *s, const char *what, const json_t *v, add_word add,
                      struct err *err)
{
    size_t i;
    json_t *one;
    if (json_is_string(v)) {
        return read_list(s, what, str_of(json_string_value(v)), add, err);
    }
    if (!json_is_array(v)) {
        return err_set(err, ERR_INVALID, "selector.%s: write a list", what);
    }
    if (json_array_size(v) == 0) {
        return err_set(err, ERR_INVALID, "selector.%s: the list is empty, which never means all",
                       what);
    }
    json_array_foreach((json_t *)(uintptr_t)v, i, one)
    {
        int64_t n = json_integer_value(one);
        bool number = add == add_part && json_is_integer(one) && n >= 0 && n <= INT32_MAX;
        bool word = add != add_part && json_string_length(one) > 0;
        if (!number && !word) {
            return err_set(err, ERR_INVALID, "selector.%s[%zu]: %s", what, i,
                           add == add_part ? "write the number of a part" : "write a word");
        }
        if (!(number ? add_part_number(s, n, err) : add(s, str_of(json_string_value(one)), err))) {
            return err_wrap(err, "selector.%s[%zu]", what, i);
        }
    }
    return true;
}

bool selection_json(struct selection *s, const json_t *json, struct err *err)
{
    static const char *const keys[] = {"stage", "state", "cause", "parts", "filter", NULL};
    const char *state, *filter;
    if (json_object_size(json) == 0) {
        return err_set(err, ERR_INVALID,
                       "the selector is empty, which never means all; for all failed parts write "
                       "{\"selector\": {\"state\": \"failed\"}}");
    }
    if (!json_only_keys(json, keys, err) || !json_get_str(json, "stage", NULL, &s->stage, err) ||
        !json_get_str(json, "state", NULL, &state, err) ||
        !json_get_str(json, "filter", NULL, &filter, err)) {
        return false;
    }
    if (s->stage != NULL && s->stage[0] == '\0') {
        return err_set(err, ERR_INVALID, "selector.stage: it is empty, which never means all");
    }
    const json_t *cause = json_object_get(json, "cause");
    const json_t *parts = json_object_get(json, "parts");
    return (cause == NULL || json_list(s, "cause", cause, add_cause, err)) &&
           (parts == NULL || json_list(s, "parts", parts, add_part, err)) &&
           selection_query(s, state, NULL, filter, err);
}

json_t *selection_to_json(const struct selection *s)
{
    json_t *ret = json_object();
    if (s->stage != NULL) {
        (void)json_object_set_new(ret, "stage", json_string(s->stage));
    }
    json_t *causes = json_array(), *parts = json_array();
    for (size_t i = 0; i < s->causes_n; i++) {
        (void)json_array_append_new(causes, json_string(cause_name((enum cause)s->causes[i])));
    }
    for (size_t i = 0; i < s->parts_n; i++) {
        (void)json_array_append_new(parts, json_integer(s->parts[i]));
    }
    if (s->causes_n > 0) {
        (void)json_object_set(ret, "cause", causes);
    }
    if (s->parts_n > 0) {
        (void)json_object_set(ret, "parts", parts);
    }
    json_decref(causes);
    json_decref(parts);
    return ret;
}
