/* Starting and stopping the supervisor of a job: see process.h. */
#include "process.h"
#include "files.h"
#include "local/app.h"
#include "local/fsx/fsx_life.h"
#include "local/jobs/supervise.h"
#include "local/sagemaker/sagemaker_local.h"
#include "local/services/issued_keys.h"
#include "local/services/services.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

static json_t *image_argv(const struct app *app, const json_t *algorithm)
{
    const char *image = json_string_value(json_object_get(algorithm, "TrainingImage"));
    return ecr_image_argv(app, image);
}

/* What is executed: the image's program or ContainerEntrypoint, then ContainerArguments or "train".
 */
static json_t *job_argv(const struct app *app, const struct local_job *job)
{
    const json_t *algorithm = json_object_get(job->request, "AlgorithmSpecification");
    json_t *entry = json_object_get(algorithm, "ContainerEntrypoint");
    json_t *image = image_argv(app, algorithm);
    json_t *args = json_object_get(algorithm, "ContainerArguments");
    if (image == NULL) {
        return NULL;
    }
    json_t *argv = json_copy(entry != NULL ? entry : image);
    if (args != NULL) {
        (void)json_array_extend(argv, args);
    } else {
        (void)json_array_append_new(argv, json_string("train"));
    }
    return argv;
}

bool process_image_known(const struct app *app, const struct local_job *job, char *ret_reason)
{
    AUTO_JSON json_t *argv = job_argv(app, job);
    if (argv != NULL) {
        return true;
    }
    const json_t *algorithm = json_object_get(job->request, "AlgorithmSpecification");
    const char *image = json_string_value(json_object_get(algorithm, "TrainingImage"));
    (void)snprintf(ret_reason, JOB_REASON_MAX + 1,
                   "ClientError: Cannot pull the training image '%s': image not found. Please "
                   "ensure that the repository and the tag exist and that the role may read them.",
                   image == NULL ? "" : image);
    return false;
}

static json_t *job_env(const struct app *app, const struct local_job *job)
{
    json_t *env = json_copy(app->set.job_env);
    json_t *own = json_object_get(job->request, "Environment");
    char arn[256];
    if (own != NULL) {
        (void)json_object_update(env, own);
    }
    sagemaker_arn(app, job->name, arn);
    (void)json_object_set_new(env, "TRAINING_JOB_NAME", json_string(job->name));
    (void)json_object_set_new(env, "TRAINING_JOB_ARN", json_string(arn));
    (void)json_object_set_new(env, "AWS_REGION", json_string(app->set.region));
    (void)json_object_set_new(env, "AWS_DEFAULT_REGION", json_string(app->set.region));
    (void)json_object_set_new(env, "AWS_ENDPOINT_URL", json_string(app->url));
    /* The role's keys come from the container's endpoint, as in SageMaker. */
    char proof[33];
    AUTO_FREE char *uri = xasprintf("%s/v2/credentials/%s", app->url, job->name);
    issued_proof(&app->set, "job", job->name, proof);
    (void)json_object_set_new(env, "AWS_CONTAINER_CREDENTIALS_FULL_URI", json_string(uri));
    (void)json_object_set_new(env, "AWS_CONTAINER_AUTHORIZATION_TOKEN", json_string(proof));
    return env;
}

/* Folders of the file systems that the job mounts, or why it cannot. */
static void mounts_add(struct app *app, const struct local_job *job, json_t *spec)
{
    json_t *mounts = json_object();
    size_t i;
    const json_t *ch;
    json_array_foreach(json_object_get(job->request, "InputDataConfig"), i, ch)
    {
        const json_t *source =
            json_object_get(json_object_get(ch, "DataSource"), "FileSystemDataSource");
        const char *name = json_string_value(json_object_get(ch, "ChannelName"));
        char path[PATH_MAX];
        struct err err = ERR_INIT;
        if (source == NULL) {
            continue;
        }
        if (fsx_mount(app, source, path, &err)) {
            (void)json_object_set_new(mounts, name, json_string(path));
        } else {
            (void)json_object_set_new(spec, "mount_error", json_string(err.message));
        }
    }
    (void)json_object_set_new(spec, "mounts", mounts);
}

