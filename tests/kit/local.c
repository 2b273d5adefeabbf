/* See local.h. */
#include "local.h"
#include "common/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOCAL_PROGRAM "build/bin/drover-local"
#define KEEP_VARIABLE "DROVER_REQUESTS"

static void write_config(const struct local *l, const char *config, char *path, size_t path_n)
{
    (void)snprintf(path, path_n, "%s/config.json", l->root);
    FILE *f = fopen(path, "we");
    ASSERT(f != NULL);
    const char *members = config != NULL ? config + 1 : "}";
    const char *keep = getenv(KEEP_VARIABLE) == NULL ? "" : "\"log_bodies\":true";
    bool comma = keep[0] != '\0' && members[strspn(members, " \n")] != '}';
    ASSERT(config == NULL || config[0] == '{');
    ASSERT(fprintf(f, "{%s%s%s", keep, comma ? "," : "", members) >= 0);
    ASSERT(fclose(f) == 0);
}

void local_start(struct local *l, const char *config)
{
    *l = (struct local){.root = "/tmp/drover-test-local-XXXXXX"};
    ASSERT(mkdtemp(l->root) != NULL);
    char config_path[96];
    write_config(l, config, config_path, sizeof config_path);
    int out[2];
    ASSERT(pipe2(out, O_CLOEXEC) == 0);
    pid_t parent = getpid();
    l->pid = fork();
    ASSERT(l->pid >= 0);
    if (l->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* never outlive the test */
        if (getppid() == parent && dup2(out[1], 1) == 1) {
            (void)execl(LOCAL_PROGRAM, "drover-local", "--root", l->root, "--listen", "127.0.0.1:0",
                        "--config", config_path, (char *)NULL);
        }
        _exit(127);
    }
    (void)close(out[1]);
    AUTO_FILE FILE *f = fdopen(out[0], "r");
    ASSERT(f != NULL);
    char line[256];
    do {
        if (fgets(line, sizeof line, f) == NULL) {
            (void)fprintf(stderr, "%s did not start\n", LOCAL_PROGRAM);
            abort();
        }
        l->url = strstr(line, "http://");
    } while (l->url == NULL);
    l->url = xstrndup(l->url, strcspn(l->url, " \r\n"));
    (void)setenv("AWS_ENDPOINT_URL", l->url, 1);
    (void)unsetenv("AWS_ENDPOINT_URL_S3");
    (void)setenv("AWS_REGION", "us-east-1", 1);
    (void)setenv("AWS_ACCESS_KEY_ID", "AKIDLOCAL", 1);
    (void)setenv("AWS_SECRET_ACCESS_KEY", "local-secret", 1);
    (void)unsetenv("AWS_SESSION_TOKEN");
}

void local_stop(struct local *l)
{
    (void)kill(l->pid, SIGTERM);
    while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    const char *keep = getenv(KEEP_VARIABLE);
    AUTO_FREE char *copy = keep == NULL ? xstrdup("")
                                        : xasprintf("cp '%s/requests.log' '%s/%s.log' && ", l->root,
                                                    keep, l->root + strlen("/tmp/"));
    AUTO_FREE char *command = xasprintf("%srm -rf '%s'", copy, l->root);
    ASSERT(strncmp(l->root, "/tmp/drover-test-local-", 23) == 0);
    ASSERT(system(command) == 0);
    free(l->url);
}

void local_bucket(const struct local *l, const char *bucket)
{
    AUTO_FREE char *parent = xasprintf("%s/s3", l->root);
    AUTO_FREE char *path = xasprintf("%s/s3/%s", l->root, bucket);
    ASSERT(mkdir(parent, 0777) == 0 || errno == EEXIST);
    ASSERT(mkdir(path, 0777) == 0 || errno == EEXIST);
}
