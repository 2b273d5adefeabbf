/* See model_files.h. */
#include "model_files.h"
#include "common/tar.h"
#include "local/jobs/files.h"
#include "local/s3/s3_store.h"
#include <stdio.h>
#include <zlib.h>

#define MODEL_BYTES_MAX ((size_t)2 << 30)
#define KEYS_BYTES_MAX  (64u << 20)
#define KEYS_MAX        100000

static const json_t *data_source(const json_t *container)
{
    return json_object_get(json_object_get(container, "ModelDataSource"), "S3DataSource");
}

static const char *data_url(const json_t *container)
{
    const char *url = json_string_value(json_object_get(container, "ModelDataUrl"));
    return url != NULL ? url : json_string_value(json_object_get(data_source(container), "S3Uri"));
}

void model_files_bucket(const json_t *container, char *out, size_t out_n)
{
    const char *url = data_url(container);
    char bucket[S3_BUCKET_MAX];
    char key[S3_KEY_MAX + 1];
    struct err err = ERR_INIT;
    bool ok = url != NULL && s3_store_uri(url, bucket, key, &err);
    (void)snprintf(out, out_n, "%s", ok ? bucket : "");
}

static bool fail(const char *what, const char *url, const char *more, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND,
                   "Failed to %s for container \"container_1\" from URL: \"%s\". %s", what, url,
                   more);
}

static bool missing(const char *url, struct err *err)
{
    return fail("download model data", url,
                "Please ensure that there is an object located at the URL and that the role passed "
                "to CreateModel has permissions to download the object.",
                err);
}

static bool gz_read(const char *path, struct buf *out)
{
    gzFile gz = gzopen(path, "rb");
    int n = -1;
    while (gz != NULL && !out->overflow) {
        char *p = buf_reserve(out, 1u << 16);
        n = p == NULL ? -1 : gzread(gz, p, 1u << 16);
        if (n <= 0) {
            break;
        }
        buf_commit(out, (size_t)n);
    }
    bool whole = gz != NULL && n == 0 && gzdirect(gz) == 0;
    return (gz == NULL || gzclose(gz) == Z_OK) && whole;
}

static bool archive_unpack(const char *path, const char *folder, struct err *err)
{
    AUTO_BUF struct buf whole = BUF_INIT(MODEL_BYTES_MAX);
    struct tar_reader t;
    struct tar_member m;
    char to[PATH_MAX];
    if (!gz_read(path, &whole)) {
        return err_set(err, ERR_MALFORMED, "not a whole gzip file of at most 2 GiB");
    }
    tar_reader_init(&t, buf_str(&whole));
    while (tar_next(&t, &m, err)) {
        struct str data = {whole.p + m.offset, (size_t)m.size};
        if (!files_path(to, sizeof to, err, "%s/" STR_FMT, folder, STR_ARG(m.name)) ||
            !files_mkparents(to, err) || !files_write(to, data, err)) {
            return false;
        }
    }
    return err->code == ERR_NONE;
}

/* Objects of a prefix as files, by their names below it. */
static bool prefix_copy(const char *root, const char *bucket, const char *prefix,
                        const char *folder, size_t *ret_n, struct err *err)
{
    AUTO_BUF struct buf keys = BUF_INIT(KEYS_BYTES_MAX);
    char from[PATH_MAX];
    char to[PATH_MAX];
    if (!s3_store_keys(root, bucket, prefix, KEYS_MAX, &keys, err)) {
        return false;
    }
    const char *slash = strrchr(prefix, '/');
    size_t cut = slash == NULL ? 0 : (size_t)(slash - prefix) + 1;
    for (size_t at = 0; at < keys.n; (*ret_n)++) {
        const char *key = keys.p + at;
        at += strlen(key) + 1;
        if (!s3_store_path(root, bucket, key, from, err) ||
            !files_path(to, sizeof to, err, "%s/%s", folder, key + cut) ||
            !files_place(from, to, err)) {
            return false;
        }
    }
    return true;
}

/* An object that is no archive, by its name. */
static bool object_copy(const char *root, const char *bucket, const char *key, const char *folder,
                        struct err *err)
{
    const char *slash = strrchr(key, '/');
    char from[PATH_MAX];
    char to[PATH_MAX];
    return s3_store_path(root, bucket, key, from, err) &&
           files_path(to, sizeof to, err, "%s/%s", folder, slash == NULL ? key : slash + 1) &&
           files_place(from, to, err);
}

bool model_files_fetch(const char *root, const json_t *container, const char *folder,
                       struct err *err)
{
    const char *url = data_url(container);
    const char *compressed =
        json_string_value(json_object_get(data_source(container), "CompressionType"));
    char bucket[S3_BUCKET_MAX];
    char key[S3_KEY_MAX + 1];
    char path[PATH_MAX];
    struct stat st;
    size_t n = 0;
    if (url == NULL) {
        return true;
    }
    if (!s3_store_uri(url, bucket, key, err)) {
        return missing(url, err);
    }
    const char *type = json_string_value(json_object_get(data_source(container), "S3DataType"));
    if (compressed != NULL && strcmp(compressed, "None") == 0 && strcmp(type, "S3Object") == 0) {
        return object_copy(root, bucket, key, folder, err) || missing(url, err);
    }
    if (compressed != NULL && strcmp(compressed, "None") == 0) {
        return (prefix_copy(root, bucket, key, folder, &n, err) && n > 0) || missing(url, err);
    }
    if (!s3_store_path(root, bucket, key, path, err) || stat(path, &st) != 0) {
        return missing(url, err);
    }
    return archive_unpack(path, folder, err) ||
           fail("extract model data archive", url,
                "Please ensure that the object located at the URL is a valid tar.gz archive.", err);
}
