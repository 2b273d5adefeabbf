/* What a killed worker leaves in a folder: temporary files and folders, whose lock is free. */
#include "common/cleanup.h"
#include "common/log.h"
#include "sink_internal.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

bool sink_sweep(struct sink *s, struct err *err)
{
    return sink_sweep_but(s, NULL, 0, err);
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Remove a temporary file or folder that no living writer holds. */
static void remove_left(struct sink *s, const char *name)
{
    AUTO_FD int fd = openat(s->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct err err = ERR_INIT;
    struct stat st;
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &st) != 0) {
        return;
    }
    if (!S_ISDIR(st.st_mode)) {
        (void)unlinkat(s->dir_fd, name, 0);
    } else if (!sink_remove_folder(s, name, &err)) {
        log_event(LOG_WARN, "temporary_folder_not_removed", LF_ERR(&err));
    }
}

/* Of a temporary name: what it becomes. "": it is no name of sink_create_tmp. */
static const char *name_of(const char *tmp)
{
    const char *own = tmp + strlen(SINK_TMP_PREFIX);
    size_t hex = strspn(own, "0123456789abcdef");
    size_t serial = own[hex] == '-' ? strspn(own + hex + 1, "0123456789") : 0;
    return serial > 0 && own[hex + 1 + serial] == '-' ? own + hex + serial + 2 : "";
}

struct kept { /* a value */
    const char *const *names;
    size_t n;
    bool (*ours)(void *ctx, const char *name); /* NULL: all */
    void *ctx;
};

static bool sweep(struct sink *s, const struct kept *k, struct err *err)
{
    if (s->s3 != NULL) {
        return true;
    }
    int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        return err_set_os(err, ERR_IO, errno, "cannot list the output folder");
    }
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (strncmp(e->d_name, SINK_TMP_PREFIX, strlen(SINK_TMP_PREFIX)) == 0 &&
            !is_one_of(e->d_name, k->names, k->n) &&
            (k->ours == NULL || k->ours(k->ctx, name_of(e->d_name)))) {
            remove_left(s, e->d_name);
        }
    }
    (void)closedir(d);
    return true;
}

bool sink_sweep_but(struct sink *s, const char *const *keep, size_t keep_n, struct err *err)
{
    const struct kept k = {.names = keep, .n = keep_n};
    return sweep(s, &k, err);
}

bool sink_sweep_ours(struct sink *s, bool (*ours)(void *ctx, const char *name), void *ctx,
                     struct err *err)
{
    const struct kept k = {.ours = ours, .ctx = ctx};
    return sweep(s, &k, err);
}
