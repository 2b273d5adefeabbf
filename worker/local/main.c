/* drover-local: an AWS endpoint for one machine. Arguments, start in order, stop in order. */
#include "app.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/version.h"
#include "local/hosting/fleet.h"
#include "local/hosting/serve.h"
#include "local/http/server.h"
#include "local/jobs/files.h"
#include "local/jobs/process.h"
#include "local/jobs/supervise.h"
#include "local/sagemaker/job_clock.h"
#include "local/services/sqs_local.h"
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

struct local_options {
    const char *listen;
    const char *root;
    const char *config;
    const char *port_file;
};

static const char usage[] =
    "usage: drover-local --root DIR [--listen ADDR:PORT] [--config FILE] [--port-file FILE]\n"
    "\n"
    "An AWS endpoint for one machine: SageMaker training jobs and model servers run as processes, "
    "S3\n"
    "over folders (buckets are DIR/s3/<bucket>/), STS, SQS, Service Quotas, CloudWatch Logs.\n"
    "\n"
    "  --root DIR          everything is kept here and found again after a restart\n"
    "  --listen ADDR:PORT  default 127.0.0.1:4599; port 0 takes any free one\n"
    "  --config FILE       JSON: quotas, warm_quotas, spot_quotas, endpoint_quotas, "
    "account_quotas,\n"
    "                      prices, rates, images, credentials, credential_seconds, roles, "
    "instance_role,\n"
    "                      containers, web_identities, queues, delays, faults\n"
    "  --port-file FILE    write the port there when ready\n"
    "  --version, --help\n";

static int options_parse(int argc, char **argv, struct local_options *o)
{
    static const struct option longs[] = {{"listen", required_argument, NULL, 'l'},
                                          {"root", required_argument, NULL, 'r'},
                                          {"config", required_argument, NULL, 'c'},
                                          {"port-file", required_argument, NULL, 'p'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'v'},
                                          {NULL, 0, NULL, 0}};
    int c;
    *o = (struct local_options){.listen = "127.0.0.1:4599"};
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (c) {
        case 'l':
            o->listen = optarg;
            break;
        case 'r':
            o->root = optarg;
            break;
        case 'c':
            o->config = optarg;
            break;
        case 'p':
            o->port_file = optarg;
            break;
        case 'h':
            (void)fputs(usage, stdout);
            return 0;
        case 'v':
            (void)puts("drover-local " DROVER_VERSION);
            return 0;
        default:
            (void)fputs(usage, stderr);
            return 2;
        }
    }
    if (o->root == NULL || optind != argc) {
        (void)fputs(usage, stderr);
        return 2;
    }
    return -1;
}

static bool paths_set(struct app *app, const char *root, struct err *err)
{
    char full[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", app->exe, sizeof app->exe - 1);
    app->exe[MAX(n, (ssize_t)0)] = '\0';
    if (!files_mkdirs(root, err)) {
        return false;
    }
    if (realpath(root, full) == NULL) {
        return err_set_os(err, ERR_IO, errno, "cannot resolve '%s'", root);
    }
    return files_path(app->root, sizeof app->root, err, "%s", full);
}

static bool app_init(struct app *app, const struct local_options *o, struct err *err)
{
    app->state.fd = -1;
    app->wire.fd = -1;
    app->requests.fd = -1;
    (void)pthread_mutex_init(&app->mu, NULL);
    (void)pthread_mutex_init(&app->s3_mu, NULL);
    (void)pthread_cond_init(&app->forwards_over, NULL);
    jobs_init(&app->jobs);
    records_init(&app->records);
    faults_init(&app->faults);
    app->ticker = job_clock_new();
    if (!settings_load(o->config, &app->set, err)) {
        return false;
    }
    app->queues = queues_new(&app->set);
    return paths_set(app, o->root, err) && rates_init(&app->rates, &app->set, err) &&
           faults_set(&app->faults, app->set.faults, false, err) && journal_open(app, err) &&
           (!app->set.log_bodies || request_log_open(&app->requests, app->root, err));
}

static void app_done(struct app *app)
{
    job_clock_free(app->ticker);
    jobs_done(&app->jobs);
    json_decref(app->quota_requests);
    records_done(&app->records);
    faults_done(&app->faults);
    queues_free(app->queues);
    wire_close(&app->wire);
    request_log_close(&app->requests);
    journal_close(&app->state);
    settings_done(&app->set);
    (void)pthread_cond_destroy(&app->forwards_over);
    (void)pthread_mutex_destroy(&app->mu);
    (void)pthread_mutex_destroy(&app->s3_mu);
}

static bool announce(const struct app *app, const char *port_file, struct err *err)
{
    const char *port = strrchr(app->url, ':') + 1;
    if (port_file != NULL && !files_write(port_file, str_of(port), err)) {
        return false;
    }
    (void)printf("listening on %s\n", app->url);
    return fflush(stdout) == 0 || err_set_os(err, ERR_IO, errno, "cannot write to stdout");
}

static void jobs_kill(struct app *app)
{
    pthread_mutex_lock(&app->mu);
    for (size_t i = 0; i < app->jobs.live_n; i++) {
        process_kill(app, app->jobs.live[i]);
    }
    fleets_kill(app);
    pthread_mutex_unlock(&app->mu);
}

static int serve(const struct local_options *o)
{
    struct app *app = xcalloc(1, sizeof *app);
    struct server *server = NULL;
    struct err err = ERR_INIT;
    sigset_t set;
    int signo = 0;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGCHLD, SIG_IGN); /* supervisors report through files; nothing waits for them */
    bool ok = app_init(app, o, &err);
    ok = ok && server_start(app, o->listen, &server, &err) && job_clock_start(app, &err) &&
         announce(app, o->port_file, &err);
    if (ok) {
        (void)sigwait(&set, &signo);
        if (app->set.kill_jobs_on_exit) {
            jobs_kill(app);
        }
    } else {
        (void)fprintf(stderr, "drover-local: %s\n", err.message);
    }
    job_clock_stop(app);
    server_stop(server);
    app_done(app);
    free(app);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct local_options o;
    log_set_program("drover-local");
    memory_of_libraries();
    (void)umask(022);
    if (argc == 3 && strcmp(argv[1], "supervise") == 0) {
        return supervise_main(argv[2]);
    }
    if (argc == 3 && strcmp(argv[1], "serve") == 0) {
        return serve_main(argv[2]);
    }
    int status = options_parse(argc, argv, &o);
    return status >= 0 ? status : serve(&o);
}
