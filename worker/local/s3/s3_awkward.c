/* Names are cut into pieces of some digits, one folder each: see s3_awkward.h. A folder's name has
 * a '+' at its end, after the file of the same digits. */
#include "s3_awkward.h"
#include "common/cleanup.h"
#include "common/str.h"
#include "local/jobs/files.h"
#include "s3_store.h"
#include <dirent.h>
#include <stdio.h>

#define PIECE_BYTES 100 /* of the key: twice as many digits */

bool s3_awkward_key(const char *key)
{
    struct str rest = str_of(key);
    int n = 0;
    size_t len = strlen(key);
    if (len == 0 || key[len - 1] == '/') {
        return true;
    }
    while (rest.n > 0) {
        struct str part = str_split(&rest, '/');
        if (part.n == 0 || part.n > NAME_MAX || ++n > S3_SEGMENTS_MAX) {
            return true;
        }
    }
    return false;
}

static bool folder_of(const char *root, const char *bucket, char out[static PATH_MAX],
                      struct err *err)
{
    return files_path(out, PATH_MAX, err, "%s/s3/.keys/%s", root, bucket);
}

bool s3_awkward_path(const char *root, const char *bucket, const char *key,
                     char out[static PATH_MAX], struct err *err)
{
    size_t n = strlen(key);
    if (!folder_of(root, bucket, out, err)) {
        return false;
    }
    for (size_t at = 0; at < n; at += PIECE_BYTES) {
        char hex[2 * PIECE_BYTES + 1];
        size_t end = strlen(out);
        size_t piece = MIN(n - at, (size_t)PIECE_BYTES);
        str_hex((const uint8_t *)key + at, piece, hex);
        int wrote = snprintf(out + end, PATH_MAX - end, "/%s%s", hex, at + piece < n ? "+" : "");
        if (wrote < 0 || (size_t)wrote >= PATH_MAX - end) {
            return err_set(err, ERR_LIMIT, "the path of '%.200s' is too long", key);
        }
    }
    return true;
}

struct awkward_walk {
    const char *prefix;
    const char *after;
    struct s3_awkward *list;
    size_t n;
    size_t cap;
};

static void file_add(struct awkward_walk *w, const char *path, const char *key)
{
    if (strncmp(key, w->prefix, strlen(w->prefix)) == 0 && strcmp(key, w->after) > 0) {
        ARRAY_ROOM(w->list, w->n, w->cap);
        w->list[w->n++] = (struct s3_awkward){xstrdup(key), xstrdup(path)};
    }
}

static void folder_read(struct awkward_walk *w, const char *folder, const char *key)
{
    struct dirent **list = NULL;
    int n = scandir(folder, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        size_t digits = strspn(name, "0123456789abcdef");
        size_t had = strlen(key);
        char path[PATH_MAX];
        char full[S3_KEY_MAX + 1];
        struct err err = ERR_INIT;
        if (digits > 0 && had + digits / 2 < sizeof full &&
            files_path(path, sizeof path, &err, "%s/%s", folder, name) &&
            str_unhex((struct str){name, digits}, (uint8_t *)full + had, digits / 2)) {
            memcpy(full, key, had);
            full[had + digits / 2] = '\0';
            if (name[digits] == '+') {
                folder_read(w, path, full);
            } else {
                file_add(w, path, full);
            }
        }
        free(list[i]);
    }
    free(list);
}

static int awkward_cmp(const void *a, const void *b)
{
    return strcmp(((const struct s3_awkward *)a)->key, ((const struct s3_awkward *)b)->key);
}

size_t s3_awkward_list(const char *root, const char *bucket, const char *prefix, const char *after,
                       struct s3_awkward **ret)
{
    struct awkward_walk w = {.prefix = prefix, .after = after};
    char folder[PATH_MAX];
    struct err err = ERR_INIT;
    if (folder_of(root, bucket, folder, &err)) {
        folder_read(&w, folder, "");
    }
    if (w.n > 0) {
        qsort(w.list, w.n, sizeof *w.list, awkward_cmp);
    }
    *ret = w.list;
    return w.n;
}

void s3_awkward_free(struct s3_awkward *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i].key);
        free(list[i].path);
    }
    free(list);
}

bool s3_awkward_any(const char *root, const char *bucket)
{
    struct s3_awkward *list;
    size_t n = s3_awkward_list(root, bucket, "", "", &list);
    s3_awkward_free(list, n);
    return n > 0;
}
