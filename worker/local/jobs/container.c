/* Folders, configuration files, environment and output of a job's hosts: see container.h. */
#include "container.h"
#include "common/clock.h"
#include "files.h"
#include "transfer.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ENV_MAX        1024
#define ARGV_MAX       256
#define LINE_BYTES_MAX 8192
#define CACHE_FOLDER   "sagemaker/warmpoolcache"

static bool config_write(const struct job_host *h, const char *file, json_t *take, struct err *err)
{
    char path[PATH_MAX];
    AUTO_JSON json_t *o = take;
    AUTO_FREE char *text = json_text(o);
    return files_path(path, sizeof path, err, "%s/input/config/%s", h->ml, file) &&
           files_write(path, str_of(text), err);
}

static int name_cmp(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* algo-1 ... algo-n in the order SageMaker lists them: as text, so algo-10 comes before algo-2. */
static json_t *host_names(int n)
{
    char names[HOSTS_MAX][24];
    const char *sorted[HOSTS_MAX];
    json_t *list = json_array();
    ASSERT(n <= HOSTS_MAX);
    for (int i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof names[i], "algo-%d", i + 1);
        sorted[i] = names[i];
    }
    qsort(sorted, (size_t)n, sizeof sorted[0], name_cmp);
    for (int i = 0; i < n; i++) {
        (void)json_array_append_new(list, json_string(sorted[i]));
    }
    return list;
}

static json_t *resource_config(const struct supervisor *s, const struct job_host *h)
{
    char current[16];
    const json_t *res = json_object_get(s->request, "ResourceConfig");
    json_t *type = json_object_get(res, "InstanceType");
    (void)snprintf(current, sizeof current, "algo-%d", h->k);
    json_t *names = host_names(s->hosts_n);
    return json_pack("{s:s, s:O, s:s, s:o, s:[{s:s, s:O, s:O}], s:s}", "current_host", current,
                     "current_instance_type", type, "current_group_name", "homogeneousCluster",
                     "hosts", names, "instance_groups", "instance_group_name", "homogeneousCluster",
                     "instance_type", type, "hosts", names, "network_interface_name", "lo");
}

/* FastFile channels look like File channels to the program. */
static json_t *input_config(const struct supervisor *s)
{
    json_t *out = json_object();
    size_t i;
    json_t *ch;
    json_array_foreach(json_object_get(s->request, "InputDataConfig"), i, ch)
    {
        const json_t *s3 = json_object_get(json_object_get(ch, "DataSource"), "S3DataSource");
        const char *dist = json_string_value(json_object_get(s3, "S3DataDistributionType"));
        const char *wrap = json_string_value(json_object_get(ch, "RecordWrapperType"));
        json_t *o = json_pack("{s:s, s:s, s:s}", "TrainingInputMode",
                              transfer_is_pipe(s, ch) ? "Pipe" : "File", "S3DistributionType",
                              dist == NULL ? "FullyReplicated" : dist, "RecordWrapperType",
                              wrap == NULL ? "None" : wrap);
        json_t *type = json_object_get(ch, "ContentType");
        if (type != NULL) {
            (void)json_object_set(o, "ContentType", type);
        }
        const char *name = json_string_value(json_object_get(ch, "ChannelName"));
        (void)json_object_set_new(out, name == NULL ? "" : name, o);
    }
    return out;
}

/* Prepare the cache of a cluster: a folder of the host that outlives the job. */
static bool cache_prepare(const struct supervisor *s, const struct job_host *h, struct err *err)
{
    const char *cluster = json_string_value(json_object_get(s->spec, "cluster"));
    char cache[PATH_MAX];
    char link[PATH_MAX];
    if (cluster == NULL) {
        return true;
    }
    if (!files_path(cache, sizeof cache, err, "%s/state/clusters/%s/algo-%d", s->root, cluster,
                    h->k) ||
        !files_mkdirs(cache, err) ||
        !files_path(link, sizeof link, err, "%s/" CACHE_FOLDER, h->ml) ||
        !files_mkparents(link, err)) {
        return false;
    }
    return symlink(cache, link) == 0 || errno == EEXIST ||
           err_set_os(err, ERR_IO, errno, "cannot link '%s'", link);
}

