/* droverd: arguments, settings, ordered start, loop, ordered stop. */
#include "api/server/server.h"
#include "bridge.h"
#include "common/cleanup.h"
#include "common/config.h"
#include "common/creds.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/version.h"
#include "controller/controller.h"
#include "store/pg/migrate.h"
#include "store/pg/private_cluster.h"
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

struct daemon_settings {
    char *database_url, *listen, *token_file, *job_prefix, *role_arn, *worker_image, *bucket;
    char *prices_file, *log_level, *spool_dir;
    int64_t tick_interval_us, observe_interval_us, lease_length_us, lease_renew_us;
    int64_t signature_window_us, quota_interval_us;
    int64_t progress_interval_us;
    int64_t create_rate_per_minute, create_burst, api_threads, token_rate_per_s, token_burst;
    bool plain_http, secure_cookie;
};
#define AT(field) offsetof(struct daemon_settings, field)

static const struct config_row rows[] = {
    {"database_url", "DROVER_DATABASE_URL", CONFIG_STR, "", 0, 0, AT(database_url),
     "PostgreSQL to use; empty needs --private-db"},
    {"listen", "DROVER_LISTEN", CONFIG_STR, "127.0.0.1:8080", 0, 0, AT(listen),
     "address and port of the API and the dashboard; port 0: any"},
    {"plain_http", "DROVER_PLAIN_HTTP", CONFIG_BOOL, "false", 0, 0, AT(plain_http),
     "allow an address other than loopback without TLS in front"},
    {"secure_cookie", "DROVER_SECURE_COOKIE", CONFIG_BOOL, "false", 0, 0, AT(secure_cookie),
     "browsers reach us by https: mark the session cookie Secure"},
    {"token_file", "DROVER_TOKEN_FILE", CONFIG_STR, "drover.token", 0, 0, AT(token_file),
     "first admin token, made with mode 0600 when absent"},
    {"job_prefix", "DROVER_JOB_PREFIX", CONFIG_STR, "drover", 0, 0, AT(job_prefix),
     "first part of every job name; one installation, one prefix"},
    {"role_arn", "DROVER_ROLE_ARN", CONFIG_STR, "", 0, 0, AT(role_arn),
     "role of the jobs when a campaign file names none"},
    {"worker_image", "DROVER_WORKER_IMAGE", CONFIG_STR, "", 0, 0, AT(worker_image),
     "image of drover-worker, pinned to a digest"},
    {"bucket", "DROVER_BUCKET", CONFIG_STR, "", 0, 0, AT(bucket),
     "what {bucket} means when a campaign file does not say"},
    {"prices_file", "DROVER_PRICES_FILE", CONFIG_STR, "", 0, 0, AT(prices_file),
     "JSON {\"ml.m5.large\":\"0.115\"}: list prices in USD per hour"},
    {"spool_dir", "DROVER_SPOOL_DIR", CONFIG_STR, "/tmp", 0, 0, AT(spool_dir),
     "where big request bodies are spooled"},
    {"log_level", "DROVER_LOG_LEVEL", CONFIG_STR, "info", 0, 0, AT(log_level),
     "debug, info, warn or error"},
    {"tick_interval_us", "DROVER_TICK_INTERVAL_US", CONFIG_I64, "1000000", 10000, 60000000,
     AT(tick_interval_us), "look at the database at least this often"},
    {"observe_interval_us", "DROVER_OBSERVE_INTERVAL_US", CONFIG_I64, "10000000", 100000, 600000000,
     AT(observe_interval_us), "ListTrainingJobs this often while jobs live"},
    {"lease_length_us", "DROVER_LEASE_LENGTH_US", CONFIG_I64, "10000000", 500000, 120000000,
     AT(lease_length_us), "a frozen leader is replaced after this"},
    {"lease_renew_us", "DROVER_LEASE_RENEW_US", CONFIG_I64, "3000000", 100000, 60000000,
     AT(lease_renew_us), "the lease is renewed this often"},
    {"signature_window_us", "DROVER_SIGNATURE_WINDOW_US", CONFIG_I64, "900000000", 100000,
     3600000000, AT(signature_window_us), "how long AWS may honour a signature after signing"},
    {"quota_interval_us", "DROVER_QUOTA_INTERVAL_US", CONFIG_I64, "300000000", 100000, 86400000000,
     AT(quota_interval_us), "read Service Quotas this often"},
    {"progress_interval_us", "DROVER_PROGRESS_INTERVAL_US", CONFIG_I64, "60000000", 100000,
     3600000000, AT(progress_interval_us), "look at the progress of each running part this often"},
    {"create_rate_per_minute", "DROVER_CREATE_RATE_PER_MINUTE", CONFIG_I64, "60", 0, 6000000,
     AT(create_rate_per_minute),
     "CreateTrainingJob until Service Quotas tells its rate; 0: no limit, whatever it tells"},
    {"create_burst", "DROVER_CREATE_BURST", CONFIG_I64, "1", 1, 1000, AT(create_burst),
     "Creates that may be sent at once"},
    {"api_threads", "DROVER_API_THREADS", CONFIG_I64, "8", 2, 64, AT(api_threads),
     "threads that run API handlers"},
    {"token_rate_per_s", "DROVER_TOKEN_RATE_PER_S", CONFIG_I64, "200", 0, 1000000,
     AT(token_rate_per_s), "requests a second a token may make; 0: no limit"},
    {"token_burst", "DROVER_TOKEN_BURST", CONFIG_I64, "400", 1, 1000000, AT(token_burst),
     "requests a token may make at once"},
};