static json_t *job_spec(struct app *app, const struct local_job *job)
{
    const json_t *stop = json_object_get(job->request, "StoppingCondition");
    const json_t *max = json_object_get(stop, "MaxRuntimeInSeconds");
    int64_t max_s = max == NULL ? 86400 : json_integer_value(max);
    json_t *spec = json_object();
    (void)json_object_set_new(spec, "name", json_string(job->name));
    (void)json_object_set_new(spec, "root", json_string(app->root));
    (void)json_object_set_new(spec, "region", json_string(app->set.region));
    (void)json_object_set_new(spec, "seq", json_integer(job->seq % NETS_OF_JOBS));
    (void)json_object_set_new(spec, "hosts", json_integer(job->instances));
    /* MaxRuntimeInSeconds limits all runs together. */
    (void)json_object_set_new(spec, "started", json_integer(job->run_started - job->ran_us));
    (void)json_object_set_new(spec, "wait_until", json_integer(job->wait_until));
    (void)json_object_set_new(spec, "max_runtime_us", json_integer(max_s * USEC_PER_SEC));
    (void)json_object_set_new(spec, "stop_grace_us", json_integer(app->set.stop_grace_us));
    (void)json_object_set_new(spec, "stop_us", json_integer(app->set.stop_us));
    (void)json_object_set_new(spec, "download_us", json_integer(app->set.download_us));
    (void)json_object_set_new(spec, "upload_us", json_integer(app->set.upload_us));
    bool fails = job->inject == INJECT_FAILURE || job->inject == INJECT_SPOT;
    (void)json_object_set_new(spec, "interrupt", json_boolean(job->inject == INJECT_SPOT));
    (void)json_object_set_new(spec, "inject_after_us",
                              json_integer(fails ? job->inject_after_us : -1));
    (void)json_object_set_new(spec, "inject_reason", json_string(job->inject_reason));
    (void)json_object_set_new(spec, "argv", job_argv(app, job));
    (void)json_object_set_new(spec, "env", job_env(app, job));
    (void)json_object_set(spec, "request", job->request);
    mounts_add(app, job, spec);
    const json_t *res = json_object_get(job->request, "ResourceConfig");
    if (json_integer_value(json_object_get(res, "KeepAlivePeriodInSeconds")) > 0 ||
        job->pool.cluster[0] != '\0') {
        (void)json_object_set_new(
            spec, "cluster",
            json_string(job->pool.cluster[0] != '\0' ? job->pool.cluster : job->name));
    }
    if (app->set.denied_buckets != NULL) {
        (void)json_object_set(spec, "denied_buckets", app->set.denied_buckets);
    }
    return spec;
}

static bool job_file(const struct app *app, const struct local_job *job, const char *file,
                     char *out, struct err *err)
{
    return files_path(out, PATH_MAX, err, "%s/jobs/%s/%s", app->root, job->name, file);
}

bool process_spawn(const struct app *app, const char *word, const char *folder, struct err *err)
{
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t files;
    sigset_t none;
    sigset_t all;
    char exe[PATH_MAX];
    char dir[PATH_MAX];
    char log[PATH_MAX];
    char verb[16];
    if (!files_path(log, sizeof log, err, "%s/supervisor.log", folder)) {
        return false;
    }
    (void)snprintf(verb, sizeof verb, "%s", word);
    (void)snprintf(exe, sizeof exe, "%s", app->exe);
    (void)snprintf(dir, sizeof dir, "%s", folder);
    char *argv[] = {exe, verb, dir, NULL};
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSID);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    (void)posix_spawn_file_actions_addclosefrom_np(&files, 3);
    pid_t pid;
    int rc = posix_spawn(&pid, exe, &files, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    return rc == 0 || err_set_os(err, ERR_IO, rc, "cannot start '%s'", exe);
}

bool process_start(struct app *app, const struct local_job *job, struct err *err)
{
    char path[PATH_MAX];
    if (!job_file(app, job, "spec.json", path, err) || !files_mkparents(path, err)) {
        return false;
    }
    if (access(path, F_OK) != 0) {
        AUTO_JSON json_t *spec = job_spec(app, job);
        AUTO_FREE char *text = json_text(spec);
        if (!files_write(path, str_of(text), err)) {
            return false;
        }
    }
    if (job->phase == PHASE_STOPPING && !process_stop(app, job, err)) {
        return false;
    }
    *strrchr(path, '/') = '\0';
    return process_spawn(app, "supervise", path, err);
}

bool process_stop(const struct app *app, const struct local_job *job, struct err *err)
{
    char path[PATH_MAX];
    return job_file(app, job, "stop", path, err) && files_write(path, STR("stop\n"), err);
}

void process_marks_remove(const struct app *app, const struct local_job *job)
{
    static const char *const kinds[] = {"train", "upload", "end"};
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (files_path(path, sizeof path, &err, "%s/state/marks/%s.%s", app->root, job->name,
                       kinds[i])) {
            (void)unlink(path);
        }
    }
}

bool process_renew(const struct app *app, const struct local_job *job, struct err *err)
{
    static const char *const files[] = {"spec.json", "begun", "stop", "input_failed"};
    char path[PATH_MAX];
    if (process_alive(app, job)) {
        return err_set(err, ERR_CONFLICT, "the supervisor of '%s' is still there", job->name);
    }
    process_marks_remove(app, job);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (!job_file(app, job, files[i], path, err)) {
            return false;
        }
        (void)unlink(path);
    }
    for (int64_t k = 1; k <= job->instances; k++) {
        if (!files_path(path, sizeof path, err, "%s/jobs/%s/algo-%lld/ml", app->root, job->name,
                        (long long)k)) {
            return false;
        }
        files_remove_tree(path);
    }
    return true;
}

void process_kill(const struct app *app, const struct local_job *job)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    if (job_file(app, job, "kill", path, &err)) {
        (void)!files_write(path, STR("kill\n"), &err);
    }
}

bool process_alive(const struct app *app, const struct local_job *job)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    if (!job_file(app, job, "lock", path, &err)) {
        return false;
    }
    return process_is_locked(path);
}

bool process_is_locked(const char *path)
{
    AUTO_FD int fd = open(path, O_RDWR | O_CLOEXEC);
    struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fd >= 0 && fcntl(fd, F_GETLK, &fl) == 0 && fl.l_type != F_UNLCK;
}
