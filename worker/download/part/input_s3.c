/* One object goes into an unnamed temporary file. Several go into a temporary folder under their
 * names, since each is read more than once. */
#include "input_s3.h"
#include "common/cleanup.h"
#include "common/s3.h"
#include "io/many.h"
#include "io/sink.h"
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>

#define OBJECTS_LISTED_MAX 2000000

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

static bool fetch_one(struct s3_blocking *s3, const struct s3_uri *u, const char *uri,
                      struct input *in, struct err *err)
{
    int64_t size;
    in->fd = temporary_file();
    if (in->fd < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot make a temporary file");
    }
    if (!s3_blocking_get_file(s3, u, in->fd, &size, err)) {
        (void)close(in->fd);
        in->fd = -1;
        return false;
    }
    input_add(in, xasprintf("/proc/self/fd/%d", in->fd), xstrdup(uri));
    return true;
}

static bool fetch_into(struct s3_blocking *s3, const struct s3_uri *u, const char *path,
                       struct err *err)
{
    int64_t size;
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot create '%s'", path);
    }
    return s3_blocking_get_file(s3, u, fd, &size, err);
}

static bool make_temporary_folder(struct input *in, struct err *err)
{
    AUTO_FREE char *dir = xasprintf("%s/drover-input-XXXXXX", temporary_place());
    if (mkdtemp(dir) == NULL) {
        return err_set_os(err, ERR_IO, errno, "cannot make a temporary folder '%s'", dir);
    }
    in->dir = TAKE(dir);
    return true;
}

struct object_filter {   /* which objects directly below a prefix */
    const char *suffix;  /* of their names; NULL: any */
    const char *pattern; /* fnmatch of their names; NULL: any */
    const char *output;  /* output_folder: its shards are no input; NULL: no such check */
};

static bool is_wanted(const struct object_filter *w, const char *name, const struct s3_uri *base)
{
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL) {
        return false;
    }
    AUTO_FREE char *folder = xasprintf("s3://%s/%s", base->bucket, base->key);
    return (w->suffix == NULL || str_ends(str_of(name), w->suffix)) &&
           (w->pattern == NULL || fnmatch(w->pattern, name, FNM_PERIOD) == 0) &&
           (w->output == NULL || !input_is_own_shard(w->output, folder, name));
}

/* S3 that slows many readers down is waited for as it is for the output. One large object has no
 * other figure that grows but its bytes. */
static bool connect_patient(const struct download_options *o, struct progress *p,
                            struct s3_blocking **ret, struct err *err)
{
    if (!s3_blocking_new(S3_TRIES, ret, err)) {
        return false;
    }
    s3_blocking_be_patient(*ret, o->s3_patience_s * USEC_PER_SEC);
    s3_blocking_count(*ret, &p->bytes);
    return true;
}

struct fetch_below { /* of in->files[first], and what follows */
    const struct download_options *o;
    const struct s3_uri *base;
    const struct input *in;
    size_t first;
    struct progress *p;
};

static bool connect_one(void *ctx, struct s3_blocking **ret, struct err *err)
{
    const struct fetch_below *f = ctx;
    return connect_patient(f->o, f->p, ret, err);
}

static bool fetch_file(void *ctx, struct s3_blocking *s3, size_t i, struct err *err)
{
    const struct fetch_below *f = ctx;
    const char *path = f->in->files[f->first + i].path;
    struct s3_uri u = *f->base;
    size_t at = strlen(u.key);
    (void)snprintf(u.key + at, sizeof u.key - at, "%s", strrchr(path, '/') + 1);
    if (!fetch_into(s3, &u, path, err)) {
        return false;
    }
    f->p->prepared++;
    return true;
}

/* Fetch the wanted objects below the prefix; none is no error. Listings are sorted. */
static bool fetch_below(const struct download_options *o, struct s3_blocking *s3,
                        const struct s3_uri *base, const struct object_filter *w,
                        struct progress *p, struct input *in, struct err *err)
{
    struct s3_listing all = {0};
    struct fetch_below f = {o, base, in, in->files_n, p};
    if (!make_temporary_folder(in, err) ||
        !s3_blocking_list_level(s3, base, OBJECTS_LISTED_MAX, &all, err)) {
        return false;
    }
    for (size_t i = 0; i < all.n; i++) {
        const char *name = all.objects[i].key + strlen(base->key);
        if (is_wanted(w, name, base)) {
            input_add(in, xasprintf("%s/%s", in->dir, name),
                      xasprintf("s3://%s/%s", base->bucket, all.objects[i].key));
        }
    }
    s3_listing_done(&all);
    const struct many m = {
        .n = in->files_n - f.first, .connect = connect_one, .one = fetch_file, .ctx = &f};
    progress_prepare(p, "read", (int64_t)m.n);
    return many_run(&m, err);
}

