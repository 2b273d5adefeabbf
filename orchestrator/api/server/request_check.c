/* See request_check.h. */
#include "request_check.h"
#include "body.h"
#include "common/cleanup.h"
#include "parameters.h"
#include "schemas.h"
#include "server_state.h"

/* Bodies that are not a JSON object of a schema here: the handler's own parser reads them. */
static const struct text_body {
    const char *schema, *types;
    bool named; /* the media type must be said */
} text_bodies[] = {
    {"CampaignFile", "application/yaml application/json application/x-yaml text/yaml", true},
    {"PartLines",
     "application/x-ndjson application/jsonl application/json application/octet-stream text/plain",
     false},
    {"ModelInput", "application/json */*", false},
    {"SourceArchive", "application/gzip application/octet-stream", false},
};

static const struct text_body *text_body_of(const struct route *t)
{
    for (size_t i = 0; i < ARRAY_LEN(text_bodies); i++) {
        if (strcmp(text_bodies[i].schema, t->body) == 0) {
            return &text_bodies[i];
        }
    }
    return NULL;
}

const char *request_media_types(const struct route *t)
{
    const struct text_body *text = text_body_of(t);
    return text != NULL ? text->types : "application/json";
}

bool request_is_text(const struct route *t)
{
    return text_body_of(t) != NULL;
}

/* The type up to its parameters, in any case. */
static bool media_type_in(const char *types, const char *type)
{
    struct str given = str_of(type);
    given = str_trim(str_split(&given, ';'));
    struct str rest = str_of(types);
    while (rest.n > 0) {
        struct str one = str_split(&rest, ' ');
        bool any = str_eq_cstr(one, "*/*") && memchr(given.p, '/', given.n) != NULL;
        if (any || (one.n == given.n && strncasecmp(one.p, given.p, one.n) == 0)) {
            return true;
        }
    }
    return false;
}

static bool check_media_type(struct api_req *r, struct err *err)
{
    const struct text_body *text = text_body_of(r->route);
    const char *type = req_header(r, MHD_HTTP_HEADER_CONTENT_TYPE);
    const char *types = request_media_types(r->route);
    bool named = text != NULL && text->named;
    if (type == NULL ? !named : media_type_in(types, type)) {
        return true;
    }
    return err_set(err, ERR_MEDIA_TYPE, "content type '%.64s' is not read here; send %s",
                   type != NULL ? type : "", types);
}

static bool check_json(struct api_req *r, struct err *err)
{
    struct str text = str_trim(buf_str(&r->body));
    AUTO_JSON json_t *v = NULL;
    if (text.n == 0) {
        v = json_object();
    } else if (!check_media_type(r, err) || !json_parse(text, API_BODY_MAX, &v, err)) {
        return false;
    }
    if (!json_is_object(v)) {
        return err_set(err, ERR_MALFORMED, "the body must be a JSON object");
    }
    if (r->route->body[0] == '\0') {
        return json_object_size(v) == 0 ||
               err_set(err, ERR_INVALID, "nothing is taken in the body here; send none");
    }
    struct faults *faults = arena_alloc(&r->arena, sizeof *faults);
    if (!schema_check(r->api->schemas, r->route->body, v, faults)) {
        r->faults = faults;
        const struct fault *f = &faults->at[0];
        return err_set(err, ERR_INVALID, "%s%s%s%s%s", f->pointer,
                       f->pointer[0] != '\0' ? ": " : "", f->message,
                       f->hint[0] != '\0' ? "; " : "", f->hint);
    }
    r->json = TAKE(v);
    return true;
}

/* Nobody changes what he has not seen. */
static bool check_if_match(const struct api_req *r, struct err *err)
{
    if (strcmp(r->route->method, "PATCH") != 0 || req_header(r, MHD_HTTP_HEADER_IF_MATCH) != NULL) {
        return true;
    }
    (void)err_set(err, ERR_PRECONDITION, "If-Match is missing: send the ETag you read");
    err->http_status = 428;
    return false;
}

bool request_check(struct api_req *r, struct err *err)
{
    if (!parameters_check(r, err) || !check_if_match(r, err)) {
        return false;
    }
    if (body_max(r) == 0) {
        return true;
    }
    return request_is_text(r->route) ? check_media_type(r, err) : check_json(r, err);
}
