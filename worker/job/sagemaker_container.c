/* Reads the files SageMaker writes and writes the failure file it reads. */
#include "sagemaker_container.h"
#include "common/json.h"
#include "worker_protocol.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

const char *sagemaker_container_root(void)
{
    const char *root = getenv(WP_ENV_ML_ROOT);
    return root != NULL && root[0] != '\0' ? root : "/opt/ml";
}

char *sagemaker_container_path(const char *path)
{
    struct str p = str_of(path);
    if (str_starts(p, "/opt/ml") && (path[7] == '/' || path[7] == '\0')) {
        return xasprintf("%s%s", sagemaker_container_root(), path + 7);
    }
    return xstrdup(path);
}

static bool read_json(const char *rel, json_t **ret, struct err *err)
{
    AUTO_FREE char *path = xasprintf("%s/%s", sagemaker_container_root(), rel);
    AUTO_FILE FILE *f = fopen(path, "re");
    if (f == NULL) {
        *ret = NULL;
        return errno == ENOENT ? true : err_set_os(err, ERR_IO, errno, "cannot open '%s'", path);
    }
    AUTO_BUF struct buf b = BUF_INIT(SAGEMAKER_CONTAINER_CONFIG_BYTES_MAX);
    if (!buf_add_file(&b, f)) {
        return err_set(err, ERR_IO, "cannot read '%s'", path);
    }
    json_t *v;
    if (!json_parse(buf_str(&b), SAGEMAKER_CONTAINER_CONFIG_BYTES_MAX, &v, err)) {
        return err_wrap(err, "%s", path);
    }
    if (!json_is_object(v)) {
        json_decref(v);
        return err_set(err, ERR_MALFORMED, "%s: expected an object", path);
    }
    *ret = v;
    return true;
}

/* Value of one hyperparameter as text. */
static json_t *plain_text(const json_t *v)
{
    if (json_is_string(v)) {
        const char *s = json_string_value(v);
        json_t *inner = s[0] == '"' ? json_loads(s, JSON_DECODE_ANY, NULL) : NULL;
        if (json_is_string(inner)) {
            return inner;
        }
        json_decref(inner);
        return json_string(s);
    }
    AUTO_FREE char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    return json_string(text != NULL ? text : "");
}

bool sagemaker_container_hyperparameters(json_t **ret, struct err *err)
{
    AUTO_JSON json_t *raw = NULL;
    if (!read_json("input/config/hyperparameters.json", &raw, err)) {
        return false;
    }
    json_t *out = NULL;
    if (raw != NULL) {
        out = json_object();
        const char *key;
        json_t *v;
        json_object_foreach(raw, key, v)
        {
            (void)json_object_set_new(out, key, plain_text(v));
        }
    }
    *ret = out;
    return true;
}

static bool add_host(struct sagemaker_container_hosts *h, struct str name, struct err *err)
{
    if (h->n == SAGEMAKER_CONTAINER_HOSTS_MAX) {
        return err_set(err, ERR_LIMIT, "more than %d hosts", SAGEMAKER_CONTAINER_HOSTS_MAX);
    }
    if (name.n == 0 || name.n >= SAGEMAKER_CONTAINER_HOST_BYTES_MAX) {
        return err_set(err, ERR_INVALID, "the name of host %d has %zu bytes", h->n + 1, name.n);
    }
    (void)snprintf(h->names[h->n++], sizeof h->names[0], "%.*s", (int)name.n, name.p);
    return true;
}

/* What a job of SageMaker or drover-local says; *ret_me "": nothing. */
static bool configured_hosts(struct sagemaker_container_hosts *h,
                             char ret_me[static SAGEMAKER_CONTAINER_HOST_BYTES_MAX],
                             struct err *err)
{
    AUTO_JSON json_t *config = NULL;
    json_t *hosts = NULL;
    const char *me = "";
    if (!read_json("input/config/resourceconfig.json", &config, err)) {
        return false;
    }
    bool ok = config == NULL || (json_get_array(config, "hosts", &hosts, err) &&
                                 json_get_str(config, "current_host", "", &me, err));
    for (size_t i = 0; ok && i < json_array_size(hosts); i++) {
        ok = add_host(h, str_of(json_string_value(json_array_get(hosts, i))), err);
    }
    (void)snprintf(ret_me, SAGEMAKER_CONTAINER_HOST_BYTES_MAX, "%s", me);
    return ok || err_wrap(err, "resourceconfig.json");
}

static bool hosts_of_environment(struct sagemaker_container_hosts *h,
                                 char ret_me[static SAGEMAKER_CONTAINER_HOST_BYTES_MAX],
                                 struct err *err)
{
    struct str rest = str_of(getenv(WP_ENV_HOSTS));
    const char *me = getenv(WP_ENV_HOST);
    bool ok = true;
    while (ok && rest.n > 0) {
        struct str value = str_split(&rest, ',');
        ok = add_host(h, str_split(&value, '='), err);
    }
    (void)snprintf(ret_me, SAGEMAKER_CONTAINER_HOST_BYTES_MAX, "%s", me != NULL ? me : "");
    return ok || err_wrap(err, WP_ENV_HOSTS);
}

static int host_cmp(const void *a, const void *b)
{
    return strcmp(a, b);
}

