/* See openapi.h. */
#include "openapi.h"
#include "list_view.h"
#include "parameters.h"
#include "problems.h"
#include "request_check.h"
#include "router.h"
#include "scope.h"
#include <stdio.h>

static const struct tag {
    const char *name, *begins, *text; /* of a path; NULL: further down */
} tags[] = {
    {"campaigns", "/v1/campaigns", "Campaigns, their parts, costs, forecasts and metrics."},
    {"parts", "/v1/parts", "Parts with their attempts."},
    {"operations", "/v1/operations", "Bulk changes."},
    {"events", "/v1/events", "Events as streams."},
    {"webhooks", "/v1/webhooks", "Webhooks that are told what happens, and what was sent to them."},
    {"resources", "/v1/", "Quotas, pools, endpoints, strays, and what was set aside."},
    {"access", NULL, "Tokens, sessions, projects and limits."},
    {"server", "/", "Health, counters, this document, and the pages of errors."},
};

static const char *tag_of(const struct route *t)
{
    static const char *const access[] = {"/v1/log",     "/v1/session", "/v1/token",
                                         "/v1/project", "/v1/limit",   NULL};
    for (size_t i = 0; access[i] != NULL; i++) {
        if (strncmp(t->pattern, access[i], strlen(access[i])) == 0) {
            return "access";
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
        if (tags[i].begins != NULL &&
            strncmp(t->pattern, tags[i].begins, strlen(tags[i].begins)) == 0) {
            return tags[i].name;
        }
    }
    BUG("a route without a tag");
}

/* Statuses of errors, in the order of the document. */
static const int statuses[] = {400, 401, 403, 404, 409, 410, 412, 413, 415,
                               422, 424, 428, 429, 431, 500, 502, 503, 504};
#define STATUSES_N ARRAY_LEN(statuses)

static void add_status(bool has[static STATUSES_N], int status)
{
    for (size_t i = 0; i < STATUSES_N; i++) {
        if (statuses[i] == status) {
            has[i] = true;
            return;
        }
    }
    BUG("a status that the document does not know");
}

static void add_code(bool has[static STATUSES_N], struct str name)
{
    for (int i = 1; i < ERR_CODE_COUNT; i++) {
        if (str_eq_cstr(name, err_code_name((enum err_code)i))) {
            add_status(has, err_code_http((enum err_code)i));
            return;
        }
    }
    BUG("routes.def names an error that there is not");
}

/* What follows from the row, and what it names besides. */
static void errors_of(const struct route *t, bool has[static STATUSES_N])
{
    bool get = strcmp(t->method, "GET") == 0;
    add_status(has, 400);
    add_status(has, 431);
    add_status(has, 503);
    if ((t->flags & ROUTE_INLINE) == 0) {
        add_status(has, 500);
    }
    if (t->role != API_PUBLIC) {
        add_status(has, 401);
        add_status(has, 403);
        add_status(has, 429);
    }
    if (strchr(t->pattern, '{') != NULL) {
        add_status(has, 404);
    }
    if (!get) {
        add_status(has, 413);
        add_status(has, 415);
    }
    if (!get || parameters_choose(t)) {
        add_status(has, 422);
    }
    if (strcmp(t->method, "PATCH") == 0) {
        add_status(has, 412);
        add_status(has, 428);
    }
    struct str names = str_of(t->errors);
    while (names.n > 0) {
        add_code(has, str_split(&names, ' '));
    }
}

static void out_ref(struct json_out *w, const char *key, const char *kind, struct str name)
{
    char text[128];
    (void)snprintf(text, sizeof text, "#/components/%s/%.*s", kind, (int)name.n, name.p);
    json_out_object(w, key);
    json_out_str(w, "$ref", text);
    json_out_end_object(w);
}

static void out_words(struct json_out *w, const char *words)
{
    struct str rest = str_of(words);
    json_out_array(w, "enum");
    while (rest.n > 0) {
        json_out_strn(w, NULL, str_split(&rest, ' '));
    }
    json_out_end_array(w);
}

static void out_number(struct json_out *w, const struct parameter *p)
{
    json_out_str(w, "type", "integer");
    json_out_str(w, "format", "int64");
    json_out_i64(w, "minimum", p->min);
    if (p->max < INT64_MAX) {
        json_out_i64(w, "maximum", p->max);
    }
    if (p->dflt >= p->min && p->place != PARAMETER_PATH) {
        json_out_i64(w, "default", p->dflt);
    }
}

static void out_pattern(struct json_out *w, const char *begin, const char *pattern)
{
    AUTO_BUF struct buf whole = BUF_INIT(1024);
    buf_addf(&whole, "^%s(%s)$", begin, pattern);
    json_out_str(w, "pattern", buf_cstr(&whole));
}

static void out_schema(struct json_out *w, const struct parameter *p)
{
    json_out_object(w, "schema");
    switch (p->type) {
    case PARAMETER_NUMBER:
        out_number(w, p);
        break;
    case PARAMETER_TEXT:
        json_out_str(w, "type", "string");
        json_out_i64(w, "minLength", p->min);
        json_out_i64(w, "maxLength", p->max);
        if (p->words[0] != '\0') {
            out_pattern(w, "", p->words);
        }
        break;
    case PARAMETER_FLAG:
        json_out_str(w, "type", "boolean");
        json_out_bool(w, "default", false);
        break;
    case PARAMETER_WORD:
        json_out_str(w, "type", "string");
        out_words(w, p->words);
        break;
    case PARAMETER_ID:
        json_out_str(w, "type", "string");
        out_pattern(w, p->words, p->min > 0 ? "[1-9][0-9]{0,17}" : "0|[1-9][0-9]{0,17}");
        break;
    }
    json_out_end_object(w);
}

static void out_example(struct json_out *w, const struct parameter *p)
{
    int64_t n;
    if (p->example[0] == '\0') {
        return;
    }
    if (p->type == PARAMETER_NUMBER && parse_i64(str_of(p->example), 0, INT64_MAX, &n, NULL)) {
        json_out_i64(w, "example", n);
    } else if (p->type == PARAMETER_FLAG) {
        json_out_bool(w, "example", strcmp(p->example, "true") == 0);
    } else {
        json_out_str(w, "example", p->example);
    }
}

static void out_parameter(struct json_out *w, const struct parameter *p)
{
    json_out_object(w, p->id);
    json_out_str(w, "name", p->name);
    json_out_str(w, "in", p->place == PARAMETER_PATH ? "path" : "query");
    json_out_bool(w, "required", p->place == PARAMETER_PATH || p->place == PARAMETER_NEEDED);
    json_out_str(w, "description", p->text);
    out_schema(w, p);
    out_example(w, p);
    json_out_end_object(w);
}

/* Parameters that headers carry; which of them a route takes follows from its method and flags. */
#define HEADER_SCHEMA "\"schema\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":255}"
static const struct header_parameter {
    const char *id, *text;
} headers[] = {
    {"if_none_match",
     "{\"name\":\"If-None-Match\",\"in\":\"header\",\"required\":false,\"description\":"
     "\"ETags of answers that are known; 304 when one is still right.\"," HEADER_SCHEMA "}"},
    {"if_match", "{\"name\":\"If-Match\",\"in\":\"header\",\"required\":true,\"description\":"
                 "\"The ETag of what is to change as it was read, or *.\"," HEADER_SCHEMA "}"},
    {"key",
     "{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"required\":false,\"description\":"
     "\"A random text: the same request with the same key happens once.\"," HEADER_SCHEMA "}"},
    {"key_needed",
     "{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"required\":true,\"description\":"
     "\"A random text: the same request with the same key happens once. A dry run needs "
     "none.\"," HEADER_SCHEMA "}"},
};

static void parameters_of(struct json_out *w, const struct route *t)
{
    const struct parameter *p;
    const char *at = t->pattern;
    json_out_array(w, "parameters");
    while ((p = parameter_of_path(&at)) != NULL) {
        out_ref(w, NULL, "parameters", str_of(p->id));
    }
    struct str ids = str_of(t->query);
    while (ids.n > 0) {
        out_ref(w, NULL, "parameters", str_split(&ids, ' '));
    }
    if (strcmp(t->method, "PATCH") == 0) {
        out_ref(w, NULL, "parameters", STR("if_match"));
    }
    if ((t->flags & ROUTE_KEY) != 0) {
        out_ref(w, NULL, "parameters", STR("key"));
    }
    if ((t->flags & ROUTE_KEY_NEEDED) != 0) {
        out_ref(w, NULL, "parameters", STR("key_needed"));
    }
    if (strcmp(t->method, "GET") == 0 && (t->flags & ROUTE_STREAM) == 0) {
        out_ref(w, NULL, "parameters", STR("if_none_match"));
    }
    json_out_end_array(w);
}

static void out_content(struct json_out *w, struct str type, struct str schema)
{
    char key[64];
    (void)snprintf(key, sizeof key, "%.*s", (int)type.n, type.p);
    json_out_object(w, key);
    if (schema.n > 0) {
        out_ref(w, "schema", "schemas", schema);
    } else {
        json_out_raw(w, "schema", STR("{\"type\":\"string\"}"));
    }
    json_out_end_object(w);
}

static void body_of(struct json_out *w, const json_t *schemas, const struct route *t)
{
    if (t->body[0] == '\0') {
        return;
    }
    const json_t *schema = json_object_get(schemas, t->body);
    struct str types = str_of(request_media_types(t));
    bool text = request_is_text(t);
    json_out_object(w, "requestBody");
    json_out_bool(w, "required", text || json_object_get(schema, "required") != NULL);
    json_out_object(w, "content");
    while (types.n > 0) {
        struct str type = str_split(&types, ' ');
        bool described = schema != NULL && str_eq_cstr(type, "application/json");
        out_content(w, type, described ? str_of(t->body) : STR(""));
    }
    json_out_end_object(w);
    json_out_end_object(w);
}

static void out_answer(struct json_out *w, const json_t *schemas, const struct route *t,
                       struct str answer)
{
    char status[8];
    (void)snprintf(status, sizeof status, "%.*s", 3, answer.p);
    struct str what = str_trim((struct str){answer.p + 3, answer.n - 3});
    bool typed = memchr(what.p, '/', what.n) != NULL;
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)what.n, what.p);
    char view[LIST_VIEW_NAME_MAX];
    list_view_name(t, what, view);
    const json_t *schema = json_object_get(schemas, typed ? name : view);
    ASSERT(typed || schema != NULL);
    json_out_object(w, status);
    json_out_str(w, "description",
                 typed ? t->summary : json_string_value(json_object_get(schema, "description")));
    json_out_object(w, "headers");
    out_ref(w, "X-Request-Id", "headers", STR("request_id"));
    if (strcmp(status, "201") == 0 && (t->flags & ROUTE_BULK) == 0) {
        out_ref(w, "Location", "headers", STR("location"));
    }
    json_out_end_object(w);
    json_out_object(w, "content");
    while (typed && what.n > 0) {
        out_content(w, str_split(&what, '|'), STR(""));
    }
    if (!typed) {
        out_content(w, STR("application/json"), str_of(view));
    }
    json_out_end_object(w);
    json_out_end_object(w);
}

