/* Multipart uploads: ROOT/state/uploads/<id>/ holds `target` (bucket, key, content type) and one
 * file per part, named <number>-<md5>. See s3_local.h. */
#include "common/rng.h"
#include "common/xml.h"
#include "local/app.h"
#include "local/http/upload.h"
#include "local/jobs/files.h"
#include "s3_local.h"
#include "s3_write_local.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>

#define XML_HEAD         "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define UPLOADS_PAGE_MAX 1000
#define S3_XMLNS         "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

struct stored_part {
    int64_t number;
    char md5[33];
    int64_t size;
};

/* The folder of the request's uploadId when it is for this object; else answers NoSuchUpload. */
static bool upload_folder(struct request *r, const char *bucket, const char *key,
                          char out[static PATH_MAX], struct s3_meta *ret_meta)
{
    AUTO_BUF struct buf id = BUF_INIT(64);
    AUTO_BUF struct buf text = BUF_INIT(S3_META_MAX);
    struct err err = ERR_INIT;
    uint8_t raw[16];
    char path[PATH_MAX];
    bool ok = request_query(r, "uploadId", &id) && str_unhex(buf_str(&id), raw, sizeof raw) &&
              files_path(out, PATH_MAX, &err, "%s/state/uploads/%s", r->app->root, buf_cstr(&id)) &&
              files_path(path, sizeof path, &err, "%s/target", out) &&
              files_read(path, &text, &err);
    if (ok) {
        struct str rest = buf_str(&text);
        ok =
            str_eq_cstr(str_split(&rest, '\n'), bucket) && str_eq_cstr(str_split(&rest, '\n'), key);
        struct str type = str_split(&rest, '\n');
        *ret_meta = (struct s3_meta){0};
        (void)snprintf(ret_meta->content_type, sizeof ret_meta->content_type, STR_FMT,
                       STR_ARG(type));
        (void)snprintf(ret_meta->user, sizeof ret_meta->user, STR_FMT, STR_ARG(rest));
    }
    if (!ok) {
        reply_error(r, 404, "NoSuchUpload",
                    "The specified upload does not exist. The upload ID may be invalid, or the "
                    "upload may have been aborted or completed.");
    }
    return ok;
}

void s3_multipart_create(struct request *r, const char *bucket, const char *key)
{
    uint8_t raw[16];
    char id[33];
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    struct s3_meta m = {0};
    AUTO_BUF struct buf text = BUF_INIT(S3_META_MAX);
    if (!s3_store_path(r->app->root, bucket, key, path, &err)) {
        s3_reply_err(r, &err);
        return;
    }
    rng_secret(raw, sizeof raw);
    str_hex(raw, sizeof raw, id);
    s3_meta_of_request(r, &m);
    buf_addf(&text, "%s\n%s\n%s\n%s", bucket, key, m.content_type, m.user);
    if (!files_path(path, sizeof path, &err, "%s/state/uploads/%s/target", r->app->root, id) ||
        !files_mkparents(path, &err) || !files_write(path, buf_str(&text), &err)) {
        s3_reply_err(r, &err);
        return;
    }
    struct buf *b = &r->reply.body;
    buf_addf(b, XML_HEAD "<InitiateMultipartUploadResult " S3_XMLNS "><Bucket>%s</Bucket><Key>",
             bucket);
    xml_escape(b, str_of(key));
    buf_addf(b, "</Key><UploadId>%s</UploadId></InitiateMultipartUploadResult>", id);
    r->accepted = true;
    reply_xml(r);
}

