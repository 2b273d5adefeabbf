/* Listings: ListObjectsV2 pages into one listing. The answer is untrusted: keys must lie under the
 * prefix, their number is bounded, and a repeated token or an endless run of empty pages is an
 * error. */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/xml.h"
#include "s3_internal.h"

#define S3_KEY_BYTES_MAX   1024
#define S3_TOKEN_BYTES_MAX ((size_t)4096)
#define S3_EMPTY_PAGES_MAX 100
#define S3_OPERATION       "ListObjectsV2"

void s3_listing_done(struct s3_listing *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->texts_[i]);
    }
    free(l->texts_);
    free(l->objects);
    buf_done(&l->strings_);
    *l = (struct s3_listing){0};
}

void s3_pages_init(struct s3_pages *p, const struct s3_uri *u, size_t max_keys)
{
    *p = (struct s3_pages){.u = *u, .max_keys = max_keys};
    p->listing = xcalloc(1, sizeof *p->listing);
}

void s3_pages_done(struct s3_pages *p)
{
    if (p->listing != NULL) {
        s3_listing_done(p->listing);
        free(TAKE(p->listing));
    }
    free(TAKE(p->token));
    free(TAKE(p->after));
}

void s3_pages_query(const struct s3_pages *p, struct buf *out)
{
    buf_add_cstr(out, "list-type=2&encoding-type=url&max-keys=1000&prefix=");
    str_url_encode(out, str_of(p->u.key), false);
    if (p->level) {
        buf_add_cstr(out, "&delimiter=%2F");
    }
    if (p->token != NULL) {
        buf_add_cstr(out, "&continuation-token=");
        str_url_encode(out, str_of(p->token), false);
    } else if (p->after != NULL) {
        buf_add_cstr(out, "&start-after=");
        str_url_encode(out, str_of(p->after), false);
    }
}

static void push(struct s3_pages *p, struct str key, struct str etag, int64_t size, usec_t modified)
{
    struct s3_listing *l = p->listing;
    size_t cap = p->cap;
    ARRAY_ROOM(l->objects, l->n, cap);
    ARRAY_ROOM(l->texts_, l->n, p->cap);
    char *text = xmalloc(key.n + 1 + etag.n + 1);
    memcpy(text, key.p, key.n);
    text[key.n] = '\0';
    memcpy(text + key.n + 1, etag.p, etag.n);
    text[key.n + 1 + etag.n] = '\0';
    l->texts_[l->n] = text;
    l->objects[l->n++] = (struct s3_object){text, text + key.n + 1, size, modified};
}

/* The fields of one <Contents> or <CommonPrefixes> while it is read, and those of the page. */
struct list_page {
    bool url_encoded;
    bool truncated;
    bool is_list;
    struct buf key, etag, size, modified, token, truncated_text;
};

static void page_done(struct list_page *g)
{
    struct buf *all[] = {&g->key, &g->etag, &g->size, &g->modified, &g->token, &g->truncated_text};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        buf_done(all[i]);
    }
}

static bool is_entry(struct str name)
{
    return str_eq_cstr(name, "Contents") || str_eq_cstr(name, "CommonPrefixes");
}

static struct buf *field_of(struct list_page *g, const struct xml *x)
{
    static const struct {
        int depth;
        const char *name;
        size_t offset;
    } fields[] = {
        {3, "Key", offsetof(struct list_page, key)},
        {3, "Prefix", offsetof(struct list_page, key)},
        {3, "ETag", offsetof(struct list_page, etag)},
        {3, "Size", offsetof(struct list_page, size)},
        {3, "LastModified", offsetof(struct list_page, modified)},
        {2, "NextContinuationToken", offsetof(struct list_page, token)},
        {2, "IsTruncated", offsetof(struct list_page, truncated_text)},
    };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (x->depth == fields[i].depth && str_eq_cstr(x->name[x->depth - 1], fields[i].name) &&
            (x->depth != 3 || is_entry(x->name[1]))) {
            return (struct buf *)(void *)((char *)g + fields[i].offset);
        }
    }
    return NULL;
}

/* folder: an entry without size and time. */
static bool take_object(struct s3_pages *p, struct list_page *g, bool folder, struct s3_result *r)
{
    AUTO_BUF struct buf decoded = BUF_INIT(S3_KEY_BYTES_MAX);
    struct str key = buf_str(&g->key);
    if (g->url_encoded) {
        if (!str_url_decode(&decoded, key, true)) {
            return s3_result_unreadable(r, S3_OPERATION, "a key is not well encoded");
        }
        key = buf_str(&decoded);
    }
    int64_t size = 0;
    usec_t modified = 0;
    if (key.n == 0 || key.n > S3_KEY_BYTES_MAX || decoded.overflow || !str_is_utf8(key) ||
        !str_starts(key, p->u.key)) {
        return s3_result_unreadable(r, S3_OPERATION, "a key does not belong to the listing");
    }
    if (!folder && (!parse_i64(buf_str(&g->size), 0, INT64_MAX, &size, NULL) ||
                    !clock_parse_rfc3339(buf_cstr(&g->modified), &modified, NULL))) {
        return s3_result_unreadable(r, S3_OPERATION, "an object's size or time is unreadable");
    }
    if (p->listing->n == p->max_keys) {
        r->outcome = AWS_REFUSED;
        return err_set(&r->err, ERR_LIMIT, "more than %zu keys under 's3://%s/%.200s'", p->max_keys,
                       p->u.bucket, p->u.key);
    }
    push(p, key, buf_str(&g->etag), size, modified);
    buf_reset(&g->key);
    buf_reset(&g->etag);
    buf_reset(&g->size);
    buf_reset(&g->modified);
    return true;
}