static void responses_of(struct json_out *w, const json_t *schemas, const struct route *t)
{
    bool has[STATUSES_N] = {false}, own_503 = strstr(t->answers, "503 ") != NULL;
    struct str answers = str_of(t->answers);
    json_out_object(w, "responses");
    while (answers.n > 0) {
        out_answer(w, schemas, t, str_trim(str_split(&answers, ',')));
    }
    if (strcmp(t->method, "GET") == 0 && (t->flags & ROUTE_STREAM) == 0) {
        out_ref(w, "304", "responses", STR("not_modified"));
    }
    errors_of(t, has);
    for (size_t i = 0; i < STATUSES_N; i++) {
        if (has[i] && !(own_503 && statuses[i] == 503)) {
            char key[8];
            (void)snprintf(key, sizeof key, "%d", statuses[i]);
            char name[16];
            (void)snprintf(name, sizeof name, "problem_%d", statuses[i]);
            out_ref(w, key, "responses", str_of(name));
        }
    }
    json_out_end_object(w);
}

static void description_of(const struct route *t, struct buf *out)
{
    static const char *const roles[] = {"no token", "a token of role viewer, operator or admin",
                                        "a token of role operator or admin",
                                        "a token of role admin"};
    buf_addf(out, "%c%s. Takes %s.", t->summary[0] & ~0x20, t->summary + 1, roles[t->role]);
    if ((t->flags & ROUTE_DRY_RUN) != 0) {
        buf_add_cstr(out, " A dry run takes role viewer.");
    }
    if (t->role != API_PUBLIC && scope_of(t) >= SCOPE_QUERY) {
        buf_addf(out, " A token that counts in some projects only is refused%s.",
                 scope_of(t) == SCOPE_QUERY ? " without the campaign" : "");
    }
}

