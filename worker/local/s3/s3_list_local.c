/* ListObjectsV2, ListObjects and ListBuckets. See s3_local.h. */
#include "common/clock.h"
#include "common/xml.h"
#include "local/app.h"
#include "s3_local.h"
#include "s3_walk.h"
#include "s3_write_local.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#define LIST_KEYS_MAX 1000

struct listing {
    struct request *r;
    struct buf *contents;
    struct buf *prefixes;
    bool url; /* encoding-type=url */
    bool v1;  /* ListObjects: pages by marker */
    int64_t max;
    int64_t n;
    bool truncated;
    char last[S3_KEY_MAX + 1];
    char after[S3_KEY_MAX + 1];
};

static void text_add(struct buf *out, const char *text, bool url)
{
    if (url) {
        str_url_encode(out, str_of(text), true);
    } else {
        xml_escape(out, str_of(text));
    }
}

static bool listing_found(void *ctx, const char *key, const struct stat *st, const char *path)
{
    struct listing *l = ctx;
    if (l->n == l->max) {
        l->truncated = true;
        return false;
    }
    if (st == NULL) {
        buf_add_cstr(l->prefixes, "<CommonPrefixes><Prefix>");
        text_add(l->prefixes, key, l->url);
        buf_add_cstr(l->prefixes, "</Prefix></CommonPrefixes>");
    } else {
        struct s3_meta m;
        struct err err = ERR_INIT;
        struct stat now;
        char date[32];
        AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &now) != 0 ||
            !s3_store_meta_get(l->r->app->root, fd, &now, &m, &err)) {
            return true; /* removed during the listing */
        }
        clock_format_rfc3339(now.st_mtim.tv_sec * USEC_PER_SEC, false, date);
        buf_add_cstr(l->contents, "<Contents><Key>");
        text_add(l->contents, key, l->url);
        /* S3 shows milliseconds. */
        date[strlen(date) - 1] = '\0';
        buf_addf(l->contents,
                 "</Key><LastModified>%s.000Z</LastModified><ETag>&quot;%s&quot;</ETag><Size>%lld</"
                 "Size><StorageClass>STANDARD</StorageClass></Contents>",
                 date, m.etag, (long long)now.st_size);
    }
    l->n++;
    (void)snprintf(l->last, sizeof l->last, "%s", key);
    return true;
}

/* Continuation tokens are the last key of the page before, in hex. */
static bool token_decode(const struct buf *token, char *out, size_t out_n)
{
    size_t n = token->n / 2;
    if (n == 0 || n >= out_n || token->n % 2 != 0 ||
        !str_unhex(buf_str(token), (uint8_t *)out, n)) {
        return false;
    }
    out[n] = '\0';
    return true;
}

static void listing_reply(const struct listing *l, const char *bucket, const struct buf *prefix,
                          const struct buf *delimiter)
{
    struct buf *b = &l->r->reply.body;
    buf_addf(b, S3_XML_HEAD "<ListBucketResult " S3_XMLNS "><Name>%s</Name><Prefix>", bucket);
    text_add(b, buf_cstr(prefix), l->url);
    if (l->v1) {
        buf_add_cstr(b, "</Prefix><Marker>");
        text_add(b, l->after, l->url);
        buf_add_cstr(b, "</Marker>");
    } else {
        buf_addf(b, "</Prefix><KeyCount>%lld</KeyCount>", (long long)l->n);
    }
    buf_addf(b, "<MaxKeys>%lld</MaxKeys>", (long long)l->max);
    if (delimiter->n > 0) {
        buf_add_cstr(b, "<Delimiter>");
        text_add(b, buf_cstr(delimiter), l->url);
        buf_add_cstr(b, "</Delimiter>");
    }
    buf_addf(b, "%s<IsTruncated>%s</IsTruncated>", l->url ? "<EncodingType>url</EncodingType>" : "",
             l->truncated ? "true" : "false");
    if (l->truncated && l->v1 && delimiter->n > 0) { /* else the last key is the next marker */
        buf_add_cstr(b, "<NextMarker>");
        text_add(b, l->last, l->url);
        buf_add_cstr(b, "</NextMarker>");
    } else if (l->truncated && !l->v1) {
        char hex[2 * S3_KEY_MAX + 1];
        str_hex((const uint8_t *)l->last, strlen(l->last), hex);
        buf_addf(b, "<NextContinuationToken>%s</NextContinuationToken>", hex);
    }
    buf_add_str(b, buf_str(l->contents));
    buf_add_str(b, buf_str(l->prefixes));
    buf_add_cstr(b, "</ListBucketResult>");
    reply_xml(l->r);
}

