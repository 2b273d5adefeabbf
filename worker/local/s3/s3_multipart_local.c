/* Multipart uploads: ROOT/state/uploads/<id>/ holds `target` (bucket, key, content type) and one
 * file per part, named <number>-<etag>-<checksum in hex>; `checksum` has the algorithm and type of
 * the upload's checksum when it was created with one. See s3_local.h. */
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

#define UPLOADS_PAGE_MAX 1000

struct stored_part {
    int64_t number;
    char etag[33];
    int64_t size;
    struct s3_checksum checksum;
    char said[64]; /* the checksum that CompleteMultipartUpload names */
};

struct upload_target {
    struct s3_meta meta;
    enum s3_algorithm algorithm;
    bool whole; /* the checksum is of the whole object, not of its parts' checksums */
    char folder[PATH_MAX];
};

/* The upload's checksum: "SHA256 COMPOSITE". */
static void target_checksum(struct upload_target *t)
{
    AUTO_BUF struct buf text = BUF_INIT(64);
    struct err err = ERR_INIT;
    char path[PATH_MAX];
    t->algorithm = S3_NO_ALGORITHM;
    if (files_path(path, sizeof path, &err, "%s/checksum", t->folder) &&
        files_read(path, &text, &err)) {
        struct str type = buf_str(&text);
        t->algorithm = s3_algorithm_of(str_split(&type, ' '));
        t->whole = str_eq_cstr(type, "FULL_OBJECT");
    }
}

/* The upload of the request's uploadId when it is for this object; else answers NoSuchUpload. */
static bool target_of(struct request *r, const char *bucket, const char *key,
                      struct upload_target *t)
{
    AUTO_BUF struct buf id = BUF_INIT(64);
    AUTO_BUF struct buf text = BUF_INIT(S3_META_MAX);
    struct err err = ERR_INIT;
    uint8_t raw[16];
    char path[PATH_MAX];
    bool ok =
        request_query(r, "uploadId", &id) && str_unhex(buf_str(&id), raw, sizeof raw) &&
        files_path(t->folder, PATH_MAX, &err, "%s/state/uploads/%s", r->app->root, buf_cstr(&id)) &&
        files_path(path, sizeof path, &err, "%s/target", t->folder) &&
        files_read(path, &text, &err);
    if (ok) {
        struct str rest = buf_str(&text);
        ok =
            str_eq_cstr(str_split(&rest, '\n'), bucket) && str_eq_cstr(str_split(&rest, '\n'), key);
        struct str type = str_split(&rest, '\n');
        t->meta = (struct s3_meta){0};
        (void)snprintf(t->meta.content_type, sizeof t->meta.content_type, STR_FMT, STR_ARG(type));
        (void)snprintf(t->meta.user, sizeof t->meta.user, STR_FMT, STR_ARG(rest));
        target_checksum(t);
    }
    if (!ok) {
        reply_error(r, 404, "NoSuchUpload",
                    "The specified upload does not exist. The upload ID may be invalid, or the "
                    "upload may have been aborted or completed.");
    }
    return ok;
}

/* Algorithm and type that CreateMultipartUpload asks for, as text; "": none. False: answered. */
static bool checksum_wanted(struct request *r, char out[static 32])
{
    struct str name = request_header(r, "x-amz-checksum-algorithm");
    struct str type = request_header(r, "x-amz-checksum-type");
    out[0] = '\0';
    if (name.p == NULL) {
        return true;
    }
    enum s3_algorithm a = s3_algorithm_of(str_trim(name));
    if (a == S3_NO_ALGORITHM) {
        reply_error(r, 400, "InvalidRequest",
                    "Checksum algorithm provided is unsupported. Please try again with any of the "
                    "valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]");
        return false;
    }
    bool whole =
        type.p != NULL ? str_eq_cstr(str_trim(type), "FULL_OBJECT") : s3_algorithm_is_whole(a);
    if (whole ? a == S3_SHA1 || a == S3_SHA256 : s3_algorithm_is_whole(a)) {
        reply_error(r, 400, "InvalidRequest",
                    "The %s checksum type cannot be used with the %s checksum algorithm.",
                    whole ? "FULL_OBJECT" : "COMPOSITE", s3_algorithm_name(a));
        return false;
    }
    (void)snprintf(out, 32, "%s %s", s3_algorithm_name(a), whole ? "FULL_OBJECT" : "COMPOSITE");
    reply_header(r, "x-amz-checksum-algorithm", s3_algorithm_name(a));
    reply_header(r, "x-amz-checksum-type", whole ? "FULL_OBJECT" : "COMPOSITE");
    return true;
}