static void out_operation(struct json_out *w, const json_t *schemas, const struct route *t)
{
    static const char *const roles[] = {"public", "viewer", "operator", "admin"};
    static const char *const scopes[] = {"projects", "campaign", "campaign_query", "installation"};
    AUTO_BUF struct buf text = BUF_INIT(1024);
    char method[8] = "", summary[128];
    for (size_t i = 0; t->method[i] != '\0' && i + 1 < sizeof method; i++) {
        method[i] = (char)(t->method[i] | 0x20);
    }
    (void)snprintf(summary, sizeof summary, "%s", t->summary);
    description_of(t, &text);
    json_out_object(w, method);
    json_out_str(w, "operationId", t->operation);
    json_out_str(w, "summary", summary);
    json_out_str(w, "description", buf_cstr(&text));
    json_out_array(w, "tags");
    json_out_str(w, NULL, tag_of(t));
    json_out_end_array(w);
    json_out_str(w, "x-role", roles[t->role]);
    if (t->role != API_PUBLIC) {
        json_out_str(w, "x-scope", scopes[scope_of(t)]);
    }
    if ((t->flags & ROUTE_DRY_RUN) != 0) {
        json_out_str(w, "x-dry-run-role", roles[API_VIEWER]);
    }
    parameters_of(w, t);
    body_of(w, schemas, t);
    responses_of(w, schemas, t);
    if (t->role == API_PUBLIC) {
        json_out_raw(w, "security", STR("[]"));
    }
    json_out_end_object(w);
}

