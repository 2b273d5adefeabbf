/* Blocking API calls, repeated with the same idempotency key while the server is unreachable or
 * busy, and error messages for refused calls. */
#include "client.h"
#include "cli.h"
#include "common/clock.h"
#include "common/http.h"
#include "common/rng.h"
#include "common/token_path.h"
#include "contexts.h"
#include "interrupt.h"
#include "print.h"
#include "table.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define PATH_BYTES_MAX 2048

#define REPLY_MAX      (128 * 1024 * 1024)
#define HEADERS_MAX    (64 * 1024)
#define TRY_FOR_US     (20 * USEC_PER_SEC)
#define TRY_PAUSE_MS   300
#define TOKEN_FILE_MAX 512

struct client {
    char *url;
    char token[TOKEN_FILE_MAX];
};

/* Of the file that DROVER_TOKEN_FILE names, or of the one droverd made. */
static void token_read(struct client *c)
{
    AUTO_FREE char *file = token_path_find();
    AUTO_FD int fd = open(file, O_RDONLY | O_CLOEXEC);
    char text[TOKEN_FILE_MAX] = "";
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    struct str token = str_trim((struct str){text, n > 0 ? (size_t)n : 0});
    memcpy(c->token, token.p, token.n);
    c->token[token.n] = '\0';
}

bool client_check_url(const char *url, struct err *err)
{
    bool web = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    const char *host = web ? strstr(url, "://") + 3 : "";
    for (const char *c = url; *c != '\0'; c++) {
        web = web && *c > ' ' && *c < 0x7f;
    }
    return (web && host[0] != '\0' && host[0] != '/') ||
           err_set(err, ERR_INVALID,
                   "the address must begin with http:// or https:// and a host, it is '%.80s'",
                   url);
}

struct client *client_of(const char *url, const char *token)
{
    struct client *c = xcalloc(1, sizeof *c);
    size_t n = strlen(url);
    while (n > 0 && url[n - 1] == '/') {
        n--;
    }
    c->url = xstrndup(url, n);
    (void)snprintf(c->token, sizeof c->token, "%s", token);
    return c;
}

/* What drover login wrote of that name, else of the one in use; *ret NULL: nothing. */
static bool context_find(const json_t *v, const char *name, const json_t **ret, struct err *err)
{
    *ret =
        name == NULL ? contexts_current(v) : json_object_get(json_object_get(v, "contexts"), name);
    return name == NULL || *ret != NULL ||
           err_set(err, ERR_NOT_FOUND, "there is no context '%.80s'", name);
}

bool client_new(struct client **ret, const char *context, struct err *err)
{
    const char *url = getenv("DROVER_URL"), *file = getenv("DROVER_TOKEN_FILE");
    AUTO_JSON json_t *v = NULL;
    const json_t *found = NULL;
    bool named = context == NULL && url != NULL && url[0] != '\0';
    if (!named && (!contexts_read(&v, err) || !context_find(v, context, &found, err))) {
        return false;
    }
    url = named ? url : found != NULL ? jstr(found, "url") : "http://127.0.0.1:8080";
    if (!client_check_url(url, err)) {
        return false;
    }
    *ret = client_of(url, jstr(found, "token"));
    if (found == NULL || (context == NULL && file != NULL && file[0] != '\0')) {
        token_read(*ret);
    }
    return true;
}

void client_free(struct client *c)
{
    if (c != NULL) {
        free(c->url);
        free(c);
    }
}

const char *client_url(const struct client *c)
{
    return c->url;
}

void reply_done(struct client_reply *r)
{
    json_decref(r->json);
    buf_done(&r->text);
    *r = (struct client_reply){0};
}

void key_random(char ret[static 37])
{
    uint8_t b[16];
    rng_secret(b, sizeof b);
    char hex[33];
    str_hex(b, sizeof b, hex);
    (void)snprintf(ret, 37, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
                   hex + 20);
}

struct client_fetch {
    const struct client_call *call;
    struct http_reply reply; /* owned */
    bool done;
};

