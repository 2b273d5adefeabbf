/* droverd: arguments, settings, ordered start, loop, ordered stop. */
#include "api/handlers/listing_thread.h"
#include "api/server/listen.h"
#include "api/server/server.h"
#include "bridge.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/memory.h"
#include "common/service.h"
#include "common/token_path.h"
#include "common/version.h"
#include "controller/controller.h"
#include "notices/notices.h"
#include "settings.h"
#include "store/pg/connection.h"
#include "store/pg/migrate.h"
#include "store/pg/private_cluster.h"
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

struct daemon_options {
    const char *config_file;
    const char *private_db;
    const char *port_file;
    bool plain_http, print_config, example;
    struct service_manager service;
};

static const char usage[] =
    "usage: droverd [--config FILE] [--private-db DIR] [--plain-http] [--port-file FILE]\n"
    "       droverd migrate | --print-config | --example-config | --version | --help\n"
    "\n"
    "examples:\n"
    "  droverd --private-db /var/lib/drover/db        a PostgreSQL of its own, made and started "
    "here\n"
    "  DROVER_DATABASE_URL=postgresql://drover@db/drover droverd\n"
    "\n"
    "Settings come from the file and the environment; droverd --print-config shows them.\n";

static bool read_options(int argc, char **argv, struct daemon_options *ret, int *ret_exit)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, 'c'},
        {"private-db", required_argument, NULL, 'd'},
        {"port-file", required_argument, NULL, 'p'},
        {"plain-http", no_argument, NULL, 'i'},
        {"print-config", no_argument, NULL, 'P'},
        {"example-config", no_argument, NULL, 'E'},
        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *ret_exit = 0;
    for (int o; (o = getopt_long(argc, argv, "c:h", longs, NULL)) != -1;) {
        if (o == 'c') {
            ret->config_file = optarg;
        } else if (o == 'd') {
            ret->private_db = optarg;
        } else if (o == 'p') {
            ret->port_file = optarg;
        } else if (o == 'i') {
            ret->plain_http = true;
        } else if (o == 'P') {
            ret->print_config = true;
        } else if (o == 'E') {
            ret->example = true;
        } else if (o == 'v') {
            (void)puts("droverd " DROVER_VERSION);
            return false;
        } else {
            (void)fputs(usage, o == 'h' ? stdout : stderr);
            *ret_exit = o == 'h' ? 0 : 2;
            return false;
        }
    }
    return true;
}

static void print_faults(const struct faults *f)
{
    for (int i = 0; i < f->n; i++) {
        const struct fault *at = &f->at[i];
        (void)fprintf(stderr, "droverd: %s: %s%s%s\n", at->pointer, at->message,
                      at->hint[0] != '\0' ? "; " : "", at->hint);
    }
}

static bool read_listen(const struct daemon_settings *s, bool plain_http,
                        struct listen_address *ret, struct err *err)
{
    if (!listen_parse(s->listen, ret, err)) {
        return false;
    }
    return ret->loopback || plain_http ||
           err_set(
               err, ERR_INVALID,
               "listen '%s' is not a loopback address: put a TLS proxy in front and say so with "
               "--plain-http",
               s->listen);
}

static void on_signal(void *ctx, int signo)
{
    log_event(LOG_INFO, "stop_asked", LF_I("signal", signo));
    loop_stop(ctx);
}

static bool write_port(const char *file, uint16_t port, struct err *err)
{
    AUTO_FILE FILE *f = file != NULL ? fopen(file, "we") : NULL;
    if (file != NULL && (f == NULL || fprintf(f, "%u\n", (unsigned)port) < 0)) {
        return err_set(err, ERR_IO, "cannot write '%s'", file);
    }
    return true;
}

struct watchdog {
    struct loop_timer *timer;
    const struct service_manager *service;
};

static void on_watchdog(void *ctx)
{
    struct watchdog *w = ctx;
    service_notify(w->service, "WATCHDOG=1");
    loop_timer_set(w->timer, w->service->watchdog_us);
}

/* The loop to its end. systemd hears when it begins and ends, and that it turns. */
static void run_watched(struct loop *loop, const struct service_manager *service)
{
    struct watchdog w = {.service = service};
    w.timer = loop_timer_new(loop, on_watchdog, &w);
    loop_timer_set(w.timer, service->watchdog_us > 0 ? 0 : -1);
    service_notify(service, "READY=1");
    loop_run(loop);
    service_notify(service, "STOPPING=1");
    loop_timer_free(w.timer);
}

/* credentials: borrowed. */
static struct mail_server mail_server_of(const struct daemon_settings *s, const char *credentials)
{
    return (struct mail_server){.url = s->smtp_url,
                                .from = s->smtp_from,
                                .credentials = credentials,
                                .ca_file = s->smtp_ca_file};
}

