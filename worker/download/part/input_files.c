/* See input_files.h. */
#include "input_files.h"
#include "common/cleanup.h"
#include "io/sink.h"
#include <dirent.h>

/* A folder of plain files. */
static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            (void)unlinkat(dirfd(d), e->d_name, 0);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    (void)rmdir(path);
}

void input_done(struct input *in)
{
    for (size_t i = 0; i < in->files_n; i++) {
        free(in->files[i].path);
        free(in->files[i].name);
    }
    free(in->files);
    free(in->name);
    if (in->fd >= 0) {
        (void)close(in->fd);
    }
    if (in->dir != NULL) {
        remove_folder(in->dir);
        free(in->dir);
    }
    *in = (struct input){.fd = -1};
}

/* It owns both. NOLINTNEXTLINE(readability-non-const-parameter) */
void input_add(struct input *in, char *path, char *name)
{
    in->files = xrealloc(in->files, (in->files_n + 1) * sizeof *in->files);
    in->files[in->files_n++] = (struct input_file){path, name};
}

bool input_same_folder(const char *a, const char *b)
{
    if (sink_is_s3(a) || sink_is_s3(b)) {
        struct str x = str_of(a);
        struct str y = str_of(b);
        while (x.n > 0 && x.p[x.n - 1] == '/') {
            x.n--;
        }
        while (y.n > 0 && y.p[y.n - 1] == '/') {
            y.n--;
        }
        return str_eq(x, y);
    }
    AUTO_FREE char *x = realpath(str_starts(str_of(a), "file://") ? a + 7 : a, NULL);
    AUTO_FREE char *y = realpath(str_starts(str_of(b), "file://") ? b + 7 : b, NULL);
    return x != NULL && y != NULL && strcmp(x, y) == 0;
}

bool input_is_own_shard(const char *output, const char *folder, const char *name)
{
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && strcmp(name + digits, ".parquet") == 0 &&
           input_same_folder(output, folder);
}

bool input_is_own_path(const char *output, const char *path)
{
    AUTO_FREE char *folder = xstrdup(path);
    char *slash = strrchr(folder, '/');
    const char *name = slash != NULL ? path + (slash - folder) + 1 : path;
    if (slash != NULL) {
        *slash = '\0';
    }
    return input_is_own_shard(output, slash == NULL ? "." : slash == folder ? "/" : folder, name);
}

bool input_refuse_own(const char *output, const char *path, struct err *err)
{
    AUTO_FREE char *target = sink_is_s3(path) ? NULL : realpath(path, NULL);
    bool own = input_is_own_path(output, path) ||
               (target != NULL && input_is_own_path(output, target)); /* through a link */
    return !own ||
           err_set(err, ERR_INVALID,
                   "'%s' has the name of a shard of the output and lies where it is written "
                   "('%s'): it would be removed; take an output folder of its own",
                   path, output);
}