/* Orders parts by number; a part sent twice is listed once. */
static int part_cmp(const void *a, const void *b)
{
    const struct stored_part *x = a;
    const struct stored_part *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static size_t parts_read(const char *folder, struct stored_part *out)
{
    DIR *dir = opendir(folder);
    const struct dirent *d;
    size_t n = 0;
    while (dir != NULL && (d = readdir(dir)) != NULL) {
        struct str md5 = str_of(d->d_name);
        struct str number = str_split(&md5, '-');
        struct err err = ERR_INIT;
        struct stat st;
        char path[PATH_MAX];
        struct stored_part p = {0};
        if (n < S3_PARTS_MAX && md5.n == 32 &&
            parse_i64(number, 1, S3_PARTS_MAX, &p.number, &err) &&
            files_path(path, sizeof path, &err, "%s/%s", folder, d->d_name) &&
            stat(path, &st) == 0) {
            memcpy(p.md5, md5.p, 32);
            p.size = st.st_size;
            out[n++] = p;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    if (n > 0) {
        qsort(out, n, sizeof *out, part_cmp);
    }
    return n;
}

void s3_multipart_part(struct request *r, const char *bucket, const char *key)
{
    AUTO_BUF struct buf text = BUF_INIT(16);
    AUTO_FREE struct stored_part *parts = xcalloc(S3_PARTS_MAX, sizeof *parts);
    struct s3_meta m;
    struct err err = ERR_INIT;
    char folder[PATH_MAX];
    char path[PATH_MAX];
    char quoted[64];
    int64_t number;
    if (!request_query(r, "partNumber", &text) ||
        !parse_i64(buf_str(&text), 1, S3_PARTS_MAX, &number, &err)) {
        reply_error(r, 400, "InvalidArgument",
                    "Part number must be an integer between 1 and 10000, inclusive");
        return;
    }
    if (!s3_body_ok(r) || !upload_folder(r, bucket, key, folder, &m)) {
        return;
    }
    pthread_mutex_lock(&r->app->s3_mu);
    size_t n = parts_read(folder, parts);
    for (size_t i = 0; i < n; i++) {
        if (parts[i].number == number && files_path(path, sizeof path, &err, "%s/%lld-%s", folder,
                                                    (long long)number, parts[i].md5)) {
            (void)unlink(path);
        }
    }
    bool ok = files_path(path, sizeof path, &err, "%s/%lld-%s", folder, (long long)number,
                         r->upload->md5_hex) &&
              rename(r->upload->tmp, path) == 0;
    pthread_mutex_unlock(&r->app->s3_mu);
    if (!ok) {
        reply_error(r, 404, "NoSuchUpload", "The specified upload does not exist.");
        return;
    }
    r->upload->tmp[0] = '\0';
    (void)snprintf(quoted, sizeof quoted, "\"%s\"", r->upload->md5_hex);
    reply_header(r, "ETag", quoted);
    r->reply.status = 200;
}

/* The parts a CompleteMultipartUpload body names; false: not readable. */
static bool wanted_parse(struct str body, struct stored_part *out, size_t *ret_n)
{
    struct xml x;
    struct str text;
    enum xml_event ev;
    struct stored_part p = {0};
    AUTO_BUF struct buf value = BUF_INIT(256);
    struct err err = ERR_INIT;
    size_t n = 0;
    xml_init(&x, body);
    while ((ev = xml_next(&x, &text)) != XML_END) {
        if (ev == XML_ERROR) {
            return false;
        }
        if (ev == XML_OPEN) {
            buf_reset(&value);
        } else if (ev == XML_TEXT) {
            xml_unescape(&value, text);
        } else if (str_eq_cstr(text, "PartNumber")) {
            if (!parse_i64(str_trim(buf_str(&value)), 1, S3_PARTS_MAX, &p.number, &err)) {
                return false;
            }
        } else if (str_eq_cstr(text, "ETag")) {
            struct str etag = str_trim(buf_str(&value));
            if (etag.n == 34) {
                etag = (struct str){etag.p + 1, 32};
            }
            if (etag.n == 32) {
                memcpy(p.md5, etag.p, 32);
            }
        } else if (str_eq_cstr(text, "Part")) {
            if (n == S3_PARTS_MAX) {
                return false;
            }
            out[n++] = p;
            p = (struct stored_part){0};
        }
    }
    *ret_n = n;
    return n > 0;
}

/* Check the list against the uploaded parts and fill in the sizes. False: answered. */
static bool wanted_check(struct request *r, struct stored_part *want, size_t n,
                         const struct stored_part *have, size_t have_n)
{
    for (size_t i = 1; i < n; i++) {
        if (want[i].number <= want[i - 1].number) {
            reply_error(r, 400, "InvalidPartOrder",
                        "The list of parts was not in ascending order. The parts list must be "
                        "specified in order by part number.");
            return false;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const struct stored_part *p = bsearch(&want[i], have, have_n, sizeof *have, part_cmp);
        if (p == NULL || strcmp(p->md5, want[i].md5) != 0) {
            reply_error(r, 400, "InvalidPart",
                        "One or more of the specified parts could not be found.");
            return false;
        }
        want[i].size = p->size;
    }
    for (size_t i = 0; i + 1 < n; i++) {
        if (want[i].size < S3_PART_BYTES_MIN) {
            reply_error(r, 400, "EntityTooSmall",
                        "Your proposed upload is smaller than the minimum allowed size");
            return false;
        }
    }
    return true;
}

/* Concatenate all parts into a new temporary file and compute the ETag. */
static bool parts_join(const struct request *r, const char *folder, const struct stored_part *parts,
                       size_t n, char tmp[static PATH_MAX], char etag[static 48], struct err *err)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    char hex[33];
    (void)snprintf(tmp, PATH_MAX, "%s/s3/.tmp/join-XXXXXX", r->app->root);
    AUTO_FD int out = mkostemp(tmp, O_CLOEXEC);
    EVP_MD_CTX *md5 = EVP_MD_CTX_new();
    bool ok = out >= 0 && EVP_DigestInit_ex(md5, EVP_md5(), NULL) == 1;
    (void)fchmod(out, 0644);
    for (size_t i = 0; ok && i < n; i++) {
        char path[PATH_MAX];
        uint8_t raw[16];
        ok = str_unhex(str_of(parts[i].md5), raw, sizeof raw) &&
             files_path(path, sizeof path, err, "%s/%lld-%s", folder, (long long)parts[i].number,
                        parts[i].md5);
        (void)EVP_DigestUpdate(md5, raw, sizeof raw);
        AUTO_FD int in = ok ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ok = ok && in >= 0;
        for (int64_t left = parts[i].size; ok && left > 0;) {
            ssize_t done = copy_file_range(in, NULL, out, NULL, (size_t)left, 0);
            ok = done > 0 || (done < 0 && errno == EINTR);
            left -= MAX(done, (ssize_t)0);
        }
    }
    (void)EVP_DigestFinal_ex(md5, digest, NULL);
    EVP_MD_CTX_free(md5);
    str_hex(digest, 16, hex);
    (void)snprintf(etag, 48, "%s-%u", hex, (unsigned)n % (S3_PARTS_MAX + 1));
    return ok || err_set_os(err, ERR_IO, errno, "cannot join the parts");
}

void s3_multipart_complete(struct request *r, const char *bucket, const char *key)
{
    AUTO_FREE struct stored_part *want = xcalloc(S3_PARTS_MAX, sizeof *want);
    AUTO_FREE struct stored_part *have = xcalloc(S3_PARTS_MAX, sizeof *have);
    struct s3_meta m;
    struct err err = ERR_INIT;
    char folder[PATH_MAX];
    char tmp[PATH_MAX] = "";
    size_t n;
    if (!upload_folder(r, bucket, key, folder, &m)) {
        return;
    }
    if (!wanted_parse(buf_str(&r->body), want, &n)) {
        reply_error(r, 400, "MalformedXML",
                    "The XML you provided was not well-formed or did not validate against our "
                    "published schema");
        return;
    }
    if (!wanted_check(r, want, n, have, parts_read(folder, have))) {
        return;
    }
    if (!parts_join(r, folder, want, n, tmp, m.etag, &err)) {
        (void)unlink(tmp);
        s3_reply_err(r, &err);
        return;
    }
    if (!s3_publish(r, bucket, key, tmp, &m)) {
        (void)unlink(tmp);
        return;
    }
    files_remove_tree(folder);
    struct buf *b = &r->reply.body;
    buf_addf(b, XML_HEAD "<CompleteMultipartUploadResult " S3_XMLNS "><Location>%s/%s/",
             r->app->url, bucket);
    str_url_encode(b, str_of(key), true);
    buf_addf(b, "</Location><Bucket>%s</Bucket><Key>", bucket);
    xml_escape(b, str_of(key));
    buf_addf(b, "</Key><ETag>&quot;%s&quot;</ETag></CompleteMultipartUploadResult>", m.etag);
    r->accepted = true;
    reply_xml(r);
}

void s3_multipart_abort_upload(struct request *r, const char *bucket, const char *key)
{
    char folder[PATH_MAX];
    struct s3_meta m;
    if (upload_folder(r, bucket, key, folder, &m)) {
        files_remove_tree(folder);
        r->reply.status = 204;
    }
}

void s3_multipart_list(struct request *r, const char *bucket, const char *key)
{
    AUTO_FREE struct stored_part *parts = xcalloc(S3_PARTS_MAX, sizeof *parts);
    char folder[PATH_MAX];
    struct s3_meta m;
    if (!upload_folder(r, bucket, key, folder, &m)) {
        return;
    }
    size_t n = parts_read(folder, parts);
    struct buf *b = &r->reply.body;
    buf_addf(b, XML_HEAD "<ListPartsResult " S3_XMLNS "><Bucket>%s</Bucket><Key>", bucket);
    xml_escape(b, str_of(key));
    buf_addf(b, "</Key><UploadId>%s</UploadId><IsTruncated>false</IsTruncated>",
             strrchr(folder, '/') + 1);
    for (size_t i = 0; i < n; i++) {
        buf_addf(b,
                 "<Part><PartNumber>%lld</PartNumber><ETag>&quot;%s&quot;</ETag><Size>%lld</"
                 "Size></Part>",
                 (long long)parts[i].number, parts[i].md5, (long long)parts[i].size);
    }
    buf_add_cstr(b, "</ListPartsResult>");
    reply_xml(r);
}

/* One page without markers: a client aborts what is on it and requests the first page again. */
void s3_multipart_list_uploads(struct request *r, const char *bucket)
{
    char path[PATH_MAX];
    struct dirent **list = NULL;
    struct buf *b = &r->reply.body;
    AUTO_BUF struct buf prefix = BUF_INIT(S3_KEY_MAX + 1);
    AUTO_BUF struct buf max = BUF_INIT(16);
    AUTO_BUF struct buf rows = BUF_INIT((size_t)UPLOADS_PAGE_MAX * (6 * S3_KEY_MAX + 256));
    struct err err = ERR_INIT;
    int64_t left = UPLOADS_PAGE_MAX;
    (void)request_query(r, "prefix", &prefix);
    if (request_query(r, "max-uploads", &max) &&
        !parse_i64(buf_str(&max), 1, UPLOADS_PAGE_MAX, &left, &err)) {
        reply_error(r, 400, "InvalidArgument", "Argument max-uploads must be from 1 to 1000");
        return;
    }
    (void)snprintf(path, sizeof path, "%s/state/uploads", r->app->root);
    int n = scandir(path, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        AUTO_BUF struct buf text = BUF_INIT(S3_META_MAX);
        if (left >= 0 && strlen(list[i]->d_name) == 32 &&
            files_path(path, sizeof path, &err, "%s/state/uploads/%s/target", r->app->root,
                       list[i]->d_name) &&
            files_read(path, &text, &err)) {
            struct str rest = buf_str(&text);
            struct str of = str_split(&rest, '\n');
            struct str key = str_split(&rest, '\n');
            if (str_eq_cstr(of, bucket) && str_starts(key, buf_cstr(&prefix)) && left-- > 0) {
                buf_add_cstr(&rows, "<Upload><Key>");
                xml_escape(&rows, key);
                buf_addf(&rows, "</Key><UploadId>%s</UploadId></Upload>", list[i]->d_name);
            }
        }
        free(list[i]);
    }
    free(list);
    buf_addf(b,
             XML_HEAD "<ListMultipartUploadsResult " S3_XMLNS
                      "><Bucket>%s</Bucket><IsTruncated>%s</IsTruncated>",
             bucket, left < 0 ? "true" : "false");
    buf_add_str(b, buf_str(&rows));
    buf_add_cstr(b, "</ListMultipartUploadsResult>");
    reply_xml(r);
}