/* conninfo, mail: borrowed. */
static bool start_notices(const struct daemon_settings *s, const char *conninfo,
                          const struct mail_server *mail, const struct api_status *status,
                          struct notices **ret, struct err *err)
{
    const struct notices_config cfg = {.conninfo = conninfo,
                                       .status = status,
                                       .allow = settings_webhook_allow(s),
                                       .collect_us = s->notice_collect_us,
                                       .stuck_us = s->notice_stuck_us,
                                       .retry_us = s->webhook_retry_us,
                                       .timeout_us = s->webhook_timeout_us,
                                       .user_agent = "droverd/" DROVER_VERSION,
                                       .mail = *mail,
                                       .public_url = s->public_url};
    return notices_start(&cfg, ret, err);
}

/* conninfo, holder: borrowed. */
static struct controller_config controller_config_of(const struct daemon_settings *s,
                                                     const char *conninfo, const char *holder)
{
    return (struct controller_config){.conninfo = conninfo,
                                      .holder = holder,
                                      .job_prefix = s->job_prefix,
                                      .bucket_kms_key = s->bucket_kms_key,
                                      .prices_file = s->prices_file,
                                      .price_interval_us = s->price_interval_us,
                                      .paid_ppm = settings_paid_ppm(s),
                                      .observe_interval_us = s->observe_interval_us,
                                      .events_queue_url = s->events_queue_url,
                                      .tick_interval_us = s->tick_interval_us,
                                      .lease_length_us = s->lease_length_us,
                                      .lease_renew_us = s->lease_renew_us,
                                      .signature_window_us = s->signature_window_us,
                                      .quota_interval_us = s->quota_interval_us,
                                      .progress_interval_us = s->progress_interval_us,
                                      .invocation_interval_us = s->invocation_interval_us,
                                      .invocation_delay_us = s->invocation_delay_us,
                                      .archive_after_days = s->archive_after_days,
                                      .create_rate = (double)s->create_rate_per_minute / 60.0,
                                      .create_burst = (double)s->create_burst};
}

/* Everything between an open database and the end. */
static bool serve(const struct daemon_settings *s, const struct daemon_options *o,
                  const struct listen_address *listen, const char *conninfo, struct err *err)
{
    struct api_status status = {false};
    struct loop *loop = NULL;
    struct bridge *bridge = NULL;
    struct controller *controller = NULL;
    struct api *api = NULL;
    struct notices *notices = NULL;
    struct listing_thread *listings = NULL;
    char holder[128], host[64] = "";
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(holder, sizeof holder, "%s/%d", host, (int)getpid());
    const struct controller_config cc = controller_config_of(s, conninfo, holder);
    AUTO_FREE char *token_file =
        s->token_file[0] != '\0' ? xstrdup(s->token_file) : token_path_default();
    AUTO_FREE char *client_secret = NULL;
    AUTO_FREE char *mail_credentials = NULL;
    AUTO_FREE char *redirect_url = xasprintf("%s/login/oidc/callback", s->public_url);
    if (!(settings_read_secret(s->oidc_client_secret_file, &client_secret, err) ||
          err_wrap(err, "oidc_client_secret_file")) ||
        !settings_mail(s, &mail_credentials, err)) {
        return false;
    }
    struct api_config ac = {
        .listen = listen,
        .conninfo = conninfo,
        .token_file = token_file,
        .defaults = {.role = s->role_arn[0] ? s->role_arn : NULL,
                     .worker_image = s->worker_image[0] ? s->worker_image : NULL,
                     .bucket = s->bucket[0] ? s->bucket : NULL,
                     .bucket_kms_key = s->bucket_kms_key[0] ? s->bucket_kms_key : NULL},
        .status = &status,
        .version = DROVER_VERSION,
        .spool_dir = s->spool_dir,
        .threads = (int)s->api_threads,
        .rate_per_s = s->token_rate_per_s,
        .burst = s->token_burst,
        .trusted_proxies = s->trusted_proxies,
        .streams_per_token = (int)s->streams_per_token,
        .streams_per_address = (int)s->streams_per_address,
        .secure_cookie = s->secure_cookie || strncmp(s->public_url, "https:", 6) == 0,
        .mail = mail_server_of(s, mail_credentials),
        .sign_in = settings_sign_in(s, redirect_url, client_secret)};
    bool ok = loop_new(&loop, err) && loop_signal(loop, SIGTERM, on_signal, loop, err) &&
              loop_signal(loop, SIGINT, on_signal, loop, err) && bridge_new(&bridge, err) &&
              controller_new(&cc, loop, bridge, &status, &controller, err);
    if (ok) {
        ac.defaults.region = controller_region(controller);
    }
    ok = ok && api_start(&ac, bridge, &api, err) &&
         start_notices(s, conninfo, &ac.mail, &status, &notices, err) &&
         listing_thread_start(conninfo, &status, bridge, &listings, err) &&
         write_port(o->port_file, api_port(api), err);
    if (ok) {
        log_event(LOG_INFO, "droverd_started", LF_S("version", DROVER_VERSION),
                  LF_S("address", s->listen), LF_I("port", api_port(api)),
                  LF_S("token_file", token_file));
        run_watched(loop, &o->service);
    }
    if (bridge != NULL) {
        bridge_close(bridge);
    }
    notices_stop(notices);
    listing_thread_stop(listings);
    api_stop(api);
    controller_free(controller);
    bridge_free(bridge);
    loop_free(loop);
    return ok;
}

