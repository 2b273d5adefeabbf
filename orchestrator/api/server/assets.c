/* The dashboard's files, linked into the binary: asset_table[] of {path, type, start, end, etag},
 * terminated by zeros. A path "x.gz" is x compressed. Every page of the dashboard is index.html. */
#include "assets.h"
#include "compress.h"
#include "reply.h"
#include "request.h"

struct asset {
    const char *path, *type, *start, *end, *etag;
};
extern const struct asset asset_table[];

static const struct asset *asset_find(const char *path, const char *suffix)
{
    size_t n = strlen(path);
    for (const struct asset *a = asset_table; a->path != NULL; a++) {
        const char *name = a->path[0] == '/' ? a->path + 1 : a->path;
        if (strncmp(name, path, n) == 0 && strcmp(name + n, suffix) == 0) {
            return a;
        }
    }
    return NULL;
}

/* A name with a hash in it never changes its content. */
static bool is_hashed(const char *path)
{
    return strncmp(path, "assets/", 7) == 0;
}

/* "" or "/NAME" */
static bool is_endpoint(const char *rest)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return rest[0] == '\0' ||
           (rest[0] == '/' && rest[1] != '\0' && rest[1 + strspn(rest + 1, name)] == '\0');
}

/* The pages of main.js, but those of endpoints and campaigns; and what is below /c/7. */
static const char *const top_pages[] = {"/",       "/filesystems", "/pools",    "/quotas", "/bill",
                                        "/tokens", "/webhooks",    "/projects", "/audit"};
static const char *const campaign_pages[] = {"parts", "scaling", "compare", "timeline", "cost"};

static bool is_one_of(struct str s, const char *const *names, size_t n)
{
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        found |= str_eq_cstr(s, names[i]);
    }
    return found;
}

/* The pages of main.js: those of top_pages, /endpoints, /endpoints/NAME, /c/7 (or /c/c-7), and
 * below it those of campaign_pages. */
static bool is_page(const char *path)
{
    if (is_one_of(str_of(path), top_pages, ARRAY_LEN(top_pages))) {
        return true;
    }
    if (strncmp(path, "/endpoints", 10) == 0) {
        return is_endpoint(path + 10);
    }
    if (strncmp(path, "/c/", 3) != 0) {
        return false;
    }
    struct str rest = str_of(path + (strncmp(path + 3, "c-", 2) == 0 ? 5 : 3));
    struct str id = str_split(&rest, '/');
    int64_t n;
    bool below = rest.n > 0 || (id.n > 0 && id.p[id.n] == '/');
    return parse_i64(id, 0, INT64_MAX, &n, NULL) && id.p[0] != '-' &&
           (!below || is_one_of(rest, campaign_pages, ARRAY_LEN(campaign_pages)));
}

/* True when a person's browser asks for a page, as it does not for a script or a picture. */
static bool wants_page(const struct api_req *r)
{
    const char *v = req_header(r, MHD_HTTP_HEADER_ACCEPT);
    return v != NULL && strstr(v, "text/html") != NULL;
}

bool asset_serve(struct api_req *r)
{
    bool get = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
    if (!get || strncmp(r->path, "/v1/", 4) == 0) {
        return false;
    }
    const char *path = is_page(r->path) ? "index.html" : r->path + 1;
    bool lost = wants_page(r) && asset_find(path, "") == NULL && asset_find(path, ".gz") == NULL;
    path = lost ? "index.html" : path; /* it says so, and leads back */
    const struct asset *plain = asset_find(path, "");
    const struct asset *packed = asset_find(path, ".gz");
    const struct asset *a = packed != NULL && (plain == NULL || accepts_gzip(r)) ? packed : plain;
    if (a == NULL) {
        return false;
    }
    r->status = lost ? 404 : 200;
    r->content_type = a->type;
    reply_header(r, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
    reply_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "%s",
                 is_hashed(path) ? "public, max-age=31536000, immutable" : "no-cache");
    if (!lost && a->etag != NULL && a->etag[0] != '\0') {
        bool quoted = a->etag[0] == '"';
        const char *tag = quoted ? a->etag : arena_printf(&r->arena, "\"%s\"", a->etag);
        if (reply_etag(r, tag)) {
            return true;
        }
    }
    if (a == packed) {
        reply_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    }
    r->fixed = a->start;
    r->fixed_n = (size_t)(a->end - a->start);
    return true;
}
