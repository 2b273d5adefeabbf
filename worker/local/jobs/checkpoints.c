/* CheckpointConfig: copies the prefix in S3 to every host before a run, and what the hosts write,
 * change or remove back to S3 during and after the run. See transfer.h. */
#include "files.h"
#include "local/s3/s3_store.h"
#include "transfer.h"
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#define DEFAULT_PATH         "/opt/ml/checkpoints"
#define ML_ROOT              "/opt/ml/"
#define CHECKPOINT_DEPTH_MAX 16

struct sync {
    struct supervisor *s;
    char bucket[S3_BUCKET_MAX];
    char prefix[S3_KEY_MAX + 1]; /* "" or ends with '/' */
    char folder[PATH_MAX];       /* of the checkpoints, below a host's ml */
    int host;                    /* index of the one being walked */
    json_t *present;             /* names found on any host */
};

bool transfer_has_checkpoints(const struct supervisor *s)
{
    return json_is_object(json_object_get(s->request, "CheckpointConfig"));
}

static bool sync_init(struct sync *y, struct supervisor *s, struct err *err)
{
    const json_t *config = json_object_get(s->request, "CheckpointConfig");
    const char *uri = json_string_value(json_object_get(config, "S3Uri"));
    const char *path = json_string_value(json_object_get(config, "LocalPath"));
    *y = (struct sync){.s = s};
    path = path == NULL ? DEFAULT_PATH : path;
    if (uri == NULL || !s3_store_uri(uri, y->bucket, y->prefix, err)) {
        return err_set(err, ERR_INVALID, "ClientError: CheckpointConfig has no S3 URI");
    }
    if (transfer_denied(s, y->bucket)) {
        return err_set(err, ERR_FORBIDDEN,
                       "ClientError: Checkpoint synchronization failed: AccessDenied (403) '%s'",
                       uri);
    }
    size_t n = strlen(y->prefix);
    if (n > 0 && y->prefix[n - 1] != '/' && n < S3_KEY_MAX) {
        y->prefix[n] = '/';
        y->prefix[n + 1] = '\0';
    }
    if (strncmp(path, ML_ROOT, strlen(ML_ROOT)) != 0 || strstr(path, "..") != NULL) {
        return err_set(err, ERR_INVALID, "ClientError: '%s' is not below " ML_ROOT, path);
    }
    if (s->synced == NULL) {
        s->synced = json_object();
    }
    return files_path(y->folder, sizeof y->folder, err, "%s", path + strlen(ML_ROOT));
}

/* Compare with the file's state at its last upload, and record the new state. */
static void stamp(const struct sync *y, const char *rel, const struct stat *st, bool *ret_changed)
{
    char name[PATH_MAX + 16];
    char now[80];
    (void)snprintf(name, sizeof name, "%d/%s", y->host, rel);
    (void)snprintf(now, sizeof now, "%lld.%09ld %lld", (long long)st->st_mtim.tv_sec,
                   st->st_mtim.tv_nsec, (long long)st->st_size);
    const char *was = json_string_value(json_object_get(y->s->synced, name));
    *ret_changed = was == NULL || strcmp(was, now) != 0;
    (void)json_object_set_new(y->s->synced, name, json_string(now));
}

static bool file_save(struct sync *y, const char *path, const char *rel, const struct stat *st,
                      struct err *err)
{
    char key[S3_KEY_MAX + 1];
    char tmp[PATH_MAX];
    bool changed;
    (void)json_object_set_new(y->present, rel, json_true());
    stamp(y, rel, st, &changed);
    return !changed ||
           (files_path(key, sizeof key, err, "%s%s", y->prefix, rel) &&
            files_path(tmp, sizeof tmp, err, "%s/s3/.tmp/%s.checkpoint", y->s->root, y->s->name) &&
            files_copy(path, tmp, err) && s3_store_publish(y->s->root, y->bucket, key, tmp, err));
}