static void on_fetched(void *ctx, const struct http_reply *reply)
{
    struct client_fetch *f = ctx;
    f->reply = *reply;
    f->reply.headers = (struct buf)BUF_INIT(HEADERS_MAX);
    f->reply.body = (struct buf)BUF_INIT(REPLY_MAX);
    buf_add_str(&f->reply.headers, buf_str(&reply->headers));
    buf_add_str(&f->reply.body, buf_str(&reply->body));
    f->done = true;
}

static bool on_stream(void *ctx, struct str data)
{
    struct client_fetch *f = ctx;
    return f->call->on_data(f->call->ctx, data);
}

/* Run one request on its own event loop. Ends early on an interrupt. */
static bool client_fetch(struct http_request *req, const struct client_call *call,
                         struct http_reply *ret, struct err *err)
{
    struct loop *l = NULL;
    struct http *h = NULL;
    struct client_fetch f = {.call = call};
    req->on_data = call->on_data != NULL ? on_stream : NULL;
    bool ok = loop_new(&l, err) && http_new(l, &h, err);
    if (ok) {
        (void)http_send(h, req, on_fetched, &f);
        while (!f.done && !interrupted()) {
            loop_run_once(l, 200 * USEC_PER_MSEC);
        }
        *ret = f.reply;
        ok = f.done && f.reply.ok;
        if (!f.done) {
            (void)err_set(err, ERR_TIMEOUT, "interrupted");
        } else if (!ok) {
            *err = f.reply.err;
        }
    }
    http_free(h);
    loop_free(l);
    return ok;
}

bool client_try(struct cli *cli, const struct client_call *call, struct client_reply *ret,
                struct err *err)
{
    const struct client *c = cli->client;
    AUTO_FREE char *url = xasprintf("%s%s", c->url, call->path);
    AUTO_FREE char *bearer = xasprintf("Bearer %s", c->token);
    struct http_header headers[5];
    size_t n = 0;
    if (c->token[0] != '\0' && !call->no_token) {
        headers[n++] = (struct http_header){"Authorization", bearer};
    }
    if (call->key != NULL) {
        headers[n++] = (struct http_header){"Idempotency-Key", call->key};
    }
    if (call->if_match != NULL) {
        headers[n++] = (struct http_header){"If-Match", call->if_match};
    }
    if (call->last_event != NULL) {
        headers[n++] = (struct http_header){"Last-Event-ID", call->last_event};
    }
    if (call->body.n > 0) {
        headers[n++] = (struct http_header){"Content-Type",
                                            call->type != NULL ? call->type : "application/json"};
    }
    struct http_request req = {.method = call->method,
                               .url = url,
                               .headers = headers,
                               .headers_n = n,
                               .body = call->body,
                               .reply_max = REPLY_MAX,
                               .timeout_us = call->timeout_us};
    struct http_reply reply = {0};
    *ret = (struct client_reply){0};
    if (!client_fetch(&req, call, &reply, err)) {
        http_reply_done(&reply);
        return false;
    }
    ret->status = reply.status;
    struct str etag = http_reply_header(&reply, "etag");
    (void)snprintf(ret->etag, sizeof ret->etag, STR_FMT, STR_ARG(etag));
    ret->text = reply.body;
    reply.body = (struct buf){0};
    http_reply_done(&reply);
    struct err ignored = ERR_INIT;
    if (ret->text.n > 0 &&
        !json_parse(str_trim(buf_str(&ret->text)), REPLY_MAX, &ret->json, &ignored)) {
        ret->json = NULL; /* not JSON; the text remains */
    }
    return true;
}

/* The code of an error; of an answer that names none (a proxy's) the one that its status means. */
static enum err_code code_of(const char *name, int status)
{
    for (int i = 1; i < ERR_CODE_COUNT; i++) {
        if (strcmp(err_code_name((enum err_code)i), name) == 0) {
            return (enum err_code)i;
        }
    }
    return status == 404                    ? ERR_NOT_FOUND
           : status == 401 || status == 403 ? ERR_UNAUTHENTICATED
           : status >= 500                  ? ERR_UNAVAILABLE
                                            : ERR_INTERNAL;
}

