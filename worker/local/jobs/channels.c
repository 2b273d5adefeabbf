/* Channels: S3 prefixes and manifests to the hosts' input folders or into plans. See transfer.h. */
#include "feed_plan.h"
#include "files.h"
#include "local/s3/s3_store.h"
#include "transfer.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define MANIFEST_BYTES_MAX (256u << 20)

struct channel {
    const char *name;
    char bucket[S3_BUCKET_MAX];
    char prefix[S3_KEY_MAX + 1];
    bool sharded;
    size_t count;           /* keys so far */
    struct feed_plan *plan; /* of a Pipe channel, which takes the keys; else NULL */
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

bool transfer_fail(const char *uri, struct err *err)
{
    char why[sizeof err->message];
    (void)snprintf(why, sizeof why, "%s", err->message);
    return channel_fail(uri, why, err);
}

bool transfer_is_pipe(const struct supervisor *s, const json_t *channel)
{
    const json_t *algorithm = json_object_get(s->request, "AlgorithmSpecification");
    const char *own = json_string_value(json_object_get(channel, "InputMode"));
    const char *all = json_string_value(json_object_get(algorithm, "TrainingInputMode"));
    const char *mode = own != NULL ? own : all;
    return mode != NULL && strcmp(mode, "Pipe") == 0;
}

bool transfer_object(const struct supervisor *s, const char *uri, char out[static PATH_MAX],
                     struct err *err)
{
    char bucket[S3_BUCKET_MAX];
    char key[S3_KEY_MAX + 1];
    struct stat st;
    if (!s3_store_uri(uri, bucket, key, err) || !s3_store_path(s->root, bucket, key, out, err)) {
        return false;
    }
    if (transfer_denied(s, bucket)) {
        return err_set(err, ERR_FORBIDDEN, "Failed to download data. AccessDenied (403)");
    }
    return (stat(out, &st) == 0 && S_ISREG(st.st_mode)) ||
           err_set(err, ERR_NOT_FOUND, "Failed to download data. NoSuchKey (404)");
}

/* The object is one of a plan. */
static bool object_plan(struct supervisor *s, struct channel *c, const char *key, struct err *err)
{
    char path[PATH_MAX];
    AUTO_FREE char *uri = xasprintf("s3://%s/%s", c->bucket, key);
    if (!transfer_object(s, uri, path, err)) {
        return false;
    }
    feed_plan_add(c->plan, str_of(uri));
    c->count++;
    return true;
}

/* Copy one object to the hosts that get it. `rel` is its name inside the channel. */
static bool object_fetch(struct supervisor *s, struct channel *c, const char *key, const char *rel,
                         struct err *err)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    if (transfer_denied(s, c->bucket)) {
        return err_set(err, ERR_FORBIDDEN, "Failed to download data. AccessDenied (403)");
    }
    if (c->plan != NULL) {
        return object_plan(s, c, key, err);
    }
    if (!s3_store_path(s->root, c->bucket, key, from, err)) {
        return false;
    }
    for (int i = 0; i < s->hosts_n; i++) {
        if (c->sharded && c->count % (size_t)s->hosts_n != (size_t)i) {
            continue;
        }
        if (!files_path(to, sizeof to, err, "%s/input/data/%s/%s", s->hosts[i].ml, c->name, rel) ||
            !files_place(from, to, err)) {
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
            return transfer_fail(uri, err);
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
            bool denied = err->code == ERR_FORBIDDEN;
            return channel_fail(
                full,
                denied ? err->message : "The manifest names an object that is not there:", err);
        }
    }
    return true;
}

/* False: err says what is wrong with the line. */
static bool line_check(const struct supervisor *s, const struct channel *c, struct str line,
                       struct err *err)
{
    AUTO_JSON json_t *parsed = NULL;
    size_t i;
    json_t *name;
    bool ok = json_parse(line, MANIFEST_BYTES_MAX, &parsed, err);
    json_array_foreach(c->plan->attributes, i, name)
    {
        AUTO_FREE char *value = NULL;
        char path[PATH_MAX];
        bool object;
        ok = ok && feed_plan_value(line, parsed, json_string_value(name), &object, &value, err);
        if (ok && object && !transfer_object(s, value, path, err)) {
            ok = err_wrap(err, "%.300s", value);
        }
    }
    return ok;
}

/* The lines of an augmented manifest, all of them good, are those of a plan. */
static bool augmented_plan(struct supervisor *s, struct channel *c, const char *uri,
                           struct err *err)
{
    char path[PATH_MAX];
    AUTO_BUF struct buf text = BUF_INIT(MANIFEST_BYTES_MAX);
    if (!transfer_object(s, uri, path, err) || !files_read(path, &text, err)) {
        return channel_fail(uri, "Cannot read the augmented manifest", err);
    }
    struct str rest = buf_str(&text);
    for (size_t number = 1; rest.n > 0; number++) {
        struct str line = str_trim(str_split(&rest, '\n'));
        if (line.n == 0) {
            continue;
        }
        if (!line_check(s, c, line, err)) {
            (void)err_wrap(err, "Line %zu of the augmented manifest", number);
            return transfer_fail(uri, err);
        }
        feed_plan_add(c->plan, line);
    }
    return c->plan->n > 0 || channel_fail(uri, "The augmented manifest has no lines:", err);
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

/* A channel of S3, to the hosts or into the plan. */
static bool channel_fetch(struct supervisor *s, const json_t *ch, struct feed_plan *plan,
                          struct err *err)
{
    const json_t *s3 = json_object_get(json_object_get(ch, "DataSource"), "S3DataSource");
    const char *uri = json_string_value(json_object_get(s3, "S3Uri"));
    const char *type = json_string_value(json_object_get(s3, "S3DataType"));
    const char *dist = json_string_value(json_object_get(s3, "S3DataDistributionType"));
    struct channel c = {.name = json_string_value(json_object_get(ch, "ChannelName")),
                        .sharded = dist != NULL && strcmp(dist, "ShardedByS3Key") == 0,
                        .plan = plan};
    if (uri == NULL || type == NULL || c.name == NULL ||
        !s3_store_uri(uri, c.bucket, c.prefix, err)) {
        return channel_fail(uri == NULL ? "" : uri, "Not an S3 URI", err);
    }
    if (transfer_denied(s, c.bucket)) {
        return channel_fail(uri, "Failed to download data. AccessDenied (403)", err);
    }
    if (plan != NULL && plan->attributes != NULL) {
        return augmented_plan(s, &c, uri, err);
    }
    return strcmp(type, "ManifestFile") == 0 ? manifest_fetch(s, &c, uri, err)
                                             : prefix_fetch(s, &c, uri, err);
}

bool transfer_channels(struct supervisor *s, struct err *err)
{
    const json_t *list = json_object_get(s->request, "InputDataConfig");
    size_t i;
    json_t *ch;
    s->plans = xcalloc(json_array_size(list) + 1, sizeof *s->plans);
    json_array_foreach(list, i, ch)
    {
        const char *name = json_string_value(json_object_get(ch, "ChannelName"));
        struct feed_plan *plan = NULL;
        if (json_object_get(json_object_get(ch, "DataSource"), "FileSystemDataSource") != NULL) {
            if (!channel_mount(s, name, err)) {
                return false;
            }
            continue;
        }
        if (transfer_is_pipe(s, ch)) {
            plan = &s->plans[s->plans_n++];
            feed_plan_init(plan, ch);
        }
        if (!channel_fetch(s, ch, plan, err)) {
            return false;
        }
        if (plan != NULL && plan->units.overflow) {
            return channel_fail(name, "The channel names too many objects:", err);
        }
    }
    return true;
}
