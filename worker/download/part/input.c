/* Finding the input's files. */
#include "input.h"
#include "common/cleanup.h"
#include "input_files.h"
#include "input_s3.h"
#include "job/sagemaker_container.h"
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <sys/stat.h>

/* Take the files that the pattern matches, in the order of their names. */
static bool take_pattern(const struct download_options *o, const char *pattern, struct input *in,
                         struct err *err)
{
    glob_t found = {0};
    int rc = glob(pattern, GLOB_ERR, NULL, &found);
    if (rc != 0 && rc != GLOB_NOMATCH) {
        return err_set_os(err, ERR_IO, errno, "cannot list '%s'", pattern);
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct stat st;
        const char *path = found.gl_pathv[i];
        bool ours = input_is_own_path(o->output_folder, path);
        if (!ours && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            input_add(in, xstrdup(path), xstrdup(path));
        }
    }
    globfree(&found);
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct input_file *x = a;
    const struct input_file *y = b;
    return strcmp(x->name, y->name);
}

/* Names with wildcards of their own are taken as they stand. */
static bool take_folder(const struct download_options *o, const char *folder, struct input *in,
                        struct err *err)
{
    DIR *d = opendir(folder);
    AUTO_FREE char *suffix = xasprintf(".%s", o->input_format);
    if (d == NULL) {
        return err_set_os(err, ERR_INVALID, errno, "cannot open folder '%s'", folder);
    }
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (e->d_name[0] != '.' && str_ends(str_of(e->d_name), suffix) &&
            !input_is_own_shard(o->output_folder, folder, e->d_name)) {
            bool slash = str_ends(str_of(folder), "/");
            char *path = xasprintf("%s%s%s", folder, slash ? "" : "/", e->d_name);
            input_add(in, path, xstrdup(path));
        }
    }
    (void)closedir(d);
    return true;
}

/* A channel of a job holds one file: its prefix may name more than was meant. */
static bool only_one(const char *folder, const struct input *in, const char *format,
                     struct err *err)
{
    return in->files_n == 1 ||
           err_set(err, ERR_INVALID,
                   "channel folder '%s' holds %zu .%s files, expected one: each part is a separate "
                   "job; to read all give its path as url_list",
                   folder, in->files_n, format);
}

/* The sidecars as a list for DuckDB. */
static bool take_earlier(const struct download_options *o, const char *path, struct input *in,
                         struct err *err)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return err_set(err, ERR_INVALID,
                       "retry_failed needs the folder or S3 prefix of an earlier output, not '%s'",
                       o->url_list);
    }
    if (input_same_folder(path, o->output_folder)) {
        return err_set(err, ERR_INVALID, "retry_failed writes into a folder of its own, not '%s'",
                       o->output_folder);
    }
    char *all = xasprintf("%s/*.parquet", path);
    glob_t found = {0};
    int rc = glob(all, 0, NULL, &found);
    globfree(&found);
    if (rc == GLOB_NOMATCH) {
        (void)err_set(err, ERR_INVALID, "'%s' has no sidecars (.parquet) of an earlier output",
                      path);
        free(all);
        return false;
    }
    input_add(in, all, xstrdup(all));
    return true;
}

static bool take_path(const struct download_options *o, const char *path, bool channel,
                      struct input *in, struct err *err)
{
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (o->retry_failed) {
        return take_earlier(o, path, in, err);
    }
    if (there && S_ISDIR(st.st_mode)) {
        return take_folder(o, path, in, err) &&
               (!channel || only_one(path, in, o->input_format, err));
    }
    if (!there && strpbrk(path, INPUT_WILDCARDS) != NULL) {
        return take_pattern(o, path, in, err);
    }
    if (!input_refuse_own(o->output_folder, path, err)) {
        return false;
    }
    input_add(in, xstrdup(path), xstrdup(path));
    return true;
}

/* Find the files; *ret_where is where they were looked for, the caller's. */
static bool find(const struct download_options *o, struct progress *p, struct input *in,
                 char **ret_where, struct err *err)
{
    const char *url_list = o->url_list;
    struct str u = str_of(url_list);
    bool channel = u.n == 0 || str_starts(u, "channel:");
    if (str_starts(u, "s3://")) {
        *ret_where = xstrdup(url_list);
        return o->retry_failed ? input_s3_earlier(o, p, in, err) : input_s3_fetch(o, p, in, err);
    }
    if (channel) {
        if (!sagemaker_container_channel(u.n == 0 ? NULL : url_list + 8, ret_where, err)) {
            return false;
        }
    } else {
        *ret_where = sagemaker_container_path(str_starts(u, "file://") ? url_list + 7 : url_list);
    }
    return take_path(o, *ret_where, channel, in, err);
}

bool input_open(const struct download_options *o, struct progress *p, struct input *ret,
                struct err *err)
{
    struct input in = {.fd = -1};
    AUTO_FREE char *where = NULL;
    bool ok = find(o, p, &in, &where, err);
    if (ok && in.files_n == 0) {
        ok = err_set(err, ERR_INVALID, "'%s' has no file that ends with .%s%s", where,
                     o->input_format,
                     o->format == INPUT_PARQUET ? " (shards of the output do not count)" : "");
    }
    if (ok && in.files_n > INPUT_FILES_MAX) {
        ok = err_set(err, ERR_LIMIT, "'%s' has %zu files; at most %d are read in one run", where,
                     in.files_n, INPUT_FILES_MAX);
    }
    if (!ok) {
        input_done(&in);
        return false;
    }
    qsort(in.files, in.files_n, sizeof *in.files, by_name);
    in.name = xstrdup(in.files_n == 1 ? in.files[0].name : where);
    *ret = in;
    return true;
}