static bool fetch_folder(const struct download_options *o, struct s3_blocking *s3, const char *uri,
                         struct progress *p, struct input *in, struct err *err)
{
    AUTO_FREE char *suffix = xasprintf(".%s", o->input_format);
    AUTO_FREE char *folder = xasprintf("%s%s", uri, str_ends(str_of(uri), "/") ? "" : "/");
    struct object_filter w = {.suffix = suffix, .output = o->output_folder};
    struct s3_uri base;
    return s3_parse_uri(str_of(folder), &base, err) && fetch_below(o, s3, &base, &w, p, in, err);
}

static bool fetch_pattern(const struct download_options *o, struct s3_blocking *s3,
                          struct progress *p, struct input *in, struct err *err)
{
    AUTO_FREE char *folder = xstrdup(o->url_list);
    char *last = strrchr(folder, '/') + 1;
    struct object_filter w = {.pattern = o->url_list + (last - folder), .output = o->output_folder};
    struct s3_uri base;
    *last = '\0';
    if (strpbrk(folder, INPUT_WILDCARDS) != NULL) {
        return err_set(err, ERR_INVALID, "only the last part of an S3 pattern may have wildcards");
    }
    return s3_parse_uri(str_of(folder), &base, err) && fetch_below(o, s3, &base, &w, p, in, err);
}

/* An object, or when there is none the prefix of this name. */
static bool fetch_named(const struct download_options *o, struct s3_blocking *s3,
                        struct progress *p, struct input *in, struct err *err)
{
    struct s3_uri u;
    struct err why = ERR_INIT;
    if (str_ends(str_of(o->url_list), "/")) {
        return fetch_folder(o, s3, o->url_list, p, in, err);
    }
    if (!s3_parse_uri(str_of(o->url_list), &u, err) ||
        !input_refuse_own(o->output_folder, o->url_list, err)) {
        return false;
    }
    if (fetch_one(s3, &u, o->url_list, in, &why)) {
        return true;
    }
    bool below = why.code == ERR_NOT_FOUND && strcmp(why.aws_code, "NoSuchBucket") != 0;
    if (below && !fetch_folder(o, s3, o->url_list, p, in, err)) {
        return false;
    }
    *err = in->files_n > 0 ? *err : why;
    return in->files_n > 0;
}

bool input_s3_fetch(const struct download_options *o, struct progress *p, struct input *in,
                    struct err *err)
{
    struct s3_blocking *s3;
    if (!connect_patient(o, p, &s3, err)) {
        return false;
    }
    bool ok = strpbrk(o->url_list, INPUT_WILDCARDS) != NULL ? fetch_pattern(o, s3, p, in, err)
                                                            : fetch_named(o, s3, p, in, err);
    s3_blocking_free(s3);
    return ok ? true : err_wrap(err, "cannot read '%s'", o->url_list);
}

bool input_s3_earlier(const struct download_options *o, struct progress *p, struct input *in,
                      struct err *err)
{
    struct s3_uri base;
    struct s3_blocking *s3;
    struct input all = {.fd = -1};
    struct object_filter w = {.suffix = ".parquet"};
    AUTO_FREE char *uri =
        xasprintf("%s%s", o->url_list, str_ends(str_of(o->url_list), "/") ? "" : "/");
    if (!s3_parse_uri(str_of(uri), &base, err) || !connect_patient(o, p, &s3, err)) {
        return false;
    }
    bool ok = fetch_below(o, s3, &base, &w, p, &all, err);
    if (ok && all.files_n == 0) {
        ok = err_set(err, ERR_INVALID, "no sidecars (.parquet) of an earlier output");
    }
    if (ok) {
        in->dir = TAKE(all.dir);
        input_add(in, xasprintf("%s/*.parquet", in->dir), xstrdup(o->url_list));
    }
    input_done(&all);
    s3_blocking_free(s3);
    return ok ? true : err_wrap(err, "cannot read '%s'", o->url_list);
}
