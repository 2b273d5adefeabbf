/* One connection: opens it with the settings of its role, notices its loss, listens. */
#include "connection.h"
#include "common/clock.h"
#include "common/log.h"
#include "connection_private.h"
#include "queries.h"
#include <libpq-fe.h>
#include <poll.h>

#define CONNECT_TIMEOUT_S   "3"
#define TCP_USER_TIMEOUT_MS "3000"
#define WAIT_MARGIN_US      (5 * USEC_PER_SEC)

struct role_row {
    const char *application;
    const char *statement_timeout;
    const char *idle_timeout;
    const char *lock_timeout;
    const char *plan_mode; /* the leader runs the same few queries for ever: plan each once */
    int64_t wait_us;
};
static const struct role_row roles[] = {
    [STORE_LEADER] = {"drover leader", "1s", "2s", "1s", "force_generic_plan",
                      10 * USEC_PER_SEC + WAIT_MARGIN_US},
    [STORE_INPUTS] = {"drover inputs", "1s", "2s", "1s", "force_generic_plan",
                      1 * USEC_PER_SEC + WAIT_MARGIN_US},
    [STORE_API] = {"drover api", "5s", "10s", "2s", "auto", 5 * USEC_PER_SEC + WAIT_MARGIN_US},
    [STORE_LISTEN] = {"drover listen", "5s", "10s", "2s", "auto",
                      5 * USEC_PER_SEC + WAIT_MARGIN_US},
    [STORE_LISTEN_WANTED] = {"drover listen", "5s", "10s", "2s", "auto",
                             5 * USEC_PER_SEC + WAIT_MARGIN_US},
    [STORE_ADMIN] = {"drover admin", "0", "0", "60s", "auto", 600 * USEC_PER_SEC},
    [STORE_MAINTENANCE] = {"drover maintenance", "1s", "2s", "50ms", "auto",
                           1 * USEC_PER_SEC + WAIT_MARGIN_US},
    [STORE_NOTICES] = {"drover notices", "5s", "10s", "1s", "auto",
                       5 * USEC_PER_SEC + WAIT_MARGIN_US},
};

static bool session_set(struct store *s, struct err *err)
{
    const struct role_row *r = &roles[s->role];
    const char *names[] = {"timezone",
                           "statement_timeout",
                           "idle_in_transaction_session_timeout",
                           "lock_timeout",
                           "plan_cache_mode",
                           "default_transaction_isolation",
                           "standard_conforming_strings",
                           "client_min_messages",
                           "jit"};
    const char *values[] = {
        "UTC",
        r->statement_timeout,
        r->idle_timeout,
        r->lock_timeout,
        r->plan_mode,
        "read committed",
        "on",
        "warning",
        "off"}; /* our statements are short: JIT compilation costs more than it saves */
    _Static_assert(ARRAY_LEN(names) == ARRAY_LEN(values), "a value a name");
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text_array(&p, names, ARRAY_LEN(names));
    param_text_array(&p, values, ARRAY_LEN(values));
    return store_run(s, QUERY(SESSION_SET), &p, NULL, err);
}

static bool setting_set(struct store *s, const char *name, const char *value, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text_array(&p, &name, 1);
    param_text_array(&p, &value, 1);
    return store_run(s, QUERY(SESSION_SET), &p, NULL, err);
}

bool store_lock_wait(struct store *s, int64_t wait_us, struct err *err)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%lldms", (long long)(wait_us / USEC_PER_MSEC));
    return setting_set(s, "lock_timeout", text, err);
}

bool store_statement_limit(struct store *s, int64_t limit_us, struct err *err)
{
    char text[32];
    store_set_wait(s, limit_us > 0 ? limit_us + WAIT_MARGIN_US : 0);
    (void)snprintf(text, sizeof text, "%lldms", (long long)(limit_us / USEC_PER_MSEC));
    return setting_set(s, "statement_timeout",
                       limit_us > 0 ? text : roles[s->role].statement_timeout, err);
}

static bool connected(struct store *s, struct err *err)
{
    if (PQstatus(s->conn) == CONNECTION_OK) {
        return true;
    }
    struct str m = str_trim(str_of(PQerrorMessage(s->conn)));
    return err_set(err, ERR_UNAVAILABLE, "cannot connect to the database: " STR_FMT, STR_ARG(m));
}

/* Notices are for interactive use; everything relevant is an error. */
static void drop_notice(void *ctx, const char *message)
{
    (void)ctx;
    (void)message;
}