/* The verb that lists what was not found: `pools` alone lists the pools. */
static const char *lister(const struct command *c)
{
    bool lists = c->args[0] == '[' && !str_starts(str_of(c->args), "[CAMPAIGN");
    return lists ? c->verb : "ls";
}

/* Of a campaign that is there: what shows its state, lists its stages or parts, or says what the
 * part waits for. NULL: something else. The caller frees it. */
static char *next_within(const struct cli *cli, enum err_code code, const char *text)
{
    struct str rest = str_of(cli->args_n > 0 ? cli->args[0] : "");
    struct str campaign = str_split(&rest, '/');
    const char *args = cli->command->args, *late = strstr(text, ": it was not started yet");
    bool of_one = campaign.n > 0 && str_starts(str_of(args + (args[0] == '[')), "CAMPAIGN");
    if (of_one && code == ERR_CONFLICT) {
        return xasprintf("drover get " STR_FMT " shows the current state", STR_ARG(campaign));
    }
    if (of_one && code == ERR_ARCHIVED) {
        return xasprintf("drover cost " STR_FMT " shows what is kept of it", STR_ARG(campaign));
    }
    if (code == ERR_NOT_FOUND && late != NULL) {
        return xasprintf("drover why %.*s", (int)(late - text), text);
    }
    if (code != ERR_NOT_FOUND || campaign.n == 0 || rest.n == 0) {
        return NULL;
    }
    if (strstr(text, " has no stage ") != NULL) {
        return xasprintf("drover get " STR_FMT " shows its stages", STR_ARG(campaign));
    }
    if (strstr(text, " has no part ") != NULL) {
        return xasprintf("drover parts " STR_FMT " lists its parts", STR_ARG(campaign));
    }
    return strstr(text, "no such attempt") == NULL
               ? NULL
               : xasprintf("drover get %s lists its attempts, drover why %s why it has none",
                           cli->args[0], cli->args[0]);
}

/* The caller frees it. */
static char *next_of(const struct cli *cli, enum err_code code)
{
    static const char *const steps[] = {
#define X(code, text) [ERR_##code] = text,
#include "next_step.def"
#undef X
    };
    static_assert(ARRAY_LEN(steps) == ERR_CODE_COUNT, "a row for each code");
    const char *text = steps[code], *verb = strstr(text, "%s");
    const char *name = code == ERR_NOT_FOUND ? lister(cli->command) : cli->command->verb;
    return verb == NULL ? xstrdup(text)
                        : xasprintf("%.*s%s%s", (int)(verb - text), text, name, verb + 2);
}

/* Every fault of a refused request, with its place and what to write instead. */
static void faults_print(const json_t *errors)
{
    size_t i;
    json_t *e;
    json_array_foreach(errors, i, e)
    {
        char at[64] = "";
        if (jint(e, "line") > 0) {
            (void)snprintf(at, sizeof at, "%lld:%lld ", (long long)jint(e, "line"),
                           (long long)jint(e, "column"));
        }
        AUTO_FREE char *message = text_clean(jstr(e, "message"));
        AUTO_FREE char *pointer = text_clean(jstr(e, "pointer"));
        AUTO_FREE char *hint = text_clean(jstr(e, "hint"));
        say("error: %s%s%s%s%s%s", at, pointer, pointer[0] != '\0' ? ": " : "", message,
            hint[0] != '\0' ? "; hint: " : "", hint);
    }
}

/* A detail may end with the command that goes on, as a gate's words do: taken off. NULL: none. */
static const char *next_in(char *text)
{
    static const char mark[] = ": drover ";
    char *last = NULL;
    for (char *at = strstr(text, mark); at != NULL; at = strstr(at + 1, mark)) {
        last = at;
    }
    if (last == NULL) {
        return NULL;
    }
    *last = '\0';
    return last + 2;
}

