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

bool sink_sweep_but(struct sink *s, const char *const *keep, size_t keep_n, struct err *err)
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
            !is_one_of(e->d_name, keep, keep_n)) {
            remove_left(s, e->d_name);
        }
    }
    (void)closedir(d);
    return true;
}