static bool read_page(struct s3_pages *p, struct list_page *g, struct str body, struct s3_result *r)
{
    struct xml x;
    struct str text;
    xml_init(&x, body);
    for (;;) {
        struct buf *field;
        switch (xml_next(&x, &text)) {
        case XML_OPEN:
            g->is_list |= x.depth == 1 && str_eq_cstr(text, "ListBucketResult");
            break;
        case XML_TEXT:
            field = field_of(g, &x);
            if (field != NULL) {
                xml_unescape(field, text);
            }
            break;
        case XML_CLOSE:
            if (is_entry(text) && g->key.n > 0 &&
                !take_object(p, g, str_eq_cstr(text, "CommonPrefixes"), r)) {
                return false;
            }
            break;
        case XML_END:
            return g->is_list || s3_result_unreadable(r, S3_OPERATION, "the answer is no listing");
        case XML_ERROR:
            return s3_result_unreadable(r, S3_OPERATION, "the answer is no XML document");
        }
    }
}

void s3_pages_forget(struct s3_pages *p, size_t n)
{
    while (p->listing->n > n) {
        free(p->listing->texts_[--p->listing->n]);
    }
}

bool s3_pages_add(struct s3_pages *p, struct str body, struct s3_result *r)
{
    CLEANUP(page_done)
    struct list_page g = {
        .key = BUF_INIT(3 * S3_KEY_BYTES_MAX),
        .etag = BUF_INIT(256),
        .size = BUF_INIT(32),
        .modified = BUF_INIT(64),
        .token = BUF_INIT(S3_TOKEN_BYTES_MAX),
        .truncated_text = BUF_INIT(16),
    };
    AUTO_BUF struct buf encoding = BUF_INIT(16);
    g.url_encoded =
        xml_find(body, "EncodingType", &encoding) && strcmp(buf_cstr(&encoding), "url") == 0;
    size_t before_n = p->listing->n;
    if (!read_page(p, &g, body, r)) {
        s3_pages_forget(p, before_n); /* what it has added halfway */
        return false;
    }
    p->empty_n = p->listing->n > before_n ? 0 : p->empty_n + 1;
    p->complete = strcmp(buf_cstr(&g.truncated_text), "true") != 0;
    if (p->complete) {
        return true;
    }
    bool same = p->token != NULL && strcmp(p->token, buf_cstr(&g.token)) == 0;
    if (g.token.n == 0 || g.token.overflow || same || p->empty_n > S3_EMPTY_PAGES_MAX) {
        r->outcome = AWS_REFUSED;
        return err_set(&r->err, ERR_AWS, S3_OPERATION ": the listing of 's3://%s/%.200s' %s",
                       p->u.bucket, p->u.key,
                       same ? "repeats its continuation token" : "does not come to an end");
    }
    free(p->token);
    p->token = buf_take(&g.token);
    return true;
}

struct list {
    struct aws_client *c;
    struct s3_pages pages;
    bool one_page;
    s3_cb cb;
    void *ctx;
};

static void next_page(struct list *l);

static void on_page(void *ctx, const struct s3_result *page)
{
    struct list *l = ctx;
    struct s3_result r = *page;
    bool ok = r.outcome == AWS_OK && s3_pages_add(&l->pages, page->body, &r);
    if (ok && !l->pages.complete && !l->one_page) {
        next_page(l);
        return;
    }
    r.body = (struct str){"", 0};
    r.listing = ok ? l->pages.listing : NULL;
    r.next_token = ok && !l->pages.complete ? l->pages.token : NULL;
    l->cb(l->ctx, &r);
    s3_pages_done(&l->pages);
    free(l);
}

static void next_page(struct list *l)
{
    AUTO_BUF struct buf query = BUF_INIT(S3_QUERY_BYTES_MAX * 2);
    s3_pages_query(&l->pages, &query);
    struct s3_spec spec = {.operation = S3_OPERATION,
                           .method = "GET",
                           .of_bucket = true,
                           .xml_root = "ListBucketResult",
                           .query = buf_cstr(&query)};
    s3_start(l->c, &l->pages.u, &spec, on_page, l);
}

static void list(struct aws_client *c, const struct s3_uri *u, size_t max_keys, bool level,
                 s3_cb cb, void *ctx)
{
    struct list *l = xcalloc(1, sizeof *l);
    *l = (struct list){.c = c, .cb = cb, .ctx = ctx};
    s3_pages_init(&l->pages, u, max_keys);
    l->pages.level = level;
    next_page(l);
}

void s3_list(struct aws_client *c, const struct s3_uri *u, size_t max_keys, s3_cb cb, void *ctx)
{
    list(c, u, max_keys, false, cb, ctx);
}

void s3_list_level(struct aws_client *c, const struct s3_uri *u, size_t max_keys, s3_cb cb,
                   void *ctx)
{
    list(c, u, max_keys, true, cb, ctx);
}

void s3_list_page(struct aws_client *c, const struct s3_uri *u, const char *after,
                  const char *token, s3_cb cb, void *ctx)
{
    struct list *l = xcalloc(1, sizeof *l);
    *l = (struct list){.c = c, .one_page = true, .cb = cb, .ctx = ctx};
    s3_pages_init(&l->pages, u, SIZE_MAX);
    l->pages.after = after[0] != '\0' ? xstrdup(after) : NULL;
    l->pages.token = token != NULL ? xstrdup(token) : NULL;
    next_page(l);
}