bool sagemaker_container_hosts(struct sagemaker_container_hosts *ret, struct err *err)
{
    char me[SAGEMAKER_CONTAINER_HOST_BYTES_MAX];
    ret->n = 0;
    ret->me = 0;
    if (!configured_hosts(ret, me, err) || (ret->n == 0 && !hosts_of_environment(ret, me, err))) {
        return false;
    }
    if (ret->n == 0) {
        return add_host(ret, str_of("localhost"), err);
    }
    qsort(ret->names, (size_t)ret->n, sizeof ret->names[0], host_cmp);
    for (int i = 1; i < ret->n; i++) {
        if (strcmp(ret->names[i - 1], ret->names[i]) == 0) {
            return err_set(err, ERR_INVALID, "host '%s' is there twice", ret->names[i]);
        }
    }
    if (ret->n == 1) {
        return true;
    }
    while (ret->me < ret->n && strcmp(ret->names[ret->me], me) != 0) {
        ret->me++;
    }
    return ret->me < ret->n || err_set(err, ERR_INVALID,
                                       "this host, '%.60s', is not among the %d hosts of the job "
                                       "(%s)",
                                       me, ret->n, WP_ENV_HOST);
}

bool sagemaker_container_channel(const char *name, char **ret, struct err *err)
{
    AUTO_FREE char *base = xasprintf("%s/input/data", sagemaker_container_root());
    DIR *d = opendir(base);
    if (d == NULL) {
        return err_set_os(err, ERR_INVALID, errno, "no input channel: cannot open '%s'", base);
    }
    AUTO_BUF struct buf seen = BUF_INIT(4096);
    char *found = NULL;
    int n = 0;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (e->d_name[0] == '.') {
            continue;
        }
        if (name == NULL ? n == 0 : strcmp(name, e->d_name) == 0) {
            free(found);
            found = xasprintf("%s/%s", base, e->d_name);
        }
        n++;
        buf_addf(&seen, " %s", e->d_name);
    }
    (void)closedir(d);
    if (found == NULL || (name == NULL && n > 1)) {
        free(found);
        return err_set(err, ERR_INVALID, "no input channel '%s'; channels:%s",
                       name == NULL ? "(the only one)" : name, n == 0 ? " none" : buf_cstr(&seen));
    }
    *ret = found;
    return true;
}

/* Of an error of a file or device that is not listed above. */
static const char *io_cause(int os_errno)
{
    switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return "bad_input";
    case ETIMEDOUT:
    case ECONNRESET:
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENOTCONN:
    case EPIPE:
    case ESTALE: /* the server of a mounted file system lost it */
        return "network";
    default: /* EIO, EMFILE and their like: the machine's */
        return "internal";
    }
}

const char *sagemaker_container_cause(const struct err *err)
{
    if (err->os_errno == ENOSPC || err->os_errno == EDQUOT) {
        return "disk_full";
    }
    if (err->os_errno == ENOMEM) {
        return "oom";
    }
    if (err->http_status == 401 || err->http_status == 403 || err->os_errno == EACCES ||
        err->os_errno == EPERM || err->os_errno == EROFS) {
        return "access_denied";
    }
    switch (err->code) {
    case ERR_UNAUTHENTICATED:
    case ERR_FORBIDDEN:
        return "access_denied";
    case ERR_INVALID:
    case ERR_MALFORMED:
    case ERR_NOT_FOUND:
    case ERR_TOO_LARGE:
    case ERR_LIMIT:
    case ERR_OVERFLOW:
    case ERR_MEDIA_TYPE:
        return "bad_input";
    case ERR_THROTTLED:
        return "throttled";
    case ERR_TIMEOUT:
    case ERR_NETWORK:
    case ERR_UNAVAILABLE:
        return "network";
    case ERR_AWS:
        return err->http_status >= 500 || err->http_status == 0 ? "network" : "unknown";
    case ERR_IO:
        return io_cause(err->os_errno);
    case ERR_NONE:
    case ERR_INTERNAL:
    case ERR_METHOD:
    case ERR_CONFLICT:
    case ERR_ARCHIVED:
    case ERR_LIVE_NAME:
    case ERR_PRECONDITION:
    case ERR_KEY_REUSED:
    case ERR_KEY_IN_USE:
    case ERR_BUDGET:
    case ERR_QUOTA:
    case ERR_MODEL:
    case ERR_DATABASE:
    case ERR_NOT_LEADER:
    case ERR_CODE_COUNT:
        break;
    }
    return "unknown";
}

int sagemaker_container_exit(const char *cause)
{
    static const struct {
        const char *cause;
        int exit;
    } table[] = {
        {"bad_input", WP_EXIT_BAD_INPUT}, {"access_denied", WP_EXIT_NO_ACCESS},
        {"disk_full", WP_EXIT_DISK_FULL}, {"network", WP_EXIT_NETWORK},
        {"throttled", WP_EXIT_NETWORK},   {"stopped", WP_EXIT_STOPPED},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (strcmp(cause, table[i].cause) == 0) {
            return table[i].exit;
        }
    }
    return WP_EXIT_FAILED;
}

void sagemaker_container_fail(const char *cause, const char *message)
{
    AUTO_FREE char *path = xasprintf("%s/output/failure", sagemaker_container_root());
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        return; /* run by hand there is no such folder: the same text goes to stderr */
    }
    AUTO_FREE char *text = xasprintf("%s: %s", cause, message);
    ssize_t n = write(fd, text, strlen(text));
    (void)n;
}