void s3_list_objects(struct request *r, const char *bucket)
{
    AUTO_BUF struct buf prefix = BUF_INIT(S3_KEY_MAX);
    AUTO_BUF struct buf delimiter = BUF_INIT(64);
    AUTO_BUF struct buf text = BUF_INIT(2 * S3_KEY_MAX + 2);
    AUTO_BUF struct buf contents = BUF_INIT(REPLY_BODY_BYTES_MAX / 2);
    AUTO_BUF struct buf prefixes = BUF_INIT(REPLY_BODY_BYTES_MAX / 4);
    struct listing l = {.r = r,
                        .contents = &contents,
                        .prefixes = &prefixes,
                        .v1 = strcmp(r->operation, "ListObjects") == 0,
                        .max = LIST_KEYS_MAX};
    struct err err = ERR_INIT;
    (void)request_query(r, "prefix", &prefix);
    (void)request_query(r, "delimiter", &delimiter);
    l.url = request_query(r, "encoding-type", &text) && strcmp(buf_cstr(&text), "url") == 0;
    if (request_query(r, "max-keys", &text)) {
        if (!parse_i64(buf_str(&text), 0, INT32_MAX, &l.max, &err)) {
            reply_error(r, 400, "InvalidArgument",
                        "Provided max-keys not an integer or within "
                        "integer range");
            return;
        }
        l.max = MIN(l.max, LIST_KEYS_MAX);
    }
    if (!l.v1 && request_query(r, "continuation-token", &text)) {
        if (!token_decode(&text, l.after, sizeof l.after)) {
            reply_error(r, 400, "InvalidArgument", "The continuation token provided is incorrect");
            return;
        }
    } else if (request_query(r, l.v1 ? "marker" : "start-after", &text)) {
        (void)snprintf(l.after, sizeof l.after, "%s", buf_cstr(&text));
    }
    struct s3_walk w = {.root = r->app->root,
                        .bucket = bucket,
                        .prefix = buf_cstr(&prefix),
                        .after = l.after,
                        .delimiter = buf_cstr(&delimiter),
                        .found = listing_found,
                        .ctx = &l};
    if (!s3_walk_run(&w, &err)) {
        s3_reply_err(r, &err);
        return;
    }
    l.truncated = l.truncated && l.max > 0;
    listing_reply(&l, bucket, &prefix, &delimiter);
}

void s3_list_buckets(struct request *r)
{
    char path[PATH_MAX];
    struct dirent **list = NULL;
    struct buf *b = &r->reply.body;
    (void)snprintf(path, sizeof path, "%s/s3", r->app->root);
    int n = scandir(path, &list, NULL, alphasort);
    buf_add_cstr(b, S3_XML_HEAD "<ListAllMyBucketsResult " S3_XMLNS
                                "><Owner><ID>drover-local</ID></Owner><Buckets>");
    for (int i = 0; i < n; i++) {
        if (s3_store_has_bucket(r->app->root, list[i]->d_name)) {
            buf_addf(b,
                     "<Bucket><Name>%s</Name><CreationDate>2026-01-01T00:00:00.000Z</"
                     "CreationDate></Bucket>",
                     list[i]->d_name);
        }
        free(list[i]);
    }
    free(list);
    buf_add_cstr(b, "</Buckets></ListAllMyBucketsResult>");
    reply_xml(r);
}
