/* Search over training jobs: see sagemaker_local.h. A job is searched as Describe shows it, with
 * its tags as a map, so that a filter names "Tags.run", "ResourceConfig.InstanceType" or
 * "HyperParameters.batch"; of a list any element may fit. Filters fit together when they fit the
 * same element of a list that NestedFilters name. */
#include "common/clock.h"
#include "common/time_text.h"
#include "local/app.h"
#include "sagemaker_local.h"
#include "sagemaker_rules.h"
#include <math.h>
#include <stdio.h>

#define RESULTS_MAX          100
#define RESULTS_DFLT         10
#define FOUND_MAX            10000 /* a search shows no more, however many pages are asked for */
#define PARTS_MAX            20    /* of an expression, of each kind */
#define EXPRESSION_DEPTH_MAX 8     /* of expressions within expressions */
#define PROPERTY_MAX         255
#define VALUE_MAX            1024
#define TOKEN_PREFIX         "from-"
#define SORT_PROPERTY        "LastModifiedTime"

enum operator{
    OP_EQUALS,
    OP_NOT_EQUALS,
    OP_GREATER,
    OP_GREATER_OR_EQUAL,
    OP_LESS,
    OP_LESS_OR_EQUAL,
    OP_CONTAINS,
    OP_EXISTS,
    OP_NOT_EXISTS,
    OP_IN,
    OP_COUNT
};
static const char *const operators[OP_COUNT] = {"Equals",      "NotEquals",
                                                "GreaterThan", "GreaterThanOrEqualTo",
                                                "LessThan",    "LessThanOrEqualTo",
                                                "Contains",    "Exists",
                                                "NotExists",   "In"};

struct job_search {
    json_t *doc;     /* the job looked at */
    struct err *err; /* of the request */
    bool wrong;      /* *err is set */
    bool found;      /* the property of the last filter is there */
};

/* False, and why the request is refused. */
#define WRONG(s, ...) ((s)->wrong = true, err_set((s)->err, ERR_INVALID, __VA_ARGS__))

/* Less than, equal to or greater than 0 as the value is against the text; false: they cannot be
 * compared. Instants are written as RFC 3339, and are seconds in a description. */
static bool compare(const json_t *value, const char *text, int *ret)
{
    char *end = NULL;
    double wanted = strtod(text, &end);
    usec_t at = 0;
    struct err ignored;
    if (!json_is_number(value)) {
        return false;
    }
    if (clock_parse_rfc3339(text, &at, &ignored)) {
        wanted = (double)at / (double)USEC_PER_SEC;
    } else if (end == text || *end != '\0') {
        return false;
    }
    double have = json_number_value(value);
    *ret = have < wanted ? -1 : have > wanted;
    return true;
}

static bool equals(const json_t *value, struct str text)
{
    if (json_is_string(value)) {
        return str_eq_cstr(text, json_string_value(value));
    }
    if (json_is_boolean(value)) {
        return str_eq_cstr(text, json_is_true(value) ? "true" : "false");
    }
    char copy[VALUE_MAX + 1];
    int order = 1;
    (void)snprintf(copy, sizeof copy, STR_FMT, STR_ARG(text));
    return compare(value, copy, &order) && order == 0;
}

static bool is_one_of(const json_t *value, const char *texts)
{
    struct str rest = str_of(texts);
    while (rest.n > 0) {
        if (equals(value, str_trim(str_split(&rest, ',')))) {
            return true;
        }
    }
    return false;
}

static bool ordered(struct job_search *s, const json_t *value, enum operator op, const char *text)
{
    int order = 0;
    if (!compare(value, text, &order)) {
        return json_is_string(value)
                   ? WRONG(s, "Operator %s is not supported for text properties", operators[op])
                   : WRONG(s, "Value %s is neither a number nor an instant", text);
    }
    return op == OP_GREATER            ? order > 0
           : op == OP_GREATER_OR_EQUAL ? order >= 0
           : op == OP_LESS             ? order < 0
                                       : order <= 0;
}