/* True when it is no part of the document by itself: a page, or an earlier row has the same pattern
 * with another method. */
static bool is_left_out(size_t i)
{
    if ((route_table[i].flags & ROUTE_PAGE) != 0) {
        return true;
    }
    for (size_t j = 0; j < i; j++) {
        if (strcmp(route_table[j].pattern, route_table[i].pattern) == 0) {
            return true;
        }
    }
    return false;
}

static void out_paths(struct json_out *w, const json_t *schemas)
{
    json_out_object(w, "paths");
    for (size_t i = 0; i < route_table_n; i++) {
        if (is_left_out(i)) {
            continue;
        }
        json_out_object(w, route_table[i].pattern);
        for (size_t j = i; j < route_table_n; j++) {
            if (strcmp(route_table[j].pattern, route_table[i].pattern) == 0) {
                out_operation(w, schemas, &route_table[j]);
            }
        }
        json_out_end_object(w);
    }
    json_out_end_object(w);
}

/* One answer of errors for each status; its description names the codes that have it. */
static void out_problem(struct json_out *w, int status)
{
    char name[16];
    AUTO_BUF struct buf text = BUF_INIT(4096);
    (void)snprintf(name, sizeof name, "problem_%d", status);
    for (int i = 1; i < ERR_CODE_COUNT; i++) {
        enum err_code code = (enum err_code)i;
        bool other =
            (status == 428 && code == ERR_PRECONDITION) || (status == 431 && code == ERR_TOO_LARGE);
        if (err_code_http(code) == status || other) {
            buf_addf(&text, "%s%s: %s", text.n > 0 ? " " : "", err_code_name(code),
                     problem_meaning(code));
        }
    }
    ASSERT(text.n > 0);
    json_out_object(w, name);
    json_out_str(w, "description", buf_cstr(&text));
    json_out_object(w, "headers");
    out_ref(w, "X-Request-Id", "headers", STR("request_id"));
    if (status == 429 || status == 503) {
        out_ref(w, "Retry-After", "headers", STR("retry_after"));
    }
    json_out_end_object(w);
    json_out_object(w, "content");
    out_content(w, STR("application/problem+json"), STR("Problem"));
    json_out_end_object(w);
    json_out_end_object(w);
}