static bool use_database(const struct daemon_settings *s, const struct daemon_options *o,
                         char *conninfo, size_t size, struct err *err)
{
    int applied = 0;
    if (o->private_db != NULL) {
        if (!private_cluster_start(o->private_db, conninfo, size, err)) {
            return false;
        }
    } else if (s->database_url[0] == '\0') {
        return err_set(err, ERR_INVALID,
                       "no database: set DROVER_DATABASE_URL or give --private-db DIR");
    } else {
        (void)snprintf(conninfo, size, "%s", s->database_url);
        if (!store_wait(conninfo, s->database_wait_us, err)) {
            return false;
        }
    }
    if (!migrate_run(conninfo, &applied, err)) {
        return false;
    }
    log_event(LOG_INFO, "schema_ready", LF_I("migrations_applied", applied));
    return true;
}

static bool run(const struct daemon_settings *s, const struct daemon_options *o, bool only_migrate,
                struct err *err)
{
    char conninfo[1024];
    struct listen_address listen;
    AUTO_FD int owner = -1;
    if (!settings_check(s, err) || !read_listen(s, s->plain_http || o->plain_http, &listen, err) ||
        (o->private_db != NULL && !private_cluster_own(o->private_db, &owner, err))) {
        return false;
    }
    bool ok = use_database(s, o, conninfo, sizeof conninfo, err) &&
              (only_migrate || serve(s, o, &listen, conninfo, err));
    if (o->private_db != NULL) {
        struct err stop_err = ERR_INIT;
        if (!private_cluster_stop(o->private_db, PRIVATE_CLUSTER_FAST, &stop_err)) {
            log_event(LOG_WARN, "private_db_not_stopped", LF_ERR(&stop_err));
        }
    }
    return ok;
}

/* "migrate" or nothing. */
static bool read_command(int argc, char **argv, bool *ret_migrate)
{
    const char *word = optind < argc ? argv[optind] : NULL;
    *ret_migrate = word != NULL && strcmp(word, "migrate") == 0;
    if (word == NULL || (*ret_migrate && optind + 1 == argc)) {
        return true;
    }
    if (*ret_migrate) {
        (void)fprintf(stderr, "droverd: migrate takes no argument, but '%.40s' follows\n%s",
                      argv[optind + 1], usage);
    } else {
        (void)fprintf(stderr, "droverd: there is no command '%.40s'; the only one is migrate\n%s",
                      word, usage);
    }
    return false;
}

int main(int argc, char **argv)
{
    struct daemon_options o = {0};
    struct daemon_settings s = {0};
    struct faults faults = {0};
    struct err err = ERR_INIT;
    enum log_level level;
    int status;
    bool only_migrate;
    const struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core); /* a core would hold credentials */
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) ==
        0) { /* a connection is a descriptor, and the usual 1,024 are few */
        files.rlim_cur = MIN(files.rlim_max, 65536);
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    log_set_program("droverd");
    memory_of_libraries();
    service_begin(&o.service);
    if (!read_options(argc, argv, &o, &status)) {
        return status;
    }
    if (!read_command(argc, argv, &only_migrate)) {
        return 2;
    }
    if (!config_load(settings_rows, settings_rows_n, o.config_file, &s, &faults)) {
        print_faults(&faults);
        return 2;
    }
    if (o.print_config || o.example) {
        AUTO_BUF struct buf out = BUF_INIT(65536);
        if (o.example) {
            config_example(settings_rows, settings_rows_n, &out);
        } else {
            config_print(settings_rows, settings_rows_n, &s, &out);
        }
        (void)fputs(buf_cstr(&out), stdout);
        config_free(settings_rows, settings_rows_n, &s);
        return 0;
    }
    if (log_parse_level(s.log_level, &level)) {
        log_set_level(level);
    }
    bool ok = log_start_writer(&err) && run(&s, &o, only_migrate, &err);
    log_stop_writer();
    if (!ok) {
        (void)fprintf(stderr, "droverd: %s\n", err.message);
    }
    config_free(settings_rows, settings_rows_n, &s);
    return ok ? 0 : MAX(1, err_code_exit(err.code));
}