static bool value_fits(struct job_search *s, const json_t *value, enum operator op,
                       const char *text)
{
    s->found = true;
    switch (op) {
    case OP_EQUALS:
    case OP_NOT_EQUALS: /* the caller turns it round */
        return equals(value, str_of(text));
    case OP_CONTAINS:
        return json_is_string(value) ? strstr(json_string_value(value), text) != NULL
                                     : WRONG(s, "Operator Contains is for text, not for %s", text);
    case OP_IN:
        return is_one_of(value, text);
    case OP_EXISTS:
    case OP_NOT_EXISTS:
        return true;
    case OP_GREATER:
    case OP_GREATER_OR_EQUAL:
    case OP_LESS:
    case OP_LESS_OR_EQUAL:
        return ordered(s, value, op, text);
    case OP_COUNT:
        break;
    }
    return false;
}

/* Any value at the path fits. A key may hold dots itself: the whole rest is tried first. */
static bool any_fits(struct job_search *s, const json_t *at, const char *path, enum operator op,
                     const char *text)
{
    bool fits = false;
    if (json_is_array(at)) {
        for (size_t i = 0; i < json_array_size(at); i++) {
            fits |= any_fits(s, json_array_get(at, i), path, op, text);
        }
        return fits;
    }
    if (*path == '\0') {
        return value_fits(s, at, op, text);
    }
    const json_t *whole = json_object_get(at, path);
    if (whole != NULL) {
        return any_fits(s, whole, "", op, text);
    }
    struct str rest = str_of(path);
    struct str key = str_split(&rest, '.');
    const json_t *below = json_object_getn(at, key.p, key.n);
    return below != NULL && rest.n > 0 && any_fits(s, below, rest.p, op, text);
}

static bool operator_of(struct job_search *s, const json_t *filter, enum operator* ret)
{
    const char *name = "Equals";
    if (!json_get_str(filter, "Operator", "Equals", &name, s->err)) {
        s->wrong = true;
        return false;
    }
    for (size_t i = 0; i < OP_COUNT; i++) {
        if (strcmp(name, operators[i]) == 0) {
            *ret = (enum operator)i;
            return true;
        }
    }
    return WRONG(
        s,
        "Value '%s' at 'operator' failed to satisfy constraint: Member must satisfy enum value set",
        name);
}

/* One of Filters; prefix: of the property that NestedFilters name, which `at` is an element of. */
static bool filter_fits(struct job_search *s, const json_t *at, const json_t *filter,
                        const char *prefix)
{
    const char *name = NULL;
    const char *text = NULL;
    enum operator op = OP_EQUALS;
    size_t prefix_n = strlen(prefix);
    if (!json_get_required_str(filter, "Name", &name, s->err) ||
        !json_get_str(filter, "Value", NULL, &text, s->err)) {
        s->wrong = true;
        return false;
    }
    if (!operator_of(s, filter, &op)) {
        return false;
    }
    bool bare = op == OP_EXISTS || op == OP_NOT_EXISTS;
    if (strlen(name) > PROPERTY_MAX || (text != NULL && strlen(text) > VALUE_MAX)) {
        return WRONG(s, "A property has at most 255 characters, a value 1024: %.32s", name);
    }
    if ((text == NULL || *text == '\0') != bare) {
        return WRONG(s, "%s: operator %s takes %s Value", name, operators[op], bare ? "no" : "a");
    }
    if (prefix_n > 0 && strncmp(name, prefix, prefix_n) == 0 && name[prefix_n] == '.') {
        name += prefix_n + 1;
    }
    s->found = false;
    bool fits = any_fits(s, at, name, op, text);
    return op == OP_NOT_EXISTS ? !s->found : op == OP_NOT_EQUALS ? !fits : fits;
}

/* The parts of an expression at a key: between 1 and 20 when it is there. */
static bool parts(struct job_search *s, const json_t *o, const char *key, const json_t **ret)
{
    *ret = json_object_get(o, key);
    if (*ret == NULL || json_is_null(*ret)) {
        *ret = NULL;
        return true;
    }
    size_t n = json_array_size(*ret);
    return (n >= 1 && n <= PARTS_MAX) || WRONG(s, "%s: a list of 1 to 20 is required", key);
}

