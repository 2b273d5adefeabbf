/* Finding and fetching the part. */
#include "input.h"
#include "common/cleanup.h"
#include "common/s3.h"
#include "contract.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define S3_TRIES 6

void input_done(struct input *in)
{
    free(in->path);
    free(in->name);
    if (in->fd >= 0) {
        (void)close(in->fd);
    }
    *in = (struct input){.fd = -1};
}

static int temporary_file(void)
{
    const char *dir = getenv("TMPDIR");
    dir = dir != NULL && dir[0] != '\0' ? dir : "/tmp";
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
    struct s3_sync *s3;
    int64_t size;
    if (!s3_parse_uri(str_of(uri), &u, err) || !s3_sync_new(S3_TRIES, &s3, err)) {
        return false;
    }
    in->fd = temporary_file();
    bool ok = in->fd >= 0 ? s3_sync_get_file(s3, &u, in->fd, &size, err)
                          : err_set_os(err, ERR_IO, errno, "cannot make a temporary file");
    s3_sync_free(s3);
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
        return err_set(err, ERR_INVALID, "folder '%s' holds %d .parquet files, expected one",
                       folder, n);
    }
    *ret = found;
    return true;
}

/* Its sidecars, for DuckDB to put together. */
static bool earlier_output(const struct options *o, struct input *in, struct err *err)
{
    struct stat st;
    if (in->fd >= 0 || stat(in->path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return err_set(
            err, ERR_INVALID,
            "retry_failed needs the folder of an earlier output (for one in S3 make it a "
            "channel), not '%s'",
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

bool input_open(const struct options *o, struct input *ret, struct err *err)
{
    const char *url_list = o->url_list;
    struct input in = {.fd = -1};
    struct str u = str_of(url_list);
    struct stat st;
    bool ok = true;
    if (str_starts(u, "s3://")) {
        ok = o->retry_failed || fetch_s3(url_list, &in, err);
    } else if (u.n == 0 || str_starts(u, "channel:")) {
        ok = contract_channel(u.n == 0 ? NULL : url_list + 8, &in.path, err);
    } else {
        in.path = contract_path(str_starts(u, "file://") ? url_list + 7 : url_list);
    }
    if (ok && o->retry_failed) {
        in.path = in.path != NULL ? in.path : xstrdup(url_list);
        ok = earlier_output(o, &in, err);
    } else if (ok && in.fd < 0 && stat(in.path, &st) == 0 && S_ISDIR(st.st_mode)) {
        AUTO_FREE char *folder = TAKE(in.path);
        ok = only_file(folder, &in.path, err);
    }
    if (!ok) {
        input_done(&in);
        return false;
    }
    in.name = xstrdup(in.fd >= 0 ? url_list : in.path);
    *ret = in;
    return true;
}