int client_explain(const struct cli *cli, const struct client_reply *r)
{
    faults_print(json_object_get(r->json, "errors"));
    const char *detail = jstr(r->json, "detail"), *id = jstr(r->json, "request_id");
    enum err_code code = code_of(jstr(r->json, "code"), r->status);
    int status = err_code_exit(code);
    AUTO_FREE char *text = text_clean(detail[0] != '\0' ? detail : buf_cstr(&r->text));
    /* A server error names the request id, to be found in the server's log. */
    bool theirs = r->status >= 500 && id[0] != '\0';
    const char *next = status == EXIT_CONFLICT ? next_in(text) : NULL;
    AUTO_FREE char *within = next_within(cli, code, text);
    AUTO_FREE char *usual = within != NULL ? xstrdup(within) : next_of(cli, code);
    return fail((enum cli_exit)status, next != NULL ? next : usual, "%s (HTTP %d%s%s)", text,
                r->status, theirs ? ", request " : "", theirs ? id : "");
}

static int unreachable(const struct client *c, const struct err *err)
{
    return fail(EXIT_UNREACHABLE, "is droverd running? set DROVER_URL; drover doctor checks",
                "cannot reach %s: %s", c->url, err->message);
}

/* The server cannot do it now: it is starting or busy, or it still works on the same request. */
static bool is_passing(const struct client_reply *r)
{
    return r->status == 503 || r->status == 429 ||
           strcmp(jstr(r->json, "code"), err_code_name(ERR_KEY_IN_USE)) == 0;
}

bool client_repeat(struct cli *cli, const struct client_call *call, struct client_reply *ret,
                   struct err *err)
{
    int64_t until = clock_mono_us() + TRY_FOR_US;
    /* Only requests that change nothing or have a key may be repeated. */
    bool repeat = (call->key != NULL && !call->once) || strcmp(call->method, "GET") == 0 ||
                  strcmp(call->method, "PUT") == 0 || strstr(call->path, "dry_run=true") != NULL;
    for (;;) {
        bool came = client_try(cli, call, ret, err);
        bool again = !came || is_passing(ret);
        bool impatient = !came && call->key == NULL && !cli->patient;
        if (!again || !repeat || impatient || interrupted() || clock_mono_us() > until) {
            return came;
        }
        reply_done(ret);
        pause_ms(TRY_PAUSE_MS);
    }
}

bool client_call(struct cli *cli, const struct client_call *call, struct client_reply *ret,
                 int *ret_exit)
{
    struct err err = ERR_INIT;
    bool came = client_repeat(cli, call, ret, &err);
    bool good = came && ret->status < 300;
    if (!good) {
        *ret_exit = came ? client_explain(cli, ret) : unreachable(cli->client, &err);
    }
    return good;
}

/* False: the path is too long; said. */
static PRINTF(3, 0) bool path_of(char path[static PATH_BYTES_MAX], int *ret_exit, const char *fmt,
                                 va_list args)
{
    int n = vsnprintf(path, PATH_BYTES_MAX, fmt, args);
    if (n < 0 || (size_t)n >= PATH_BYTES_MAX) {
        *ret_exit = fail(EXIT_USAGE, "drover help lists the verbs", "an argument is too long");
        return false;
    }
    return true;
}

bool client_get(struct cli *cli, struct client_reply *ret, int *ret_exit, const char *fmt, ...)
{
    char path[PATH_BYTES_MAX];
    va_list args;
    va_start(args, fmt);
    bool ok = path_of(path, ret_exit, fmt, args);
    va_end(args);
    return ok &&
           client_call(cli, &(struct client_call){.method = "GET", .path = path}, ret, ret_exit);
}

bool client_post(struct cli *cli, struct client_reply *ret, int *ret_exit, const char *fmt, ...)
{
    char path[PATH_BYTES_MAX];
    char key[37];
    va_list args;
    va_start(args, fmt);
    bool ok = path_of(path, ret_exit, fmt, args);
    va_end(args);
    key_random(key);
    const struct client_call call = {.method = "POST", .path = path, .key = key};
    return ok && client_call(cli, &call, ret, ret_exit);
}

void query_add(struct buf *query, const char *name, const char *value)
{
    if (value[0] != '\0') {
        buf_addf(query, "%c%s=", query->n == 0 ? '?' : '&', name);
        str_url_encode(query, str_of(value), false);
    }
}