static bool listen_on(struct store *s, struct err *err)
{
    bool events = s->role == STORE_LISTEN;
    return !(events || s->role == STORE_LISTEN_WANTED) ||
           (store_plain(s, "LISTEN " STORE_CHANNEL_WANTED, err) &&
            (!events || store_plain(s, "LISTEN " STORE_CHANNEL_EVENTS, err)));
}

bool store_open(const char *conninfo, enum store_role role, struct store **ret, struct err *err)
{
    ASSERT((size_t)role < ARRAY_LEN(roles));
    const char *keys[] = {"dbname",
                          "client_encoding",
                          "fallback_application_name",
                          "connect_timeout",
                          "tcp_user_timeout",
                          "keepalives_idle",
                          "keepalives_interval",
                          "keepalives_count",
                          NULL};
    const char *values[] = {
        conninfo, "UTF8", roles[role].application, CONNECT_TIMEOUT_S, TCP_USER_TIMEOUT_MS, "5", "2",
        "3",      NULL};
    struct store *s = xcalloc(1, sizeof *s);
    s->magic = STORE_MAGIC;
    s->role = role;
    s->wait_us = roles[role].wait_us;
    s->conn = PQconnectdbParams(keys, values, 1);
    if (s->conn == NULL) {
        out_of_memory(); /* the only reason to get none */
    }
    (void)PQsetNoticeProcessor(s->conn, drop_notice, NULL);
    if (!connected(s, err) || !session_set(s, err) || !listen_on(s, err)) {
        store_close(s);
        return false;
    }
    *ret = s;
    return true;
}

bool store_wait(const char *conninfo, int64_t wait_us, struct err *err)
{
    const char *keys[] = {"dbname", "connect_timeout", NULL};
    const char *values[] = {conninfo, CONNECT_TIMEOUT_S, NULL};
    int64_t began_us = clock_mono_us(), said_us = 0, waited_us = 0;
    int pause_ms = 50;
    PGPing ping;
    while (ping = PQpingParams(keys, values, 1),
           ping == PQPING_NO_RESPONSE || ping == PQPING_REJECT) {
        waited_us = clock_mono_us() - began_us;
        const char *why = ping == PQPING_REJECT ? "it is starting up or shutting down"
                                                : "nothing answers at its address";
        if (waited_us >= wait_us) {
            return err_set(err, ERR_UNAVAILABLE, "no database for %lld s: %s",
                           (long long)(waited_us / USEC_PER_SEC), why);
        }
        if (said_us == 0 || waited_us >= 2 * said_us) { /* after 0, 1, 2, 4 s and so on */
            log_event(LOG_WARN, "database_waited", LF_S("reason", why),
                      LF_I("waited_us", waited_us));
            said_us = MAX(waited_us, USEC_PER_SEC / 2);
        }
        (void)poll(NULL, 0, pause_ms);
        pause_ms = MIN(2 * pause_ms, 1000);
    }
    return true;
}

void store_close(struct store *s)
{
    if (s == NULL) {
        return;
    }
    ASSERT(s->magic == STORE_MAGIC);
    PQfinish(s->conn);
    for (size_t i = 0; i < PREPARED_SLOTS; i++) {
        free(s->prepared[i]);
    }
    s->magic = 0;
    free(s);
}

bool store_alive(const struct store *s)
{
    return !s->dead;
}

void store_set_wait(struct store *s, int64_t wait_us)
{
    s->wait_us = wait_us > 0 ? wait_us : roles[s->role].wait_us;
}

int store_fd(const struct store *s)
{
    return PQsocket(s->conn);
}

bool store_read_idle(struct store *s)
{
    struct pollfd p = {.fd = PQsocket(s->conn), .events = POLLIN};
    /* read a final message before the end of the stream */
    while (!s->dead && poll(&p, 1, 0) != 0) {
        s->dead = PQconsumeInput(s->conn) == 0 || PQstatus(s->conn) != CONNECTION_OK;
    }
    return !s->dead;
}

bool store_notified(struct store *s, bool *ret_any, struct err *err)
{
    ASSERT(s->role == STORE_LISTEN || s->role == STORE_LISTEN_WANTED);
    if (!store_read_idle(s)) {
        return err_set(err, ERR_UNAVAILABLE, "database: listening connection lost");
    }
    bool any = false;
    for (PGnotify *n = PQnotifies(s->conn); n != NULL; n = PQnotifies(s->conn)) {
        PQfreemem(n);
        any = true;
    }
    *ret_any = any;
    return true;
}
