/* File channels: S3 prefixes and manifests to the hosts' input folders. See transfer.h. */
#include "files.h"
#include "local/s3/s3_store.h"
#include "transfer.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define MANIFEST_BYTES_MAX (64u << 20)

struct channel {
    const char *name;
    char bucket[S3_BUCKET_MAX];
    char prefix[S3_KEY_MAX + 1];
    bool sharded;
    size_t count; /* keys so far */
};

static bool channel_fail(const char *uri, const char *why, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "ClientError: Data download failed:%s '%s'", why, uri);
}

bool transfer_denied(const struct supervisor *s, const char *bucket)
{
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(s->spec, "denied_buckets"), i, name)
    {
        if (json_is_string(name) && strcmp(json_string_value(name), bucket) == 0) {
            return true;
        }
    }
    return false;
}

/* Copy one object to the hosts that get it. `rel` is its name inside the channel. */
static bool object_fetch(struct supervisor *s, struct channel *c, const char *key, const char *rel,
                         struct err *err)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    if (!s3_store_path(s->root, c->bucket, key, from, err)) {
        return false;
    }
    for (int i = 0; i < s->hosts_n; i++) {
        if (c->sharded && c->count % (size_t)s->hosts_n != (size_t)i) {
            continue;
        }
        if (!files_path(to, sizeof to, err, "%s/input/data/%s/%s", s->hosts[i].ml, c->name, rel) ||
            !files_mkparents(to, err) || !files_copy(from, to, err)) {
            return false;
        }
    }
    c->count++;
    return true;
}

static bool prefix_fetch(struct supervisor *s, struct channel *c, const char *uri, struct err *err)
{
    AUTO_BUF struct buf keys = BUF_INIT(256u << 20);
    if (!s3_store_keys(s->root, c->bucket, c->prefix, TRANSFER_KEYS_MAX, &keys, err)) {
        return channel_fail(uri, "Cannot list the S3 prefix", err);
    }
    const char *slash = strrchr(c->prefix, '/');
    size_t cut = slash == NULL ? 0 : (size_t)(slash - c->prefix) + 1;
    for (size_t at = 0; at < keys.n;) {
        const char *key = keys.p + at;
        at += strlen(key) + 1;
        if (!object_fetch(s, c, key, key + cut, err)) {
            return channel_fail(uri, err->message, err);
        }
    }
    return c->count > 0 || channel_fail(uri, "No S3 objects found under S3 URL", err);
}

static bool manifest_fetch(struct supervisor *s, struct channel *c, const char *uri,
                           struct err *err)
{
    char path[PATH_MAX];
    AUTO_BUF struct buf text = BUF_INIT(MANIFEST_BYTES_MAX);
    AUTO_JSON json_t *list = NULL;
    char bucket[S3_BUCKET_MAX];
    char key[S3_KEY_MAX + 1];
    if (!s3_store_path(s->root, c->bucket, c->prefix, path, err) || !files_read(path, &text, err) ||
        !json_parse(buf_str(&text), MANIFEST_BYTES_MAX, &list, err)) {
        return channel_fail(uri, "Cannot read the manifest", err);
    }
    const char *base = json_string_value(json_object_get(json_array_get(list, 0), "prefix"));
    if (base == NULL) {
        return channel_fail(uri, "The manifest does not begin with a prefix:", err);
    }
    for (size_t i = 1; i < json_array_size(list); i++) {
        const char *suffix = json_string_value(json_array_get(list, i));
        char full[S3_KEY_MAX + S3_BUCKET_MAX + 8];
        if (suffix == NULL || !files_path(full, sizeof full, err, "%s%s", base, suffix) ||
            !s3_store_uri(full, bucket, key, err)) {
            return channel_fail(uri, "The manifest has a bad entry:", err);
        }
        (void)snprintf(c->bucket, sizeof c->bucket, "%s", bucket);
        if (!object_fetch(s, c, key, suffix, err)) {
            return channel_fail(full, "The manifest names an object that is not there:", err);
        }
    }
    return true;
}

/* A file system is mounted: a link to its folder, the same for all hosts. */
static bool channel_mount(const struct supervisor *s, const char *name, struct err *err)
{
    const char *folder =
        json_string_value(json_object_get(json_object_get(s->spec, "mounts"), name));
    const char *why = json_string_value(json_object_get(s->spec, "mount_error"));
    char link[PATH_MAX];
    if (folder == NULL) {
        return err_set(err, ERR_NOT_FOUND, "%s", why == NULL ? "ClientError: not mounted" : why);
    }
    for (int i = 0; i < s->hosts_n; i++) {
        if (!files_path(link, sizeof link, err, "%s/input/data/%s", s->hosts[i].ml, name)) {
            return false;
        }
        if (symlink(folder, link) != 0 && errno != EEXIST) {
            return err_set_os(err, ERR_IO, errno, "cannot link '%s'", link);
        }
    }
    return true;
}

bool transfer_channels(struct supervisor *s, struct err *err)
{
    size_t i;
    json_t *ch;
    json_array_foreach(json_object_get(s->request, "InputDataConfig"), i, ch)
    {
        struct channel c = {0};
        const json_t *s3 = json_object_get(json_object_get(ch, "DataSource"), "S3DataSource");
        const char *uri = json_string_value(json_object_get(s3, "S3Uri"));
        const char *type = json_string_value(json_object_get(s3, "S3DataType"));
        const char *dist = json_string_value(json_object_get(s3, "S3DataDistributionType"));
        c.name = json_string_value(json_object_get(ch, "ChannelName"));
        c.sharded = dist != NULL && strcmp(dist, "ShardedByS3Key") == 0;
        if (json_object_get(json_object_get(ch, "DataSource"), "FileSystemDataSource") != NULL) {
            if (!channel_mount(s, c.name, err)) {
                return false;
            }
            continue;
        }
        if (uri == NULL || type == NULL || c.name == NULL ||
            !s3_store_uri(uri, c.bucket, c.prefix, err)) {
            return channel_fail(uri == NULL ? "" : uri, "Not an S3 URI", err);
        }
        if (transfer_denied(s, c.bucket)) {
            return channel_fail(uri, "Failed to download data. AccessDenied (403)", err);
        }
        bool manifest = strcmp(type, "ManifestFile") == 0;
        if (!(manifest ? manifest_fetch(s, &c, uri, err) : prefix_fetch(s, &c, uri, err))) {
            return false;
        }
    }
    return true;
}
