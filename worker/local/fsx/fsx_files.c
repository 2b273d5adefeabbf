/* See fsx_files.h. */
#include "fsx_files.h"
#include "common/cleanup.h"
#include "local/jobs/files.h"
#include "local/s3/s3_store.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#define KEYS_MAX       1000000
#define KEYS_BYTES_MAX (256u << 20)

struct fsx_transfer {
    const struct fsx_link *link;
    struct fsx_counts *counts;
    char bucket[S3_BUCKET_MAX];
    char prefix[S3_KEY_MAX + 1];
};

static bool transfer_open(struct fsx_transfer *t, const struct fsx_link *l,
                          struct fsx_counts *counts, struct err *err)
{
    *t = (struct fsx_transfer){.link = l, .counts = counts};
    *counts = (struct fsx_counts){0};
    if (!s3_store_uri(l->s3_path, t->bucket, t->prefix, err)) {
        return false;
    }
    size_t n = strlen(t->prefix);
    if (n > 0 && n < S3_KEY_MAX && t->prefix[n - 1] != '/') {
        t->prefix[n] = '/';
        t->prefix[n + 1] = '\0';
    }
    return s3_store_has_bucket(l->root, t->bucket) ||
           err_set(err, ERR_NOT_FOUND, "Amazon FSx is unable to access the bucket %s", t->bucket);
}

bool fsx_reachable(const struct fsx_link *l, struct err *err)
{
    struct fsx_transfer t;
    struct fsx_counts none;
    return transfer_open(&t, l, &none, err);
}

/* True when `from` has to be copied over `to`. */
static bool is_newer(const struct stat *from, const struct stat *to)
{
    return from->st_size != to->st_size || from->st_mtim.tv_sec > to->st_mtim.tv_sec ||
           (from->st_mtim.tv_sec == to->st_mtim.tv_sec &&
            from->st_mtim.tv_nsec > to->st_mtim.tv_nsec);
}

static bool object_import(struct fsx_transfer *t, const char *key, struct err *err)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    struct stat a;
    struct stat b;
    if (!s3_store_path(t->link->root, t->bucket, key, from, err) ||
        !files_path(to, sizeof to, err, "%s/%s", t->link->folder, key + strlen(t->prefix)) ||
        stat(from, &a) != 0) {
        return false;
    }
    if (stat(to, &b) == 0 && !is_newer(&a, &b)) {
        return true;
    }
    if (S_ISREG(a.st_mode) && key[strlen(key) - 1] == '/') {
        return files_mkdirs(to, err);
    }
    t->counts->total++;
    if (!files_place(from, to, err)) {
        return false;
    }
    /* As old as its object, so that only what a job changed is exported. */
    const struct timespec times[2] = {a.st_mtim, a.st_mtim};
    return utimensat(AT_FDCWD, to, times, 0) == 0;
}

bool fsx_import(const struct fsx_link *l, struct fsx_counts *ret, struct err *err)
{
    struct fsx_transfer t;
    AUTO_BUF struct buf keys = BUF_INIT(KEYS_BYTES_MAX);
    if (!transfer_open(&t, l, ret, err) || !files_mkdirs(l->folder, err) ||
        !s3_store_keys(l->root, t.bucket, t.prefix, KEYS_MAX, &keys, err)) {
        return false;
    }
    for (size_t at = 0; at < keys.n;) {
        const char *key = keys.p + at;
        struct err why = ERR_INIT;
        at += strlen(key) + 1;
        ret->failed += object_import(&t, key, &why) ? 0 : 1;
    }
    return true;
}

static bool file_export(struct fsx_transfer *t, const char *path, const char *rel, struct err *err)
{
    char to[PATH_MAX];
    char tmp[PATH_MAX];
    char key[S3_KEY_MAX + 1];
    struct stat a;
    struct stat b;
    if (!files_path(key, sizeof key, err, "%s%s", t->prefix, rel) ||
        !s3_store_path(t->link->root, t->bucket, key, to, err) || stat(path, &a) != 0) {
        return false;
    }
    if (stat(to, &b) == 0 && !is_newer(&a, &b)) {
        return true;
    }
    t->counts->total++;
    return files_path(tmp, sizeof tmp, err, "%s/s3/.tmp/fsx-%lld", t->link->root,
                      (long long)a.st_ino) &&
           files_copy(path, tmp, err) && s3_store_publish(t->link->root, t->bucket, key, tmp, err);
}

static void folder_export(struct fsx_transfer *t, const char *folder, const char *rel, int depth)
{
    struct dirent **list = NULL;
    int n = depth > FOLDER_DEPTH_MAX ? -1 : scandir(folder, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        char path[PATH_MAX];
        char inner[PATH_MAX];
        struct stat st;
        struct err err = ERR_INIT;
        bool dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
        if (!dots && files_path(path, sizeof path, &err, "%s/%s", folder, name) &&
            files_path(inner, sizeof inner, &err, "%s%s%s", rel, rel[0] == '\0' ? "" : "/", name) &&
            lstat(path, &st) == 0) {
            if (S_ISDIR(st.st_mode)) {
                folder_export(t, path, inner, depth + 1);
            } else if (S_ISREG(st.st_mode)) {
                t->counts->failed += file_export(t, path, inner, &err) ? 0 : 1;
            }
        }
        free(list[i]);
    }
    free(list);
}

bool fsx_export(const struct fsx_link *l, const char *path, struct fsx_counts *ret, struct err *err)
{
    struct fsx_transfer t;
    char folder[PATH_MAX];
    struct stat st;
    if (!transfer_open(&t, l, ret, err) ||
        !files_path(folder, sizeof folder, err, "%s%s%s", l->folder, path[0] == '\0' ? "" : "/",
                    path)) {
        return false;
    }
    if (lstat(folder, &st) == 0 && S_ISREG(st.st_mode)) {
        ret->failed += file_export(&t, folder, path, err) ? 0 : 1;
    } else {
        folder_export(&t, folder, path, 0);
    }
    return true;
}
