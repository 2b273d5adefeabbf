/* Objects as files: see s3_store.h. */
#include "s3_store.h"
#include "common/cleanup.h"
#include "local/jobs/files.h"
#include "s3_awkward.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>

static bool bucket_name_ok(const char *b)
{
    size_t n = strlen(b);
    if (n < 3 || n >= S3_BUCKET_MAX || b[0] == '.' || b[0] == '-') {
        return false;
    }
    return strspn(b, "abcdefghijklmnopqrstuvwxyz0123456789.-") == n && strstr(b, "..") == NULL;
}

/* Bucket and key can be those of an object. */
static bool target_check(const char *bucket, const char *key, struct err *err)
{
    if (!bucket_name_ok(bucket)) {
        return err_set(err, ERR_INVALID, "bucket name '%s' is not valid", bucket);
    }
    if (strlen(key) > S3_KEY_MAX) {
        return err_set(err, ERR_LIMIT, "key is longer than %d bytes", S3_KEY_MAX);
    }
    struct str rest = str_of(key);
    while (rest.n > 0) {
        struct str part = str_split(&rest, '/');
        if (str_eq_cstr(part, ".") || str_eq_cstr(part, "..")) {
            return err_set(err, ERR_INVALID, "key '%s' has a segment . or ..", key);
        }
    }
    return key[0] != '\0' || err_set(err, ERR_INVALID, "a key is empty");
}

bool s3_store_path(const char *root, const char *bucket, const char *key, char out[static PATH_MAX],
                   struct err *err)
{
    char other[PATH_MAX];
    struct stat st;
    if (!target_check(bucket, key, err) || !s3_awkward_path(root, bucket, key, other, err)) {
        return false;
    }
    if (!s3_awkward_key(key)) {
        if (!files_path(out, PATH_MAX, err, "%s/s3/%s/%s", root, bucket, key)) {
            return false;
        }
        if ((stat(out, &st) == 0 && S_ISREG(st.st_mode)) || stat(other, &st) != 0) {
            return true;
        }
    }
    memcpy(out, other, sizeof other);
    return true;
}

/* Where an object is or is going to be: as its path when no folder or file is in its way. */
static bool place_of(const char *root, const char *bucket, const char *key,
                     char out[static PATH_MAX], struct err *err)
{
    struct stat st;
    if (!s3_store_path(root, bucket, key, out, err)) {
        return false;
    }
    bool blocked = stat(out, &st) == 0 ? S_ISDIR(st.st_mode) : errno == ENOTDIR;
    return !blocked || s3_awkward_path(root, bucket, key, out, err);
}

bool s3_store_uri(const char *uri, char bucket[static S3_BUCKET_MAX],
                  char key[static S3_KEY_MAX + 1], struct err *err)
{
    if (strncmp(uri, "s3://", 5) != 0) {
        return err_set(err, ERR_INVALID, "'%s' is not an S3 URI", uri);
    }
    const char *slash = strchr(uri + 5, '/');
    size_t n = slash == NULL ? strlen(uri + 5) : (size_t)(slash - uri - 5);
    const char *rest = slash == NULL ? "" : slash + 1;
    if (n == 0 || n >= S3_BUCKET_MAX || strlen(rest) > S3_KEY_MAX) {
        return err_set(err, ERR_INVALID, "'%s' is not an S3 URI", uri);
    }
    memcpy(bucket, uri + 5, n);
    bucket[n] = '\0';
    (void)snprintf(key, S3_KEY_MAX + 1, "%s", rest);
    return true;
}

bool s3_store_has_bucket(const char *root, const char *bucket)
{
    char path[PATH_MAX];
    struct stat st;
    struct err err = ERR_INIT;
    return bucket_name_ok(bucket) &&
           files_path(path, sizeof path, &err, "%s/s3/%s", root, bucket) && stat(path, &st) == 0 &&
           S_ISDIR(st.st_mode);
}