/* Filters that all fit one element of the list that they name. */
static bool nested_fits(struct job_search *s, const json_t *nested)
{
    const char *property = NULL;
    const json_t *filters = NULL;
    if (!json_get_required_str(nested, "NestedPropertyName", &property, s->err)) {
        s->wrong = true;
        return false;
    }
    if (!parts(s, nested, "Filters", &filters)) {
        return false;
    }
    if (filters == NULL) {
        return WRONG(s, "%s: Filters are required", property);
    }
    const json_t *list = json_object_get(s->doc, property);
    bool any = false;
    /* Once more than there are elements: faults of filters are said whatever the job holds. */
    for (size_t i = 0; i <= json_array_size(list) && !s->wrong; i++) {
        const json_t *element = json_array_get(list, i);
        bool all = element != NULL;
        for (size_t k = 0; k < json_array_size(filters) && !s->wrong; k++) {
            all &= filter_fits(s, element, json_array_get(filters, k), property);
        }
        any |= all;
    }
    return any;
}

static bool expression_fits(struct job_search *s, const json_t *e, int depth)
{
    const json_t *list[3];
    const char *op = "And";
    if (e == NULL) {
        return true;
    }
    if (depth > EXPRESSION_DEPTH_MAX) {
        return WRONG(s, "%s are too deep", "SubExpressions");
    }
    if (!json_get_str(e, "Operator", "And", &op, s->err)) {
        s->wrong = true;
        return false;
    }
    bool is_or = strcmp(op, "Or") == 0;
    if (!is_or && strcmp(op, "And") != 0) {
        return WRONG(s, "Operator '%s' is neither And nor Or", op);
    }
    if (!parts(s, e, "Filters", &list[0]) || !parts(s, e, "NestedFilters", &list[1]) ||
        !parts(s, e, "SubExpressions", &list[2])) {
        return false;
    }
    bool all = true;
    bool any = list[0] == NULL && list[1] == NULL && list[2] == NULL;
    for (size_t kind = 0; kind < ARRAY_LEN(list); kind++) {
        for (size_t i = 0; i < json_array_size(list[kind]) && !s->wrong; i++) {
            const json_t *part = json_array_get(list[kind], i);
            bool fits = kind == 0   ? filter_fits(s, s->doc, part, "")
                        : kind == 1 ? nested_fits(s, part)
                                    : expression_fits(s, part, depth + 1);
            all &= fits;
            any |= fits;
        }
    }
    return is_or ? any : all;
}

/* What a filter looks at: the description and the tags as a map. */
static json_t *doc_of(json_t *description, const json_t *tags)
{
    json_t *doc = json_copy(description);
    json_t *map = json_object();
    for (size_t i = 0; i < json_array_size(tags); i++) {
        const json_t *tag = json_array_get(tags, i);
        (void)json_object_set(map, json_string_value(json_object_get(tag, "Key")),
                              json_object_get(tag, "Value"));
    }
    (void)json_object_set_new(doc, "Tags", map);
    return doc;
}

struct searched_job {
    json_t *job;        /* as Search shows it */
    const json_t *sort; /* the value that it is sorted by, borrowed from job; NULL: none */
    size_t at;
};

/* Jobs without the property come last, whatever the order is. */
static int found_cmp(const void *pa, const void *pb, void *ctx)
{
    const struct searched_job *a = pa;
    const struct searched_job *b = pb;
    const bool *descending = ctx;
    int d = 0;
    if (a->sort == NULL || b->sort == NULL) {
        return (a->sort == NULL) - (b->sort == NULL);
    }
    if (json_is_number(a->sort) && json_is_number(b->sort)) {
        double x = json_number_value(a->sort);
        double y = json_number_value(b->sort);
        d = x < y ? -1 : x > y;
    } else if (json_is_string(a->sort) && json_is_string(b->sort)) {
        d = strcmp(json_string_value(a->sort), json_string_value(b->sort));
    }
    d = d != 0 ? d : a->at < b->at ? -1 : a->at > b->at;
    return *descending ? -d : d;
}

static const json_t *property(const json_t *o, const char *path)
{
    struct str rest = str_of(path);
    while (o != NULL && rest.n > 0) {
        struct str key = str_split(&rest, '.');
        o = json_object_getn(o, key.p, key.n);
    }
    return o;
}

struct search_query {
    const json_t *expression;
    const char *sort_by, *token;
    bool descending;
    int64_t max, from;
};