static bool folder_save(struct sync *y, const char *folder, const char *rel, int depth,
                        struct err *err)
{
    struct dirent **list = NULL;
    int n = depth > CHECKPOINT_DEPTH_MAX ? 0 : scandir(folder, &list, NULL, alphasort);
    bool ok = true;
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        char path[PATH_MAX];
        char inner[PATH_MAX];
        struct stat st;
        bool dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
        if (ok && !dots) {
            ok = files_path(path, sizeof path, err, "%s/%s", folder, name) &&
                 files_path(inner, sizeof inner, err, "%s%s%s", rel, rel[0] == '\0' ? "" : "/",
                            name);
            if (ok && lstat(path, &st) == 0) { /* skips a file removed just now */
                ok = S_ISDIR(st.st_mode)   ? folder_save(y, path, inner, depth + 1, err)
                     : S_ISREG(st.st_mode) ? file_save(y, path, inner, &st, err)
                                           : true;
            }
        }
        free(list[i]);
    }
    free(list);
    return ok;
}

/* Remove from the prefix what no host has any more. */
static void gone_remove(struct sync *y)
{
    const char *name;
    json_t *v;
    void *next;
    json_object_foreach_safe(y->s->synced, next, name, v)
    {
        const char *rel = strchr(name, '/') + 1;
        char key[S3_KEY_MAX + 1];
        struct err err = ERR_INIT;
        if (json_object_get(y->present, rel) == NULL &&
            files_path(key, sizeof key, &err, "%s%s", y->prefix, rel)) {
            s3_store_remove(y->s->root, y->bucket, key);
            (void)json_object_del(y->s->synced, name);
        }
    }
}

bool transfer_checkpoints_save(struct supervisor *s, struct err *err)
{
    struct sync y;
    if (!transfer_has_checkpoints(s)) {
        return true;
    }
    if (!sync_init(&y, s, err)) {
        return false;
    }
    AUTO_JSON json_t *present = json_object();
    y.present = present;
    bool ok = true;
    for (y.host = 0; ok && y.host < s->hosts_n; y.host++) {
        char folder[PATH_MAX];
        ok = files_path(folder, sizeof folder, err, "%s/%s", s->hosts[y.host].ml, y.folder) &&
             folder_save(&y, folder, "", 0, err);
    }
    if (ok) {
        gone_remove(&y);
    }
    return ok;
}

static bool object_load(struct sync *y, const char *key, struct err *err)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    const char *rel = key + strlen(y->prefix);
    struct stat st;
    bool changed;
    if (!s3_store_path(y->s->root, y->bucket, key, from, err)) {
        return false;
    }
    for (y->host = 0; y->host < y->s->hosts_n; y->host++) {
        if (!files_path(to, sizeof to, err, "%s/%s/%s", y->s->hosts[y->host].ml, y->folder, rel) ||
            !files_place(from, to, err)) {
            return false;
        }
        if (stat(to, &st) == 0 && S_ISREG(st.st_mode)) {
            stamp(y, rel, &st, &changed);
        }
    }
    return true;
}

bool transfer_checkpoints_load(struct supervisor *s, struct err *err)
{
    struct sync y;
    AUTO_BUF struct buf keys = BUF_INIT(64u << 20);
    struct err why = ERR_INIT;
    if (!transfer_has_checkpoints(s)) {
        return true;
    }
    if (!sync_init(&y, s, err)) {
        return false;
    }
    for (int i = 0; i < s->hosts_n; i++) {
        char folder[PATH_MAX];
        if (!files_path(folder, sizeof folder, err, "%s/%s", s->hosts[i].ml, y.folder) ||
            !files_mkdirs(folder, err)) {
            return false;
        }
    }
    if (!s3_store_keys(s->root, y.bucket, y.prefix, TRANSFER_KEYS_MAX, &keys, &why)) {
        return err_set(err, ERR_NOT_FOUND, "ClientError: Checkpoint synchronization failed: %s",
                       why.message);
    }
    for (size_t at = 0; at < keys.n; at += strlen(keys.p + at) + 1) {
        if (!object_load(&y, keys.p + at, err)) {
            return false;
        }
    }
    return true;
}