static void meta_path(const char *root, const struct stat *st, char out[static PATH_MAX])
{
    (void)snprintf(out, PATH_MAX, "%s/state/meta/%02x/%llu-%lld.%09ld-%lld", root,
                   (unsigned)(st->st_ino & 0xff), (unsigned long long)st->st_ino,
                   (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (long long)st->st_size);
}

static bool publish(const char *root, const char *bucket, const char *key, const char *tmp,
                    bool create_only, struct err *err)
{
    char path[PATH_MAX];
    if (!place_of(root, bucket, key, path, err)) {
        return false;
    }
    if (!s3_store_has_bucket(root, bucket)) {
        return err_set(err, ERR_NOT_FOUND, "no bucket '%s'", bucket);
    }
    struct stat old;
    char old_meta[PATH_MAX] = "";
    if (!create_only && stat(path, &old) == 0) {
        meta_path(root, &old, old_meta);
    }
    /* Another process may remove the empty folder between our two steps. */
    for (int tries = 0; tries < 8; tries++) {
        if (!files_mkparents(path, err)) {
            return false;
        }
        if ((create_only ? link(tmp, path) : rename(tmp, path)) == 0) {
            (void)unlink(create_only ? tmp : old_meta);
            return true;
        }
        if (create_only && errno == EEXIST) {
            return err_set(err, ERR_PRECONDITION, "'%s' exists", key);
        }
        if (errno != ENOENT) {
            break;
        }
    }
    return err_set_os(err, ERR_IO, errno, "cannot publish '%s'", key);
}

bool s3_store_publish(const char *root, const char *bucket, const char *key, const char *tmp,
                      struct err *err)
{
    return publish(root, bucket, key, tmp, false, err);
}

bool s3_store_publish_new(const char *root, const char *bucket, const char *key, const char *tmp,
                          struct err *err)
{
    return publish(root, bucket, key, tmp, true, err);
}

void s3_store_remove(const char *root, const char *bucket, const char *key)
{
    char path[PATH_MAX];
    char meta[PATH_MAX];
    struct err err = ERR_INIT;
    struct stat st;
    if (!s3_store_path(root, bucket, key, path, &err) || stat(path, &st) != 0 ||
        !S_ISREG(st.st_mode) || unlink(path) != 0) {
        return;
    }
    meta_path(root, &st, meta);
    (void)unlink(meta);
    /* Empty folders go, up to the bucket's own; that of awkward keys as well. */
    bool plain = path[strlen(root) + strlen("/s3/")] != '.';
    size_t top = strlen(root) + (plain ? strlen("/s3/") + strlen(bucket) : strlen("/s3/.keys"));
    char *slash;
    while ((slash = strrchr(path, '/')) != NULL && (size_t)(slash - path) > top) {
        *slash = '\0';
        if (rmdir(path) != 0) {
            return;
        }
    }
}

bool s3_store_meta_put(const char *root, const struct stat *st, const struct s3_meta *m,
                       struct err *err)
{
    char path[PATH_MAX];
    AUTO_BUF struct buf b = BUF_INIT(S3_META_MAX);
    meta_path(root, st, path);
    buf_addf(&b, "%s\n", m->etag);
    s3_checksum_write(&m->checksum, &b);
    buf_addf(&b, "\n%s\n%s", m->content_type, m->user);
    return files_mkparents(path, err) && files_write(path, buf_str(&b), err);
}

bool s3_store_md5(int fd, char out[static 33], struct err *err)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    AUTO_FREE char *chunk = xmalloc(1 << 20);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    ASSERT(ctx != NULL && EVP_DigestInit_ex(ctx, EVP_md5(), NULL) == 1);
    off_t at = 0;
    ssize_t n;
    while ((n = pread(fd, chunk, 1 << 20, at)) > 0) {
        (void)EVP_DigestUpdate(ctx, chunk, (size_t)n);
        at += n;
    }
    (void)EVP_DigestFinal_ex(ctx, digest, NULL);
    EVP_MD_CTX_free(ctx);
    str_hex(digest, 16, out);
    return n == 0 || err_set_os(err, ERR_IO, errno, "cannot read an object");
}

static bool field_take(struct str *rest, char *out, size_t out_n)
{
    struct str line = str_split(rest, '\n');
    if (line.n >= out_n) {
        return false;
    }
    memcpy(out, line.p, line.n);
    out[line.n] = '\0';
    return true;
}

bool s3_store_meta_get(const char *root, int fd, const struct stat *st, struct s3_meta *ret,
                       struct err *err)
{
    char path[PATH_MAX];
    AUTO_BUF struct buf text = BUF_INIT(S3_META_MAX);
    struct s3_meta m = {0};
    struct err unread = ERR_INIT;
    meta_path(root, st, path);
    if (files_read(path, &text, &unread)) {
        struct str rest = buf_str(&text);
        bool ok = field_take(&rest, m.etag, sizeof m.etag) && m.etag[0] != '\0';
        s3_checksum_read(str_split(&rest, '\n'), &m.checksum);
        if (ok && field_take(&rest, m.content_type, sizeof m.content_type) &&
            rest.n < sizeof m.user) {
            memcpy(m.user, rest.p, rest.n);
            *ret = m;
            return true;
        }
        m = (struct s3_meta){0};
    }
    if (!s3_store_md5(fd, m.etag, err)) {
        return false;
    }
    (void)snprintf(m.content_type, sizeof m.content_type, "binary/octet-stream");
    (void)!s3_store_meta_put(root, st, &m, &unread); /* here it is only a cache */
    *ret = m;
    return true;
}
