/* DeleteObjects: up to 1,000 keys in one request, each with its own answer. See s3_local.h. */
#include "common/xml.h"
#include "local/app.h"
#include "local/http/upload.h"
#include "local/iam/permission.h"
#include "s3_local.h"
#include "s3_write_local.h"

#define KEYS_MAX 1000

/* Keys of the request's body, each ended by a NUL, into keys. False: malformed or too many. */
static bool keys_parse(struct str body, struct buf *keys, bool *ret_quiet)
{
    struct xml x;
    struct str text;
    enum xml_event ev;
    AUTO_BUF struct buf value = BUF_INIT(8 * S3_KEY_MAX);
    size_t n = 0;
    *ret_quiet = false;
    xml_init(&x, body);
    while ((ev = xml_next(&x, &text)) != XML_END) {
        if (ev == XML_ERROR || n > KEYS_MAX) {
            return false;
        }
        if (ev == XML_OPEN) {
            buf_reset(&value);
        } else if (ev == XML_TEXT) {
            xml_unescape(&value, text);
        } else if (str_eq_cstr(text, "Key")) {
            if (value.n == 0 || value.n > S3_KEY_MAX) {
                return false;
            }
            buf_add_cstr(keys, buf_cstr(&value));
            buf_add_char(keys, '\0');
            n++;
        } else if (str_eq_cstr(text, "Quiet")) {
            *ret_quiet = str_eq_cstr(buf_str(&value), "true");
        }
    }
    return n > 0 && n <= KEYS_MAX && !keys->overflow;
}

/* The body has the checksum or MD5 that S3 wants for it. False: answered. */
static bool body_check(struct request *r)
{
    struct s3_checksum sum;
    r->upload = upload_new(r->app->root, r->arrival, (struct str){0});
    if (r->upload != NULL) {
        upload_add(r->upload, r->body.p, r->body.n);
        upload_end(r->upload);
    }
    if (!s3_body_ok(r, &sum)) {
        return false;
    }
    if (sum.algorithm == S3_NO_ALGORITHM && request_header(r, "content-md5").p == NULL) {
        reply_error(r, 400, "InvalidRequest",
                    "Missing required header for this request: Content-MD5");
        return false;
    }
    return true;
}

static void key_delete(struct request *r, const char *bucket, const char *key, bool quiet)
{
    struct buf *b = &r->reply.body;
    AUTO_FREE char *arn = xasprintf("arn:aws:s3:::%s/%s", bucket, key);
    bool may = permission_allows(r, "s3:DeleteObject", arn);
    if (may) {
        pthread_mutex_lock(&r->app->s3_mu);
        s3_store_remove(r->app->root, bucket, key);
        pthread_mutex_unlock(&r->app->s3_mu);
        if (quiet) {
            return;
        }
    }
    buf_add_cstr(b, may ? "<Deleted><Key>" : "<Error><Key>");
    xml_escape(b, str_of(key));
    buf_add_cstr(b,
                 may ? "</Key></Deleted>"
                     : "</Key><Code>AccessDenied</Code><Message>Access Denied</Message></Error>");
}

void s3_delete_objects(struct request *r, const char *bucket)
{
    AUTO_BUF struct buf keys = BUF_INIT((size_t)KEYS_MAX * (S3_KEY_MAX + 1));
    bool quiet;
    if (!body_check(r)) {
        return;
    }
    if (!keys_parse(buf_str(&r->body), &keys, &quiet)) {
        reply_error(r, 400, "MalformedXML",
                    "The XML you provided was not well-formed or did not validate against our "
                    "published schema");
        return;
    }
    buf_add_cstr(&r->reply.body, S3_XML_HEAD "<DeleteResult " S3_XMLNS ">");
    for (const char *key = keys.p; key < keys.p + keys.n; key += strlen(key) + 1) {
        key_delete(r, bucket, key, quiet);
    }
    buf_add_cstr(&r->reply.body, "</DeleteResult>");
    reply_xml(r);
}
