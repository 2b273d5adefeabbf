/* See parameters.h; the rows are in parameters.def. */
#include "parameters.h"
#include "router.h"
#include "text_rules.h"

#define QUERY_MAX 32 /* parameters of one request */

#define X(state, name, ...) " " name
static const char campaign_states[] =
#include "core/states/campaign_state.def"
    ;
static const char task_states[] =
#include "core/states/task_state.def"
    ;
#undef X
#define CAMPAIGN_STATES (campaign_states + 1)
#define TASK_STATES     (task_states + 1)

const struct parameter parameter_table[] = {
#define P(id, name, place, type, min, max, dflt, words, example, text)                             \
    {#id, name, PARAMETER_##place, PARAMETER_##type, min, max, dflt, words, example, text},
#include "parameters.def"
#undef P
};
const size_t parameter_table_n = ARRAY_LEN(parameter_table);

const struct parameter *parameter_find(struct str id)
{
    for (size_t i = 0; i < parameter_table_n; i++) {
        if (str_eq_cstr(id, parameter_table[i].id)) {
            return &parameter_table[i];
        }
    }
    BUG("routes.def names a parameter that parameters.def has not");
}

const struct parameter *parameter_of_path(const char **at)
{
    const char *from = strchr(*at, '{');
    if (from == NULL) {
        return NULL;
    }
    size_t n = strcspn(from + 1, "}");
    *at = from + 1 + n;
    return parameter_find((struct str){from + 1, n});
}

/* The route's query parameter of that name; NULL: it has none. */
static const struct parameter *of_query(const struct route *t, const char *name)
{
    struct str ids = str_of(t->query);
    while (ids.n > 0) {
        const struct parameter *p = parameter_find(str_split(&ids, ' '));
        if (strcmp(p->name, name) == 0) {
            return p;
        }
    }
    return NULL;
}

static bool is_word(const char *words, struct str v)
{
    struct str rest = str_of(words);
    while (rest.n > 0) {
        if (str_eq(str_split(&rest, ' '), v)) {
            return v.n > 0;
        }
    }
    return false;
}

/* Written as we write it: at most 18 digits, no zeros before them. */
static bool is_id(const struct parameter *p, struct str v)
{
    int64_t n;
    size_t prefix = strlen(p->words);
    if (!str_starts(v, p->words)) {
        return false;
    }
    struct str digits = {v.p + prefix, v.n - prefix};
    bool plain = digits.n == 1 || (digits.n > 1 && digits.n <= 18 && digits.p[0] != '0');
    return plain && digits.p[0] != '-' && parse_i64(digits, p->min, p->max, &n, NULL);
}

static bool fits(const struct parameter *p, struct str v)
{
    int64_t n;
    switch (p->type) {
    case PARAMETER_NUMBER:
        return v.n > 0 && v.p[0] != '-' && parse_i64(v, p->min, p->max, &n, NULL);
    case PARAMETER_TEXT:
        n = text_length(v);
        return n >= p->min && n <= p->max && (p->words[0] == '\0' || text_matches(p->words, v));
    case PARAMETER_FLAG:
        return str_eq_cstr(v, "true") || str_eq_cstr(v, "false");
    case PARAMETER_WORD:
        return is_word(p->words, v);
    case PARAMETER_ID:
        return is_id(p, v);
    }
    BUG("a type of parameter");
}

static bool refused(const struct parameter *p, struct err *err)
{
    switch (p->type) {
    case PARAMETER_NUMBER:
        return err_set(err, ERR_MALFORMED, "query parameter '%s': a whole number from %lld to %lld",
                       p->name, (long long)p->min, (long long)p->max);
    case PARAMETER_TEXT:
        return err_set(err, ERR_MALFORMED, "query parameter '%s' is not valid: %s", p->name,
                       p->text);
    case PARAMETER_FLAG:
        return err_set(err, ERR_MALFORMED, "query parameter '%s': true or false", p->name);
    case PARAMETER_WORD:
        return err_set(err, ERR_MALFORMED, "query parameter '%s': one of %s", p->name, p->words);
    case PARAMETER_ID:
        return err_set(err, ERR_MALFORMED, "query parameter '%s': like %s", p->name, p->example);
    }
    BUG("a type of parameter");
}

bool parameters_choose(const struct route *t)
{
    struct str ids = str_of(t->query);
    while (ids.n > 0) {
        if (parameter_find(str_split(&ids, ' '))->place == PARAMETER_CHOICE) {
            return true;
        }
    }
    return false;
}

bool parameters_check_path(const struct api_req *r, struct err *err)
{
    const struct parameter *p;
    const char *at = r->route->pattern;
    for (size_t i = 0; (p = parameter_of_path(&at)) != NULL; i++) {
        struct str v = r->params[i];
        if (!fits(p, v)) {
            return err_set(err, ERR_NOT_FOUND,
                           "'%.*s' is not the %s of anything; they look like %s",
                           (int)MIN(v.n, (size_t)64), v.p, p->type == PARAMETER_ID ? "id" : p->name,
                           p->example);
        }
    }
    return true;
}

struct query_check {
    const struct api_req *r;
    struct err *err;
    bool ok;
    const struct parameter *seen[QUERY_MAX];
    size_t seen_n;
};

static bool check_one(struct query_check *q, const char *key, const char *value)
{
    const char *names = q->r->route->query;
    const struct parameter *p = of_query(q->r->route, key);
    if (p == NULL && (q->r->route->flags & ROUTE_PAGE) != 0) {
        return true;
    }
    bool good =
        p != NULL && value != NULL && str_is_utf8(str_of(value)) && q->seen_n < ARRAY_LEN(q->seen);
    for (size_t i = 0; i < q->seen_n; i++) {
        good = good && q->seen[i] != p;
    }
    if (!good) {
        AUTO_BUF struct buf known = BUF_INIT(1024);
        for (struct str ids = str_of(names); ids.n > 0;) {
            buf_addf(&known, " %s", parameter_find(str_split(&ids, ' '))->name);
        }
        return err_set(q->err, ERR_MALFORMED,
                       "query parameter '%.64s' is not known here, or twice; %s%s", key,
                       known.n == 0 ? "none is taken" : "known:", buf_cstr(&known));
    }
    q->seen[q->seen_n++] = p;
    if (p->place == PARAMETER_CHOICE && value[0] == '\0') {
        return err_set(q->err, ERR_INVALID,
                       "query parameter '%s': it is empty, which never means all", p->name);
    }
    return fits(p, str_of(value)) || refused(p, q->err);
}

static enum MHD_Result each_query(void *ctx, enum MHD_ValueKind kind, const char *key,
                                  const char *value)
{
    struct query_check *q = ctx;
    (void)kind;
    q->ok = check_one(q, key, value);
    return q->ok ? MHD_YES : MHD_NO;
}

static bool check_needed(const struct api_req *r, struct err *err)
{
    struct str ids = str_of(r->route->query);
    while (ids.n > 0) {
        const struct parameter *p = parameter_find(str_split(&ids, ' '));
        if (p->place == PARAMETER_NEEDED && req_query(r, p->name) == NULL) {
            return err_set(err, ERR_MALFORMED, "query parameter '%s' is missing: %s=%s", p->name,
                           p->name, p->example);
        }
    }
    return true;
}

bool parameters_check(struct api_req *r, struct err *err)
{
    struct query_check q = {.r = r, .err = err, .ok = true};
    if (!parameters_check_path(r, err)) {
        return false;
    }
    (void)MHD_get_connection_values(r->conn, MHD_GET_ARGUMENT_KIND, each_query, &q);
    return q.ok && check_needed(r, err);
}

int64_t req_number(const struct api_req *r, const char *name)
{
    const struct parameter *p = of_query(r->route, name);
    const char *v = req_query(r, name);
    int64_t n;
    ASSERT(p != NULL && (p->type == PARAMETER_NUMBER || p->type == PARAMETER_ID));
    size_t prefix = p->type == PARAMETER_ID ? strlen(p->words) : 0;
    return v != NULL && parse_i64(str_of(v + prefix), p->min, p->max, &n, NULL) ? n : p->dflt;
}

bool req_flag(const struct api_req *r, const char *name)
{
    const struct parameter *p = of_query(r->route, name);
    const char *v = req_query(r, name);
    ASSERT(p != NULL && p->type == PARAMETER_FLAG);
    return v != NULL && strcmp(v, "true") == 0;
}

int64_t req_id(const struct api_req *r, int i)
{
    const struct parameter *p = NULL;
    const char *at = r->route->pattern;
    for (int k = 0; k <= i; k++) {
        p = parameter_of_path(&at);
    }
    ASSERT(p != NULL && (p->type == PARAMETER_NUMBER || p->type == PARAMETER_ID));
    size_t prefix = p->type == PARAMETER_ID ? strlen(p->words) : 0;
    struct str v = {r->params[i].p + prefix, r->params[i].n - prefix};
    int64_t n;
    ASSERT(parse_i64(v, p->min, p->max, &n, NULL));
    return n;
}