void s3_multipart_create(struct request *r, const char *bucket, const char *key)
{
    uint8_t raw[16];
    char id[33];
    char path[PATH_MAX];
    char checksum[32];
    struct err err = ERR_INIT;
    struct s3_meta m = {0};
    AUTO_BUF struct buf text = BUF_INIT(S3_META_MAX);
    if (!s3_store_path(r->app->root, bucket, key, path, &err)) {
        s3_reply_err(r, &err);
        return;
    }
    if (!s3_encryption_ok(r, bucket) || !checksum_wanted(r, checksum)) {
        return;
    }
    rng_secret(raw, sizeof raw);
    str_hex(raw, sizeof raw, id);
    s3_meta_of_request(r, &m);
    buf_addf(&text, "%s\n%s\n%s\n%s", bucket, key, m.content_type, m.user);
    if (!files_path(path, sizeof path, &err, "%s/state/uploads/%s/checksum", r->app->root, id) ||
        !files_mkparents(path, &err) ||
        (checksum[0] != '\0' && !files_write(path, str_of(checksum), &err)) ||
        !files_path(path, sizeof path, &err, "%s/state/uploads/%s/target", r->app->root, id) ||
        !files_write(path, buf_str(&text), &err)) {
        s3_reply_err(r, &err);
        return;
    }
    s3_encryption_headers(r, bucket);
    struct buf *b = &r->reply.body;
    buf_addf(b, S3_XML_HEAD "<InitiateMultipartUploadResult " S3_XMLNS "><Bucket>%s</Bucket><Key>",
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

static size_t parts_read(const struct upload_target *t, struct stored_part *out)
{
    DIR *dir = opendir(t->folder);
    const struct dirent *d;
    size_t n = 0;
    while (dir != NULL && (d = readdir(dir)) != NULL) {
        struct str sum = str_of(d->d_name);
        struct str number = str_split(&sum, '-');
        struct str etag = str_split(&sum, '-');
        struct err err = ERR_INIT;
        struct stat st;
        char path[PATH_MAX];
        struct stored_part p = {0};
        if (n < S3_PARTS_MAX && etag.n == 32 && sum.n < sizeof p.checksum.hex &&
            parse_i64(number, 1, S3_PARTS_MAX, &p.number, &err) &&
            files_path(path, sizeof path, &err, "%s/%s", t->folder, d->d_name) &&
            stat(path, &st) == 0) {
            memcpy(p.etag, etag.p, 32);
            memcpy(p.checksum.hex, sum.p, sum.n);
            p.checksum.algorithm = sum.n > 0 ? t->algorithm : S3_NO_ALGORITHM;
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

static bool part_path(const struct upload_target *t, const struct stored_part *p,
                      char out[PATH_MAX])
{
    struct err err = ERR_INIT;
    return files_path(out, PATH_MAX, &err, "%s/%lld-%s-%s", t->folder, (long long)p->number,
                      p->etag, p->checksum.hex);
}

/* Parts state a checksum by the upload's algorithm when it has one. Those of an upload without one
 * may state any, as newer SDKs do unasked: it is compared with the body and not kept. False:
 * answered. */
static bool algorithm_fits(struct request *r, const struct upload_target *t, enum s3_algorithm a)
{
    bool none = t->algorithm == S3_NO_ALGORITHM;
    bool fits = none || a == t->algorithm || (a == S3_NO_ALGORITHM && t->whole);
    if (!fits) {
        reply_error(r, 400, "InvalidRequest",
                    "Checksum Type mismatch occurred, expected checksum Type: %s, actual checksum "
                    "Type: %s",
                    s3_algorithm_name(t->algorithm),
                    a != S3_NO_ALGORITHM ? s3_algorithm_name(a) : "null");
    }
    return fits;
}

/* Replace the part by the request's body. */
static bool part_store(struct request *r, const struct upload_target *t,
                       const struct stored_part *p)
{
    AUTO_FREE struct stored_part *parts = xcalloc(S3_PARTS_MAX, sizeof *parts);
    char path[PATH_MAX];
    pthread_mutex_lock(&r->app->s3_mu);
    size_t n = parts_read(t, parts);
    for (size_t i = 0; i < n; i++) {
        if (parts[i].number == p->number && part_path(t, &parts[i], path)) {
            (void)unlink(path);
        }
    }
    bool ok = part_path(t, p, path) && rename(r->upload->tmp, path) == 0;
    pthread_mutex_unlock(&r->app->s3_mu);
    return ok;
}

bool s3_multipart_part(struct request *r, const char *bucket, const char *key, bool copy,
                       char ret_etag[static 33])
{
    AUTO_BUF struct buf text = BUF_INIT(16);
    struct upload_target t;
    struct stored_part p = {0};
    struct err err = ERR_INIT;
    char quoted[64];
    if (!request_query(r, "partNumber", &text) ||
        !parse_i64(buf_str(&text), 1, S3_PARTS_MAX, &p.number, &err)) {
        reply_error(r, 400, "InvalidArgument",
                    "Part number must be an integer between 1 and 10000, inclusive");
        return false;
    }
    if (!s3_body_ok(r, &p.checksum) || !target_of(r, bucket, key, &t) ||
        !algorithm_fits(r, &t, p.checksum.algorithm)) {
        return false;
    }
    struct s3_checksum stated = p.checksum;
    if (t.algorithm == S3_NO_ALGORITHM) {
        p.checksum = (struct s3_checksum){0};
    }
    s3_etag_of_body(r, bucket, r->upload->md5_hex, p.etag);
    if (!part_store(r, &t, &p)) {
        reply_error(r, 404, "NoSuchUpload", "The specified upload does not exist.");
        return false;
    }
    r->upload->tmp[0] = '\0';
    if (!copy) {
        (void)snprintf(quoted, sizeof quoted, "\"%s\"", p.etag);
        reply_header(r, "ETag", quoted);
        s3_checksum_header(r, &stated);
    }
    s3_encryption_headers(r, bucket);
    r->reply.status = 200;
    memcpy(ret_etag, p.etag, 33);
    return true;
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
                memcpy(p.etag, etag.p, 32);
            }
        } else if (str_starts(text, "Checksum")) {
            (void)snprintf(p.said, sizeof p.said, STR_FMT, STR_ARG(str_trim(buf_str(&value))));
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

/* A part of the list is the uploaded one. False: answered. */
static bool part_check(struct request *r, const struct upload_target *t, struct stored_part *want,
                       const struct stored_part *have)
{
    AUTO_BUF struct buf sum = BUF_INIT(64);
    if (have != NULL && have->checksum.algorithm != S3_NO_ALGORITHM) {
        s3_checksum_text(&have->checksum, &sum);
    }
    if (have != NULL && t->algorithm != S3_NO_ALGORITHM && !t->whole && want->said[0] == '\0') {
        reply_error(r, 400, "InvalidRequest",
                    "The upload was created using a %s checksum. The complete request must include "
                    "the checksum for each part. It was missing for part %lld in the request.",
                    s3_algorithm_name(t->algorithm), (long long)want->number);
        return false;
    }
    if (have == NULL || strcmp(have->etag, want->etag) != 0 ||
        (want->said[0] != '\0' && !str_eq_cstr(buf_str(&sum), want->said))) {
        reply_error(r, 400, "InvalidPart",
                    "One or more of the specified parts could not be found.  The part may not have "
                    "been uploaded, or the specified entity tag may not match the part's entity "
                    "tag.");
        return false;
    }
    want->size = have->size;
    want->checksum = have->checksum;
    return true;
}

/* Check the list against the uploaded parts and fill in sizes and checksums. False: answered. */
static bool wanted_check(struct request *r, const struct upload_target *t, struct stored_part *want,
                         size_t n, const struct stored_part *have, size_t have_n)
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
        if (!part_check(r, t, &want[i], bsearch(&want[i], have, have_n, sizeof *have, part_cmp))) {
            return false;
        }
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

/* Append a part's file to out. */
static bool part_append(const struct upload_target *t, const struct stored_part *p, int out)
{
    char path[PATH_MAX];
    AUTO_FD int in = part_path(t, p, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool ok = in >= 0;
    for (int64_t left = p->size; ok && left > 0;) {
        ssize_t done = copy_file_range(in, NULL, out, NULL, (size_t)left, 0);
        ok = done > 0 || (done < 0 && errno == EINTR);
        left -= MAX(done, (ssize_t)0);
    }
    return ok;
}

/* The checksum of the object that the parts make. */
static bool parts_checksum(const struct upload_target *t, const struct stored_part *parts, size_t n,
                           int fd, struct s3_checksum *ret)
{
    if (t->algorithm == S3_NO_ALGORITHM || t->whole) {
        return s3_checksum_of_file(t->whole ? t->algorithm : S3_CRC64NVME, fd, ret);
    }
    AUTO_FREE struct s3_checksum *sums = xcalloc(n, sizeof *sums);
    for (size_t i = 0; i < n; i++) {
        sums[i] = parts[i].checksum;
    }
    *ret = s3_checksum_of_parts(t->algorithm, sums, n);
    return true;
}

/* Concatenate all parts into a new temporary file and compute ETag and checksum. */
static bool parts_join(const struct request *r, struct upload_target *t,
                       const struct stored_part *parts, size_t n, char tmp[static PATH_MAX],
                       struct err *err)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    char hex[33];
    (void)snprintf(tmp, PATH_MAX, "%s/s3/.tmp/join-XXXXXX", r->app->root);
    AUTO_FD int out = mkostemp(tmp, O_CLOEXEC);
    EVP_MD_CTX *md5 = EVP_MD_CTX_new();
    bool ok = out >= 0 && EVP_DigestInit_ex(md5, EVP_md5(), NULL) == 1;
    (void)fchmod(out, 0644);
    for (size_t i = 0; ok && i < n; i++) {
        uint8_t raw[16];
        ok = str_unhex(str_of(parts[i].etag), raw, sizeof raw) && part_append(t, &parts[i], out);
        (void)EVP_DigestUpdate(md5, raw, sizeof raw);
    }
    (void)EVP_DigestFinal_ex(md5, digest, NULL);
    EVP_MD_CTX_free(md5);
    str_hex(digest, 16, hex);
    (void)snprintf(t->meta.etag, sizeof t->meta.etag, "%s-%u", hex,
                   (unsigned)n % (S3_PARTS_MAX + 1));
    return (ok && parts_checksum(t, parts, n, out, &t->meta.checksum)) ||
           err_set_os(err, ERR_IO, errno, "cannot join the parts");
}

void s3_multipart_complete(struct request *r, const char *bucket, const char *key)
{
    AUTO_FREE struct stored_part *want = xcalloc(S3_PARTS_MAX, sizeof *want);
    AUTO_FREE struct stored_part *have = xcalloc(S3_PARTS_MAX, sizeof *have);
    struct upload_target t;
    struct err err = ERR_INIT;
    char tmp[PATH_MAX] = "";
    size_t n;
    if (!target_of(r, bucket, key, &t)) {
        return;
    }
    if (!wanted_parse(buf_str(&r->body), want, &n)) {
        reply_error(r, 400, "MalformedXML",
                    "The XML you provided was not well-formed or did not validate against our "
                    "published schema");
        return;
    }
    if (!wanted_check(r, &t, want, n, have, parts_read(&t, have))) {
        return;
    }
    if (!parts_join(r, &t, want, n, tmp, &err)) {
        (void)unlink(tmp);
        s3_reply_err(r, &err);
        return;
    }
    if (!s3_publish(r, bucket, key, tmp, &t.meta)) {
        (void)unlink(tmp);
        return;
    }
    files_remove_tree(t.folder);
    struct buf *b = &r->reply.body;
    buf_addf(b, S3_XML_HEAD "<CompleteMultipartUploadResult " S3_XMLNS "><Location>%s/%s/",
             r->app->url, bucket);
    str_url_encode(b, str_of(key), true);
    buf_addf(b, "</Location><Bucket>%s</Bucket><Key>", bucket);
    xml_escape(b, str_of(key));
    buf_addf(b, "</Key><ETag>&quot;%s&quot;</ETag>", t.meta.etag);
    s3_checksum_xml(b, &t.meta.checksum);
    buf_addf(b, "<ChecksumType>%s</ChecksumType>",
             t.meta.checksum.parts_n > 0 ? "COMPOSITE" : "FULL_OBJECT");
    buf_add_cstr(b, "</CompleteMultipartUploadResult>");
    s3_encryption_headers(r, bucket);
    r->accepted = true;
    reply_xml(r);
}

void s3_multipart_abort_upload(struct request *r, const char *bucket, const char *key)
{
    struct upload_target t;
    if (target_of(r, bucket, key, &t)) {
        files_remove_tree(t.folder);
        r->reply.status = 204;
    }
}

void s3_multipart_list(struct request *r, const char *bucket, const char *key)
{
    AUTO_FREE struct stored_part *parts = xcalloc(S3_PARTS_MAX, sizeof *parts);
    struct upload_target t;
    if (!target_of(r, bucket, key, &t)) {
        return;
    }
    size_t n = parts_read(&t, parts);
    struct buf *b = &r->reply.body;
    buf_addf(b, S3_XML_HEAD "<ListPartsResult " S3_XMLNS "><Bucket>%s</Bucket><Key>", bucket);
    xml_escape(b, str_of(key));
    buf_addf(b, "</Key><UploadId>%s</UploadId><IsTruncated>false</IsTruncated>",
             strrchr(t.folder, '/') + 1);
    if (t.algorithm != S3_NO_ALGORITHM) {
        buf_addf(b, "<ChecksumAlgorithm>%s</ChecksumAlgorithm>", s3_algorithm_name(t.algorithm));
    }
    for (size_t i = 0; i < n; i++) {
        buf_addf(b,
                 "<Part><PartNumber>%lld</PartNumber><ETag>&quot;%s&quot;</ETag><Size>%lld</Size>",
                 (long long)parts[i].number, parts[i].etag, (long long)parts[i].size);
        s3_checksum_xml(b, &parts[i].checksum);
        buf_add_cstr(b, "</Part>");
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
             S3_XML_HEAD "<ListMultipartUploadsResult " S3_XMLNS
                         "><Bucket>%s</Bucket><IsTruncated>%s</IsTruncated>",
             bucket, left < 0 ? "true" : "false");
    buf_add_str(b, buf_str(&rows));
    buf_add_cstr(b, "</ListMultipartUploadsResult>");
    reply_xml(r);
}
