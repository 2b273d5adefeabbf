/* Key order over folders: see s3_walk.h. Folder names compare with a '/' appended, so a depth-first
 * walk gives the byte order of the keys. */
#include "s3_walk.h"
#include "common/cleanup.h"
#include "local/jobs/files.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#define WALK_DEPTH_MAX S3_SEGMENTS_MAX

struct walk_entry {
    char *name; /* with '/' at the end when it is a folder */
};

static int entry_cmp(const void *a, const void *b)
{
    const struct walk_entry *x = a;
    const struct walk_entry *y = b;
    return strcmp(x->name, y->name);
}

static bool is_folder(const char *folder, const struct dirent *d)
{
    char path[PATH_MAX];
    struct stat st;
    struct err err = ERR_INIT;
    if (d->d_type != DT_UNKNOWN && d->d_type != DT_LNK) {
        return d->d_type == DT_DIR;
    }
    return files_path(path, sizeof path, &err, "%s/%s", folder, d->d_name) &&
           stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static size_t entries_read(const char *folder, struct walk_entry **ret)
{
    DIR *dir = opendir(folder);
    struct walk_entry *list = NULL;
    size_t n = 0;
    size_t cap = 0;
    const struct dirent *d;
    while (dir != NULL && (d = readdir(dir)) != NULL) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0) {
            continue;
        }
        ARRAY_ROOM(list, n, cap);
        list[n++].name = xasprintf("%s%s", d->d_name, is_folder(folder, d) ? "/" : "");
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    if (n > 0) {
        qsort(list, n, sizeof *list, entry_cmp);
    }
    *ret = list;
    return n;
}

static bool begins(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* A key passed all filters: report it, or the prefix it is rolled up to. */
static void key_found(struct s3_walk *w, const char *key, const struct stat *st, const char *path)
{
    const char *cut =
        w->delimiter[0] == '\0' ? NULL : strstr(key + strlen(w->prefix), w->delimiter);
    if (cut == NULL) {
        w->done = !w->found(w->ctx, key, st, path);
        return;
    }
    char rolled[S3_KEY_MAX + 1];
    (void)snprintf(rolled, sizeof rolled, "%.*s",
                   (int)(cut - key + (ptrdiff_t)strlen(w->delimiter)), key);
    /* A prefix that was the last of the previous page is not reported again. */
    if (strcmp(rolled, w->rolled) != 0 && strcmp(rolled, w->after) != 0) {
        w->done = !w->found(w->ctx, rolled, NULL, path);
        (void)snprintf(w->rolled, sizeof w->rolled, "%s", rolled);
    }
}

/* The awkward keys before this one, and the same one, which the file at its path hides; NULL: the
 * rest. */
static void awkward_found(struct s3_walk *w, const char *key)
{
    while (!w->done && w->awkward_at < w->awkward_n &&
           (key == NULL || strcmp(w->awkward[w->awkward_at].key, key) <= 0)) {
        const struct s3_awkward *a = &w->awkward[w->awkward_at++];
        struct stat st;
        if ((key == NULL || strcmp(a->key, key) != 0) && stat(a->path, &st) == 0) {
            key_found(w, a->key, &st, a->path);
        }
    }
}

static bool folder_wanted(const struct s3_walk *w, const char *key)
{
    if (!begins(key, w->prefix) && !begins(w->prefix, key)) {
        return false;
    }
    if (w->rolled[0] != '\0' && begins(key, w->rolled)) {
        return false; /* rolled up already */
    }
    return strcmp(key, w->after) >= 0 || begins(w->after, key);
}

static void folder_walk(struct s3_walk *w, const char *folder, const char *key, int depth)
{
    struct walk_entry *list = NULL;
    size_t n = depth > WALK_DEPTH_MAX ? 0 : entries_read(folder, &list);
    for (size_t i = 0; i < n; i++) {
        char path[PATH_MAX];
        char full[S3_KEY_MAX + 1];
        struct stat st;
        struct err err = ERR_INIT;
        size_t len = strlen(list[i].name);
        bool dir = list[i].name[len - 1] == '/';
        if (!w->done && files_path(full, sizeof full, &err, "%s%s", key, list[i].name) &&
            files_path(path, sizeof path, &err, "%s/%.*s", folder, (int)(dir ? len - 1 : len),
                       list[i].name)) {
            if (dir && folder_wanted(w, full)) {
                folder_walk(w, path, full, depth + 1);
            } else if (!dir && begins(full, w->prefix) && strcmp(full, w->after) > 0 &&
                       stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
                awkward_found(w, full);
                if (!w->done) {
                    key_found(w, full, &st, path);
                }
            }
        }
        free(list[i].name);
    }
    free(list);
}

bool s3_walk_run(struct s3_walk *w, struct err *err)
{
    char folder[PATH_MAX];
    if (!files_path(folder, sizeof folder, err, "%s/s3/%s", w->root, w->bucket)) {
        return false;
    }
    if (!s3_store_has_bucket(w->root, w->bucket)) {
        return err_set(err, ERR_NOT_FOUND, "no bucket '%s'", w->bucket);
    }
    w->rolled[0] = '\0';
    w->done = false;
    w->awkward_n = s3_awkward_list(w->root, w->bucket, w->prefix, w->after, &w->awkward);
    w->awkward_at = 0;
    folder_walk(w, folder, "", 0);
    awkward_found(w, NULL);
    s3_awkward_free(w->awkward, w->awkward_n);
    return true;
}

struct keys_ctx {
    struct buf *out;
    size_t left;
};

static bool keys_found(void *ctx, const char *key, const struct stat *st UNUSED,
                       const char *path UNUSED)
{
    struct keys_ctx *k = ctx;
    if (k->left == 0) {
        k->out->overflow = true;
        return false;
    }
    k->left--;
    buf_add(k->out, key, strlen(key) + 1);
    return true;
}

bool s3_store_keys(const char *root, const char *bucket, const char *prefix, size_t max,
                   struct buf *out, struct err *err)
{
    struct keys_ctx ctx = {out, max};
    struct s3_walk w = {.root = root,
                        .bucket = bucket,
                        .prefix = prefix,
                        .after = "",
                        .delimiter = "",
                        .found = keys_found,
                        .ctx = &ctx};
    if (!s3_walk_run(&w, err)) {
        return false;
    }
    return !out->overflow || err_set(err, ERR_LIMIT, "more than %zu keys", max);
}