bool container_prepare(struct supervisor *s, struct err *err)
{
    static const char *const folders[] = {"input/config", "input/data",  "model",
                                          "output/data",  "checkpoints", "code"};
    char path[PATH_MAX];
    for (int i = 0; i < s->hosts_n; i++) {
        struct job_host *h = &s->hosts[i];
        h->k = i + 1;
        h->pipe_fd = -1;
        h->log_fd = -1;
        if (!files_path(h->ml, sizeof h->ml, err, "%s/algo-%d/ml", s->folder, h->k)) {
            return false;
        }
        for (size_t f = 0; f < ARRAY_LEN(folders); f++) {
            if (!files_path(path, sizeof path, err, "%s/%s", h->ml, folders[f]) ||
                !files_mkdirs(path, err)) {
                return false;
            }
        }
        json_t *hyper = json_object_get(s->request, "HyperParameters");
        if (!cache_prepare(s, h, err) ||
            !config_write(h, "hyperparameters.json",
                          hyper == NULL ? json_object() : json_incref(hyper), err) ||
            !config_write(h, "resourceconfig.json", resource_config(s, h), err) ||
            !config_write(h, "inputdataconfig.json", input_config(s), err)) {
            return false;
        }
    }
    return true;
}

void container_address(int64_t seq, int k, char out[static 20])
{
    unsigned net = (unsigned)(seq % NETS_MAX);
    (void)snprintf(out, 20, "127.%u.%u.%u", 64 + net / 250 % 160, 1 + net % 250, (unsigned)k % 256);
}

static void env_add(char **env, size_t *n, const char *key, const char *value)
{
    ASSERT(*n + 1 < ENV_MAX);
    env[(*n)++] = xasprintf("%s=%s", key, value);
    env[*n] = NULL;
}

static void env_path(char **env, size_t *n)
{
    char exe[PATH_MAX] = "";
    const char *path = getenv("PATH");
    ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[MAX(len, (ssize_t)0)] = '\0';
    AUTO_FREE char *full =
        xasprintf("%s:%s", dirname(exe), path == NULL ? "/usr/local/bin:/usr/bin:/bin" : path);
    env_add(env, n, "PATH", full);
}

static void env_build(const struct supervisor *s, const struct job_host *h, char **env)
{
    size_t n = 0;
    const char *key;
    json_t *v;
    char addr[20];
    char name[16];
    AUTO_BUF struct buf all = BUF_INIT(HOSTS_MAX * 40);
    json_object_foreach(json_object_get(s->spec, "env"), key, v)
    {
        if (n < ENV_MAX - 16 && strcmp(key, "PATH") != 0) {
            env_add(env, &n, key, json_string_value(v));
        }
    }
    for (int k = 1; k <= s->hosts_n; k++) {
        container_address(s->seq, k, addr);
        buf_addf(&all, "%salgo-%d=%s", k == 1 ? "" : ",", k, addr);
    }
    container_address(s->seq, h->k, addr);
    (void)snprintf(name, sizeof name, "algo-%d", h->k);
    env_path(env, &n);
    env_add(env, &n, "HOME", h->ml);
    env_add(env, &n, "DROVER_ML_ROOT", h->ml);
    if (json_object_get(s->spec, "cluster") != NULL) {
        AUTO_FREE char *cache = xasprintf("%s/" CACHE_FOLDER, h->ml);
        env_add(env, &n, "SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY", cache);
    }
    env_add(env, &n, "DROVER_HOSTS", buf_cstr(&all));
    env_add(env, &n, "DROVER_HOST", name);
    env_add(env, &n, "DROVER_HOST_ADDRESS", addr);
}

/* In the child; only what is safe between fork and exec of a single-threaded process. */
static NORETURN void child_run(const struct job_host *h, pid_t parent, int out_fd, char **argv,
                               char **env)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(126); /* the parent died before the line above */
    }
    if (dup2(out_fd, 1) < 0 || dup2(out_fd, 2) < 0 || chdir(h->ml) != 0) {
        _exit(126);
    }
    (void)execvpe(argv[0], argv, env);
    int code = errno == ENOENT ? 127 : 126;
    (void)dprintf(2, "cannot execute '%s': %s\n", argv[0], strerror(errno));
    _exit(code);
}