/* Not only of pages. */
static bool is_described(const struct parameter *p)
{
    bool of_pages = false;
    for (size_t i = 0; i < route_table_n; i++) {
        for (struct str ids = str_of(route_table[i].query); ids.n > 0;) {
            if (str_eq_cstr(str_split(&ids, ' '), p->id)) {
                if ((route_table[i].flags & ROUTE_PAGE) == 0) {
                    return true;
                }
                of_pages = true;
            }
        }
    }
    return !of_pages;
}

static void out_components(struct json_out *w, const json_t *schemas)
{
    AUTO_FREE char *text = json_text(schemas);
    json_out_object(w, "components");
    json_out_raw(
        w, "securitySchemes",
        STR("{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"},"
            "\"session\":{\"type\":\"apiKey\",\"in\":\"cookie\",\"name\":\"drover_session\","
            "\"description\":\"Of login. Changes also need the X-Drover-CSRF header.\"}}"));
    json_out_object(w, "parameters");
    for (size_t i = 0; i < parameter_table_n; i++) {
        if (is_described(&parameter_table[i])) {
            out_parameter(w, &parameter_table[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        json_out_raw(w, headers[i].id, str_of(headers[i].text));
    }
    json_out_end_object(w);
    json_out_raw(
        w, "headers",
        STR("{\"request_id\":{\"description\":\"As sent when it is a word of 64 characters, else a "
            "new one.\",\"schema\":{\"type\":\"string\"}},"
            "\"location\":{\"description\":\"Where it is.\",\"schema\":{\"type\":\"string\"}},"
            "\"retry_after\":{\"description\":\"Seconds.\",\"schema\":{\"type\":\"integer\"}}}"));
    json_out_object(w, "responses");
    json_out_raw(w, "not_modified",
                 STR("{\"description\":\"One of the ETags of If-None-Match is still right.\"}"));
    for (size_t i = 0; i < STATUSES_N; i++) {
        out_problem(w, statuses[i]);
    }
    json_out_end_object(w);
    json_out_raw(w, "schemas", str_of(text));
    json_out_end_object(w);
}

void openapi_build(const json_t *schemas, struct buf *out)
{
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_str(&w, "openapi", "3.1.0");
    json_out_raw(
        &w, "info",
        STR("{\"title\":\"drover\",\"version\":\"1\",\"description\":\"Campaigns of jobs on Amazon "
            "SageMaker. Times are RFC 3339, durations whole seconds, money whole millionths of a "
            "US "
            "dollar. Unknown keys of requests are errors; clients must accept keys and words of "
            "answers that they do not know.\",\"license\":{\"name\":\"Apache-2.0\",\"identifier\":"
            "\"Apache-2.0\"},\"contact\":{\"name\":\"who runs this droverd\"}}"));
    json_out_raw(&w, "servers", STR("[{\"url\":\"/\",\"description\":\"This droverd.\"}]"));
    json_out_raw(&w, "security", STR("[{\"token\":[]},{\"session\":[]}]"));
    json_out_array(&w, "tags");
    for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
        json_out_object(&w, NULL);
        json_out_str(&w, "name", tags[i].name);
        json_out_str(&w, "description", tags[i].text);
        json_out_end_object(&w);
    }
    json_out_end_array(&w);
    out_paths(&w, schemas);
    out_components(&w, schemas);
    json_out_end_object(&w);
    buf_add_char(out, '\n');
    ASSERT(!out->overflow);
}
