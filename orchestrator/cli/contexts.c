/* See contexts.h. */
#include "contexts.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTEXTS_MAX (256 * 1024)

/* The folder of the file; NULL for a user without a home. */
static char *folder(void)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config != NULL && config[0] == '/') {
        return xasprintf("%s/drover", config);
    }
    return home != NULL && home[0] == '/' ? xasprintf("%s/.config/drover", home) : NULL;
}

char *contexts_path(void)
{
    AUTO_FREE char *dir = folder();
    return dir != NULL ? xasprintf("%s/contexts.json", dir) : NULL;
}

static bool is_contexts(const json_t *v)
{
    const char *name;
    json_t *c;
    bool good = json_is_object(v) && json_is_object(json_object_get(v, "contexts"));
    json_object_foreach(json_object_get(v, "contexts"), name, c)
    {
        good = good && json_is_string(json_object_get(c, "url")) &&
               json_is_string(json_object_get(c, "token"));
    }
    return good;
}

bool contexts_read(json_t **ret, struct err *err)
{
    struct stat st;
    AUTO_FREE char *path = contexts_path();
    AUTO_FILE FILE *f = path != NULL ? fopen(path, "re") : NULL;
    *ret = json_pack("{s:{}}", "contexts");
    if (f == NULL) {
        return path == NULL || errno == ENOENT ||
               err_set(err, ERR_INVALID, "cannot read %s: %s", path, strerror(errno));
    }
    AUTO_BUF struct buf text = BUF_INIT(CONTEXTS_MAX);
    AUTO_JSON json_t *v = NULL;
    if (fstat(fileno(f), &st) != 0 || (st.st_mode & 077) != 0) {
        return err_set(err, ERR_INVALID, "others may read %s: chmod 600 it", path);
    }
    if (!buf_add_file(&text, f) || !json_parse(buf_str(&text), CONTEXTS_MAX, &v, err) ||
        !is_contexts(v)) {
        return err_set(err, ERR_INVALID, "%s is not what drover login wrote: mend or remove it",
                       path);
    }
    json_decref(*ret);
    *ret = json_incref(v);
    return true;
}

bool contexts_write(const json_t *v, struct err *err)
{
    AUTO_FREE char *dir = folder(), *path = contexts_path();
    if (dir == NULL) {
        return err_set(err, ERR_INVALID, "no folder for it: set HOME");
    }
    AUTO_FREE char *parent = xstrdup(dir), *temporary = xasprintf("%s.%d", path, getpid());
    *strrchr(parent, '/') = '\0';
    (void)mkdir(parent, 0700);
    (void)mkdir(dir, 0700);
    AUTO_FREE char *text = json_dumps(v, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    AUTO_FD int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fsync(fd) == 0 &&
              rename(temporary, path) == 0;
    if (!ok) {
        (void)err_set(err, ERR_IO, "cannot write %s: %s", path, strerror(errno));
        (void)unlink(temporary);
    }
    return ok;
}

const json_t *contexts_current(const json_t *v)
{
    const char *name = json_string_value(json_object_get(v, "current"));
    return name != NULL ? json_object_get(json_object_get(v, "contexts"), name) : NULL;
}
