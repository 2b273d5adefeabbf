/* model.tar.gz (or the files of it) and output.tar.gz of a job that ended, to its S3OutputPath. See
 * transfer.h. */
#include "common/clock.h"
#include "common/tar.h"
#include "files.h"
#include "job.h"
#include "local/s3/s3_store.h"
#include "transfer.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <zlib.h>

#define MEMBER_BYTES_MAX (1u << 30)

struct archive {
    struct supervisor *s;
    bool loose; /* CompressionType NONE: each file is an object of its own */
    gzFile gz;  /* NULL until the first member */
    char tmp[PATH_MAX];
    size_t members;
};

static bool archive_fail(const char *what, struct err *err)
{
    char why[sizeof err->message];
    (void)snprintf(why, sizeof why, "%s", err->message);
    return err_set(err, ERR_IO, "ClientError: Artifact upload failed: %s: %s", what, why);
}

static bool chunk_write(struct archive *a, struct buf *b, struct err *err)
{
    bool ok = !b->overflow && gzwrite(a->gz, b->p, (unsigned)b->n) == (int)b->n;
    buf_reset(b);
    return ok || err_set(err, ERR_IO, "cannot write '%s'", a->tmp);
}

static const char *output_uri(const struct supervisor *s)
{
    const json_t *out = json_object_get(s->request, "OutputDataConfig");
    const char *uri = json_string_value(json_object_get(out, "S3OutputPath"));
    return uri != NULL ? uri : "";
}

/* Moves what was written to <output>/<job>/output/<rest>. */
static bool output_publish(struct archive *a, const char *rest, struct err *err)
{
    struct supervisor *s = a->s;
    char bucket[S3_BUCKET_MAX];
    char prefix[S3_KEY_MAX + 1];
    char key[S3_KEY_MAX + 256];
    if (!s3_store_uri(output_uri(s), bucket, prefix, err)) {
        return false;
    }
    if (transfer_denied(s, bucket)) {
        return err_set(err, ERR_FORBIDDEN, "AccessDenied (403)");
    }
    size_t n = strlen(prefix);
    bool slash = n > 0 && prefix[n - 1] != '/';
    return files_path(key, sizeof key, err, "%s%s%s/output/%s", prefix, slash ? "/" : "", s->name,
                      rest) &&
           s3_store_publish(s->root, bucket, key, a->tmp, err);
}

static bool loose_add(struct archive *a, const char *path, const char *rel, struct err *err)
{
    char rest[PATH_MAX];
    return files_path(rest, sizeof rest, err, "model/%s", rel) && files_copy(path, a->tmp, err) &&
           output_publish(a, rest, err);
}

static bool member_add(struct archive *a, const char *path, const char *rel, struct err *err)
{
    AUTO_BUF struct buf data = BUF_INIT(MEMBER_BYTES_MAX);
    AUTO_BUF struct buf block = BUF_INIT(MEMBER_BYTES_MAX + 65536);
    if (a->loose) {
        return loose_add(a, path, rel, err);
    }
    if (a->gz == NULL && (a->gz = gzopen(a->tmp, "wb1")) == NULL) {
        return err_set_os(err, ERR_IO, errno, "cannot create '%s'", a->tmp);
    }
    if (!files_read(path, &data, err)) {
        return false;
    }
    tar_add(&block, str_of(rel), buf_str(&data), clock_wall_us() / USEC_PER_SEC);
    a->members++;
    return chunk_write(a, &block, err);
}

static bool folder_add(struct archive *a, const char *folder, const char *rel, int depth,
                       struct err *err)
{
    struct dirent **list = NULL;
    int n = depth > FOLDER_DEPTH_MAX ? -1 : scandir(folder, &list, NULL, alphasort);
    bool ok = n >= 0 || err_set(err, ERR_IO, "cannot read folder '%s'", folder);
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        char path[PATH_MAX];
        char inner[PATH_MAX];
        struct stat st;
        if (ok && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            ok = files_path(path, sizeof path, err, "%s/%s", folder, name) &&
                 files_path(inner, sizeof inner, err, "%s%s%s", rel, rel[0] == '\0' ? "" : "/",
                            name);
            if (ok && stat(path, &st) == 0) {
                ok = S_ISDIR(st.st_mode)   ? folder_add(a, path, inner, depth + 1, err)
                     : S_ISREG(st.st_mode) ? member_add(a, path, inner, err)
                                           : true;
            }
        }
        free(list[i]);
    }
    free(list);
    return ok;
}

/* Pack `part` (model, output/data) of every host into <output>/<job>/output/<file>, or with
 * a->loose put its files below it; nothing when all are empty. */
static bool part_pack(struct archive *a, const char *part, const char *file, struct err *err)
{
    const struct supervisor *s = a->s;
    AUTO_BUF struct buf end = BUF_INIT(4096);
    char folder[PATH_MAX];
    bool ok = files_path(a->tmp, sizeof a->tmp, err, "%s/s3/.tmp/%s.%s", s->root, s->name, file);
    for (int i = 0; ok && i < s->hosts_n; i++) {
        ok = files_path(folder, sizeof folder, err, "%s/%s", s->hosts[i].ml, part) &&
             folder_add(a, folder, "", 0, err);
    }
    if (a->gz != NULL) {
        tar_end(&end);
        ok = ok && chunk_write(a, &end, err);
        ok = gzclose(a->gz) == Z_OK && ok;
    }
    ok = ok && (a->members == 0 || output_publish(a, file, err));
    (void)unlink(a->tmp);
    return ok || archive_fail(output_uri(s), err);
}

bool transfer_artifacts(struct supervisor *s, struct err *err)
{
    struct archive model = {.s = s, .loose = job_model_loose(s->request)};
    struct archive data = {.s = s};
    return part_pack(&model, "model", model.loose ? "model" : "model.tar.gz", err) &&
           part_pack(&data, "output/data", "output.tar.gz", err);
}