struct daemon_options {
    const char *config_file;
    const char *private_db;
    const char *port_file;
    bool plain_http, print_config, example;
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

static bool split_listen(char *listen, bool plain_http, char **ret_addr, uint16_t *ret_port,
                         struct err *err)
{
    char *colon = strrchr(listen, ':');
    int64_t port;
    if (colon == NULL || !parse_i64(str_of(colon + 1), 0, 65535, &port, err)) {
        return err_set(err, ERR_INVALID, "listen '%s': write ADDRESS:PORT", listen);
    }
    *colon = '\0';
    bool loopback = strncmp(listen, "127.", 4) == 0 || strcmp(listen, "localhost") == 0 ||
                    strcmp(listen, "::1") == 0 || strcmp(listen, "[::1]") == 0;
    if (!loopback && !plain_http) {
        return err_set(err, ERR_INVALID,
                       "listen '%s' is not a loopback address: put a TLS proxy in front and say so "
                       "with --plain-http",
                       listen);
    }
    *ret_addr = listen;
    *ret_port = (uint16_t)port;
    return true;
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

/* Everything between an open database and the end. */
static bool serve(struct daemon_settings *s, const struct daemon_options *o, const char *conninfo,
                  struct err *err)
{
    struct api_status status = {false};
    struct loop *loop = NULL;
    struct bridge *bridge = NULL;
    struct controller *controller = NULL;
    struct api *api = NULL;
    char *addr = NULL;
    uint16_t port = 0;
    char holder[128];
    char host[64] = "";
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(holder, sizeof holder, "%s/%d", host, (int)getpid());
    const struct controller_config cc = {.conninfo = conninfo,
                                         .holder = holder,
                                         .job_prefix = s->job_prefix,
                                         .prices_file = s->prices_file,
                                         .observe_interval_us = s->observe_interval_us,
                                         .tick_interval_us = s->tick_interval_us,
                                         .lease_length_us = s->lease_length_us,
                                         .lease_renew_us = s->lease_renew_us,
                                         .signature_window_us = s->signature_window_us,
                                         .quota_interval_us = s->quota_interval_us,
                                         .progress_interval_us = s->progress_interval_us,
                                         .create_rate = (double)s->create_rate_per_minute / 60.0,
                                         .create_burst = (double)s->create_burst};
    if (!split_listen(s->listen, s->plain_http || o->plain_http, &addr, &port, err)) {
        return false;
    }
    const struct api_config ac = {
        .listen = addr,
        .port = port,
        .conninfo = conninfo,
        .token_file = s->token_file,
        .defaults = {.role = s->role_arn[0] ? s->role_arn : NULL,
                     .worker_image = s->worker_image[0] ? s->worker_image : NULL,
                     .bucket = s->bucket[0] ? s->bucket : NULL},
        .status = &status,
        .version = DROVER_VERSION,
        .spool_dir = s->spool_dir,
        .threads = (int)s->api_threads,
        .rate_per_s = s->token_rate_per_s,
        .burst = s->token_burst,
        .secure_cookie = s->secure_cookie};
    bool ok = loop_new(&loop, err) && loop_signal(loop, SIGTERM, on_signal, loop, err) &&
              loop_signal(loop, SIGINT, on_signal, loop, err) && bridge_new(&bridge, err) &&
              controller_new(&cc, loop, bridge, &status, &controller, err) &&
              api_start(&ac, bridge, &api, err) && write_port(o->port_file, api_port(api), err);
    if (ok) {
        log_event(LOG_INFO, "droverd_started", LF_S("version", DROVER_VERSION),
                  LF_S("address", addr), LF_I("port", api_port(api)));
        loop_run(loop);
    }
    if (bridge != NULL) {
        bridge_close(bridge);
    }
    api_stop(api);
    controller_free(controller);
    bridge_free(bridge);
    loop_free(loop);
    return ok;
}

static bool run(struct daemon_settings *s, const struct daemon_options *o, bool only_migrate,
                struct err *err)
{
    char conninfo[1024];
    int applied = 0;
    (void)snprintf(conninfo, sizeof conninfo, "%s", s->database_url);
    if (o->private_db != NULL) {
        if (!private_cluster_start(o->private_db, conninfo, sizeof conninfo, err)) {
            return false;
        }
    } else if (conninfo[0] == '\0') {
        return err_set(err, ERR_INVALID,
                       "no database: set DROVER_DATABASE_URL or give --private-db DIR");
    }
    bool ok = migrate_run(conninfo, &applied, err);
    if (ok) {
        log_event(LOG_INFO, "schema_ready", LF_I("migrations_applied", applied));
        ok = only_migrate || serve(s, o, conninfo, err);
    }
    if (o->private_db != NULL) {
        struct err stop_err = ERR_INIT;
        if (!private_cluster_stop(o->private_db, PRIVATE_CLUSTER_FAST, &stop_err)) {
            log_event(LOG_WARN, "private_db_not_stopped", LF_ERR(&stop_err));
        }
    }
    return ok;
}

int main(int argc, char **argv)
{
    struct daemon_options o = {0};
    struct daemon_settings s = {0};
    struct faults faults = {0};
    struct err err = ERR_INIT;
    enum log_level level;
    int status;
    const struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core); /* a core would hold credentials */
    (void)signal(SIGPIPE, SIG_IGN);
    log_set_program("droverd");
    if (!read_options(argc, argv, &o, &status)) {
        return status;
    }
    if (!config_load(rows, ARRAY_LEN(rows), o.config_file, &s, &faults)) {
        print_faults(&faults);
        return 2;
    }
    if (o.print_config || o.example) {
        AUTO_BUF struct buf out = BUF_INIT(65536);
        if (o.example) {
            config_example(rows, ARRAY_LEN(rows), &out);
        } else {
            config_print(rows, ARRAY_LEN(rows), &s, &out);
        }
        (void)fputs(buf_cstr(&out), stdout);
        config_free(rows, ARRAY_LEN(rows), &s);
        return 0;
    }
    if (log_parse_level(s.log_level, &level)) {
        log_set_level(level);
    }
    bool only_migrate = optind < argc && strcmp(argv[optind], "migrate") == 0;
    bool ok = run(&s, &o, only_migrate, &err);
    if (!ok) {
        (void)fprintf(stderr, "droverd: %s\n", err.message);
    }
    config_free(rows, ARRAY_LEN(rows), &s);
    return ok ? 0 : err_code_exit(err.code);
}