static bool query_read(struct request *r, struct search_query *q, struct err *err)
{
    const char *order = NULL;
    const char *resource = NULL;
    if (!json_get_required_str(r->input, "Resource", &resource, err) ||
        !json_get_str(r->input, "SortBy", SORT_PROPERTY, &q->sort_by, err) ||
        !json_get_str(r->input, "SortOrder", "Descending", &order, err) ||
        !json_get_str(r->input, "NextToken", "", &q->token, err) ||
        !json_get_i64(r->input, "MaxResults", 1, RESULTS_MAX, RESULTS_DFLT, &q->max, err)) {
        return false;
    }
    q->descending = strcmp(order, "Descending") == 0;
    q->expression = json_object_get(r->input, "SearchExpression");
    if (strcmp(resource, "TrainingJob") != 0) {
        return err_set(err, ERR_INVALID, "drover-local searches training jobs only, not %s",
                       resource);
    }
    if (!q->descending && strcmp(order, "Ascending") != 0) {
        return err_set(err, ERR_INVALID,
                       "Value '%s' at 'sortOrder' failed to satisfy constraint: "
                       "Member must satisfy enum value set",
                       order);
    }
    size_t prefix_n = strlen(TOKEN_PREFIX);
    if (*q->token != '\0' &&
        (strncmp(q->token, TOKEN_PREFIX, prefix_n) != 0 ||
         !parse_i64(str_of(q->token + prefix_n), 0, FOUND_MAX, &q->from, err))) {
        return err_set(err, ERR_INVALID, "Invalid NextToken");
    }
    return true;
}

/* A description without what Search's TrainingJob has no member for, and with its tags. */
static void as_shown(json_t *job, json_t *tags)
{
    static const char *const described_only[] = {
        "RemoteDebugConfig", "InfraCheckConfig", "ProfilerRuleConfigurations",
        "ProfilerRuleEvaluationStatuses", "ProfilingStatus"};
    for (size_t i = 0; i < ARRAY_LEN(described_only); i++) {
        (void)json_object_del(job, described_only[i]);
    }
    (void)json_object_set(job, "Tags", tags);
}

/* All jobs that the expression fits. An expression is checked even where there is no job. */
static size_t find(struct request *r, const struct search_query *q, struct job_search *s,
                   struct searched_job *ret)
{
    const struct jobs *jobs = &r->app->jobs;
    size_t n = 0;
    AUTO_JSON json_t *none = json_object();
    s->doc = none;
    (void)expression_fits(s, q->expression, 0);
    for (size_t i = 0; i < jobs->n && !s->wrong; i++) {
        json_t *job = sagemaker_description(r->app, jobs->items[i]);
        as_shown(job, jobs->items[i]->tags);
        AUTO_JSON json_t *doc = doc_of(job, jobs->items[i]->tags);
        s->doc = doc;
        if (!expression_fits(s, q->expression, 0) || s->wrong) {
            json_decref(job);
            continue;
        }
        ret[n] = (struct searched_job){.job = job, .sort = property(job, q->sort_by), .at = i};
        n++;
    }
    return n;
}

void sagemaker_search(struct request *r)
{
    struct search_query q = {.expression = NULL};
    struct err err = ERR_INIT;
    struct job_search s = {.err = &err};
    if (!query_read(r, &q, &err)) {
        reply_error(r, 400, "ValidationException", "%s", err.message);
        return;
    }
    AUTO_FREE struct searched_job *found = xcalloc(r->app->jobs.n + 1, sizeof *found);
    size_t all = find(r, &q, &s, found);
    if (s.wrong) {
        reply_error(r, 400, "ValidationException", "%s", err.message);
    } else {
        qsort_r(found, all, sizeof *found, found_cmp, &q.descending);
        size_t n = MIN(all, (size_t)FOUND_MAX);
        json_t *list = json_array();
        size_t i = MIN(n, (size_t)q.from);
        for (size_t end = MIN(n, i + (size_t)q.max); i < end; i++) {
            (void)json_array_append_new(list, json_pack("{s:O}", "TrainingJob", found[i].job));
        }
        json_t *o = json_pack("{s:o}", "Results", list);
        if (i < n) {
            char token[32];
            (void)snprintf(token, sizeof token, TOKEN_PREFIX "%zu", i);
            (void)json_object_set_new(o, "NextToken", json_string(token));
        }
        reply_json(r, o);
    }
    for (size_t i = 0; i < all; i++) {
        json_decref(found[i].job);
    }
}