bool container_spawn(struct supervisor *s, struct job_host *h, struct err *err)
{
    char *env[ENV_MAX] = {NULL};
    char *argv[ARGV_MAX] = {NULL};
    char log[PATH_MAX];
    int fds[2];
    size_t i;
    json_t *arg;
    if (!files_path(log, sizeof log, err, "%s/algo-%d/log", s->folder, h->k)) {
        return false;
    }
    h->log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (h->log_fd < 0 || pipe2(fds, O_CLOEXEC) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot open '%s'", log);
    }
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    json_array_foreach(json_object_get(s->spec, "argv"), i, arg)
    {
        if (i < ARGV_MAX - 1) {
            argv[i] = xstrdup(json_string_value(arg));
        }
    }
    ASSERT(argv[0] != NULL); /* an entry point has a word; "train" or arguments follow it */
    env_build(s, h, env);
    pid_t self = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        child_run(h, self, fds[1], argv, env);
    }
    int fork_errno = errno;
    for (i = 0; argv[i] != NULL; i++) {
        free(argv[i]);
    }
    for (i = 0; env[i] != NULL; i++) {
        free(env[i]);
    }
    (void)close(fds[1]);
    h->pipe_fd = fds[0];
    if (pid < 0) {
        return err_set_os(err, ERR_IO, fork_errno, "cannot fork");
    }
    (void)setpgid(pid, pid);
    h->pid = pid;
    return true;
}

static void log_add(struct job_host *h, const char *p, size_t n)
{
    AUTO_BUF struct buf out = BUF_INIT(1u << 20);
    long long ms = (long long)(clock_wall_us() / USEC_PER_MSEC);
    while (n > 0) {
        const char *nl = memchr(p, '\n', MIN(n, (size_t)LINE_BYTES_MAX));
        size_t len = nl != NULL ? (size_t)(nl - p) : MIN(n, (size_t)LINE_BYTES_MAX);
        if (!h->midline) {
            buf_addf(&out, "%lld ", ms);
        }
        buf_add(&out, p, len);
        h->midline = nl == NULL && len < LINE_BYTES_MAX;
        if (!h->midline) {
            buf_add_char(&out, '\n');
        }
        len += nl != NULL ? 1 : 0;
        p += len;
        n -= len;
    }
    if (h->log_bytes + (int64_t)out.n <= LOG_BYTES_MAX) {
        h->log_bytes += (int64_t)out.n;
        (void)!write(h->log_fd, out.p, out.n);
    }
}

void container_drain(struct job_host *h)
{
    char chunk[65536];
    while (h->pipe_fd >= 0) {
        ssize_t n = read(h->pipe_fd, chunk, sizeof chunk);
        if (n > 0) {
            log_add(h, chunk, (size_t)n);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        } else {
            fd_closep(&h->pipe_fd);
            h->pipe_fd = -1;
        }
    }
}

void container_finish(struct job_host *h)
{
    container_drain(h);
    if (h->midline) {
        (void)!write(h->log_fd, "\n", 1);
        h->midline = false;
    }
}

/* True when the process has a DROVER_ML_ROOT below the folder. */
static bool is_stray(const char *pid, const char *folder)
{
    char path[64];
    char want[PATH_MAX + 32];
    AUTO_BUF struct buf env = BUF_INIT(1u << 20);
    (void)snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    int n = snprintf(want, sizeof want, "DROVER_ML_ROOT=%s/", folder);
    files_read_head(path, 1u << 20, &env);
    return n > 0 && env.n > 0 &&
           memmem(env.p, env.n, want, MIN((size_t)n, sizeof want - 1)) != NULL;
}

void container_strays_kill(const char *folder)
{
    DIR *proc = opendir("/proc");
    const struct dirent *d;
    while (proc != NULL && (d = readdir(proc)) != NULL) {
        int64_t pid;
        struct err err = ERR_INIT;
        if (parse_i64(str_of(d->d_name), 2, INT32_MAX, &pid, &err) && pid != getpid() &&
            is_stray(d->d_name, folder)) {
            (void)kill((pid_t)pid, SIGKILL);
        }
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
}
