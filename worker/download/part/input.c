/* Finding and fetching the part. */
#include "input.h"
#include "common/cleanup.h"
#include "common/s3.h"
#include "job/sagemaker_container.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define S3_TRIES            6
#define SIDECARS_LISTED_MAX 2000000 /* objects of the earlier output */

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
    free(in->path);
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

static const char *temporary_place(void)
{
    const char *dir = getenv("TMPDIR");
    return dir != NULL && dir[0] != '\0' ? dir : "/tmp";
}

static int temporary_file(void)
{
    const char *dir = temporary_place();
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        AUTO_FREE char *path = xasprintf("%s/drover-part-XXXXXX", dir);
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0) {
            (void)unlink(path);
        }
    }
    return fd;
}

static bool fetch_s3(const char *uri, struct input *in, struct err *err)
{
    struct s3_uri u;
    struct s3_blocking *s3;
    int64_t size;
    if (!s3_parse_uri(str_of(uri), &u, err) || !s3_blocking_new(S3_TRIES, &s3, err)) {
        return false;
    }
    in->fd = temporary_file();
    bool ok = in->fd >= 0 ? s3_blocking_get_file(s3, &u, in->fd, &size, err)
                          : err_set_os(err, ERR_IO, errno, "cannot make a temporary file");
    s3_blocking_free(s3);
    in->path = xasprintf("/proc/self/fd/%d", in->fd);
    return ok ? true : err_wrap(err, "cannot read '%s'", uri);
}

/* The only .parquet below the folder (one level). */
static bool only_file(const char *folder, char **ret, struct err *err)
{
    DIR *d = opendir(folder);
    if (d == NULL) {
        return err_set_os(err, ERR_INVALID, errno, "cannot open folder '%s'", folder);
    }
    char *found = NULL;
    int n = 0;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (e->d_name[0] != '.' && str_ends(str_of(e->d_name), ".parquet")) {
            free(found);
            found = xasprintf("%s/%s", folder, e->d_name);
            n++;
        }
    }
    (void)closedir(d);
    if (n != 1) {
        free(found);
        return err_set(
            err, ERR_INVALID,
            "folder '%s' holds %d .parquet files, expected one: each part is a separate job",
            folder, n);
    }
    *ret = found;
    return true;
}

/* The object's name when it is a sidecar directly below the prefix, else NULL. */
static const char *sidecar_name(const char *key, size_t prefix_n)
{
    const char *name = key + prefix_n;
    bool is = name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL &&
              str_ends(str_of(name), ".parquet");
    return is ? name : NULL;
}

static bool fetch_sidecar(struct s3_blocking *s3, const struct s3_uri *u, const char *dir,
                          const char *name, struct err *err)
{
    int64_t size;
    AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot create '%s'", path);
    }
    return s3_blocking_get_file(s3, u, fd, &size, err);
}

static bool fetch_sidecars(struct s3_blocking *s3, const struct s3_uri *base, const char *dir,
                           struct err *err)
{
    struct s3_listing all = {0};
    if (!s3_blocking_list(s3, base, SIDECARS_LISTED_MAX, &all, err)) {
        return false;
    }
    bool ok = true;
    size_t n = 0;
    for (size_t i = 0; ok && i < all.n; i++) {
        const char *name = sidecar_name(all.objects[i].key, strlen(base->key));
        if (name != NULL) {
            struct s3_uri u = *base;
            (void)snprintf(u.key, sizeof u.key, "%s", all.objects[i].key);
            ok = fetch_sidecar(s3, &u, dir, name, err);
            n++;
        }
    }
    s3_listing_done(&all);
    return ok && n == 0 ? err_set(err, ERR_INVALID, "no sidecars (.parquet) of an earlier output")
                        : ok;
}

/* Fetch all of them into a temporary folder, since their rows are read more than once. */
static bool earlier_in_s3(const struct download_options *o, struct input *in, struct err *err)
{
    struct s3_uri base;
    struct s3_blocking *s3;
    AUTO_FREE char *uri =
        xasprintf("%s%s", o->url_list, str_ends(str_of(o->url_list), "/") ? "" : "/");
    AUTO_FREE char *dir = xasprintf("%s/drover-sidecars-XXXXXX", temporary_place());
    if (!s3_parse_uri(str_of(uri), &base, err) || !s3_blocking_new(S3_TRIES, &s3, err)) {
        return false;
    }
    bool ok = mkdtemp(dir) != NULL ||
              err_set_os(err, ERR_IO, errno, "cannot make a temporary folder '%s'", dir);
    if (ok) {
        in->dir = TAKE(dir);
        in->path = xasprintf("%s/*.parquet", in->dir);
        ok = fetch_sidecars(s3, &base, in->dir, err);
    }
    s3_blocking_free(s3);
    return ok ? true : err_wrap(err, "cannot read '%s'", o->url_list);
}

/* The sidecars as a list for DuckDB. */
static bool earlier_output(const struct download_options *o, struct input *in, struct err *err)
{
    struct stat st;
    if (in->fd >= 0 || stat(in->path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return err_set(err, ERR_INVALID,
                       "retry_failed needs the folder or S3 prefix of an earlier output, not '%s'",
                       o->url_list);
    }
    AUTO_FREE char *from = realpath(in->path, NULL);
    AUTO_FREE char *to = realpath(o->output_folder, NULL);
    if (from != NULL && to != NULL && strcmp(from, to) == 0) {
        return err_set(err, ERR_INVALID, "retry_failed writes into a folder of its own, not '%s'",
                       o->output_folder);
    }
    char *all = xasprintf("%s/*.parquet", in->path);
    free(in->path);
    in->path = all;
    return true;
}

bool input_open(const struct download_options *o, struct input *ret, struct err *err)
{
    const char *url_list = o->url_list;
    struct input in = {.fd = -1};
    struct str u = str_of(url_list);
    struct stat st;
    bool ok = true;
    if (str_starts(u, "s3://")) {
        ok = o->retry_failed ? earlier_in_s3(o, &in, err) : fetch_s3(url_list, &in, err);
    } else if (u.n == 0 || str_starts(u, "channel:")) {
        ok = sagemaker_container_channel(u.n == 0 ? NULL : url_list + 8, &in.path, err);
    } else {
        in.path = sagemaker_container_path(str_starts(u, "file://") ? url_list + 7 : url_list);
    }
    if (ok && o->retry_failed && in.dir == NULL) {
        ok = earlier_output(o, &in, err);
    } else if (ok && in.fd < 0 && stat(in.path, &st) == 0 && S_ISDIR(st.st_mode)) {
        AUTO_FREE char *folder = TAKE(in.path);
        ok = only_file(folder, &in.path, err);
    }
    if (!ok) {
        input_done(&in);
        return false;
    }
    in.name = xstrdup(in.fd >= 0 || in.dir != NULL ? url_list : in.path);
    *ret = in;
    return true;
}
