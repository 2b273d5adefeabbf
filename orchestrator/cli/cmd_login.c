/* drover login and context: servers with their tokens, by name. */
#include "cli.h"
#include "client.h"
#include "contexts.h"
#include "list.h"
#include "print.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#define TOKEN_MAX      500
#define SIGNAL_POLL_MS 50

static const struct list_column columns[] = {
    {"CONTEXT", COLUMN_TEXT, .path = "context"},
    {"URL", COLUMN_TEXT, .path = "url"},
    {"IN USE", COLUMN_TEXT, .path = "in_use"},
};
static const struct api_list contexts = LIST(columns, "context");

static int unreadable(const struct err *err)
{
    return fail(EXIT_USAGE, "drover login URL writes it", "%s", err->message);
}

/* The signals of a terminal's keys, and SIGTERM. */
static sigset_t key_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGQUIT);
    (void)sigaddset(&set, SIGTSTP);
    (void)sigaddset(&set, SIGTERM);
    return set;
}

/* Waits for a line. False: one of the blocked signals that end a program came first. */
static bool line_comes(void)
{
    sigset_t pending;
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    do {
        if (sigpending(&pending) == 0 &&
            (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGQUIT) == 1 ||
             sigismember(&pending, SIGTERM) == 1)) {
            return false;
        }
    } while (poll(&in, 1, SIGNAL_POLL_MS) == 0);
    return true;
}

/* A line from the terminal, which does not show it. Signals wait until it shows what is typed
 * again; without that the shell would go on blind. */
static bool line_unseen(const struct termios *now, char ret[static TOKEN_MAX + 2],
                        bool *ret_interrupted)
{
    struct termios quiet = *now;
    sigset_t before, keys = key_signals();
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    (void)fputs("Token: ", stderr);
    (void)sigprocmask(SIG_BLOCK, &keys, &before);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    *ret_interrupted = !line_comes();
    bool came = !*ret_interrupted && fgets(ret, TOKEN_MAX + 2, stdin) != NULL;
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, now);
    (void)fputc('\n', stderr);
    if (!*ret_interrupted) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
    }
    return came;
}

/* The first line of stdin. Returns the exit status, after an error message. */
static int token_ask(char ret[static TOKEN_MAX + 2])
{
    struct termios now;
    bool stopped = false;
    bool terminal = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &now) == 0;
    bool came =
        terminal ? line_unseen(&now, ret, &stopped) : fgets(ret, TOKEN_MAX + 2, stdin) != NULL;
    if (stopped) {
        return fail(EXIT_INTERRUPTED, "drover login URL asks again",
                    "interrupted; nothing has changed");
    }
    ret[came ? strcspn(ret, "\r\n") : 0] = '\0';
    if (ret[0] == '\0' || strlen(ret) > TOKEN_MAX || strpbrk(ret, " \t\x1b") != NULL) {
        return fail(EXIT_USAGE, "drover login URL <token-file, or type it when asked",
                    "there is no token on standard input");
    }
    return EXIT_OK;
}

/* "drover.example.com" of https://drover.example.com/x. The caller frees it. */
static char *name_of(const char *url)
{
    const char *host = strstr(url, "://") + 3;
    return xstrndup(host, strcspn(host, "/?#"));
}

static int keep(const char *name, const char *url, const char *token)
{
    AUTO_JSON json_t *v = NULL;
    struct err err = ERR_INIT;
    if (!contexts_read(&v, &err)) {
        return unreadable(&err);
    }
    (void)json_object_set_new(json_object_get(v, "contexts"), name,
                              json_pack("{s:s, s:s}", "url", url, "token", token));
    (void)json_object_set_new(v, "current", json_string(name));
    return contexts_write(v, &err) ? EXIT_OK : unreadable(&err);
}

int cmd_login(struct cli *cli)
{
    int status = EXIT_OK;
    char token[TOKEN_MAX + 2];
    struct err err = ERR_INIT;
    struct client *client = NULL;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_check_url(cli->args[0], &err)) {
        return fail(EXIT_USAGE, "drover login https://drover.example.com", "%s", err.message);
    }
    status = token_ask(token);
    if (status != EXIT_OK) {
        return status;
    }
    client = client_of(cli->args[0], token);
    client_free(cli->client);
    cli->client = client;
    if (!client_get(cli, &r, &status, "/v1/session")) {
        return status;
    }
    AUTO_FREE char *usual = name_of(client_url(client));
    const char *name = cli->args_n > 1 ? cli->args[1] : usual;
    status = keep(name, client_url(client), token);
    if (status == EXIT_OK) {
        (void)printf("%s  %s  role %s\n", name, client_url(client), jstr(r.json, "role"));
        if (getenv("DROVER_URL") != NULL) {
            say("! DROVER_URL is set and goes before it; next: unset DROVER_URL");
        }
    }
    return status;
}

/* Without the tokens. The caller owns it. */
static json_t *rows_of(const json_t *v)
{
    json_t *rows = json_array(), *c;
    const char *name, *current = json_string_value(json_object_get(v, "current"));
    json_object_foreach(json_object_get(v, "contexts"), name, c)
    {
        bool in_use = current != NULL && strcmp(name, current) == 0;
        (void)json_array_append_new(rows, json_pack("{s:s, s:s, s:s}", "context", name, "url",
                                                    jstr(c, "url"), "in_use", in_use ? "yes" : ""));
    }
    return rows;
}

static int contexts_list(const struct cli *cli, const json_t *v)
{
    int status;
    AUTO_JSON json_t *rows = rows_of(v);
    AUTO_JSON json_t *answer = json_pack("{s:O}", "contexts", rows);
    if (!list_machine(cli, &contexts, answer, rows, &status)) {
        list_table(cli, &contexts, rows);
        if (json_array_size(rows) == 0) {
            say("no context; next: drover login URL");
        }
    }
    return status;
}

int cmd_context(struct cli *cli)
{
    AUTO_JSON json_t *v = NULL;
    struct err err = ERR_INIT;
    const char *what = cli->args_n > 0 ? cli->args[0] : "ls";
    const char *name = cli->args_n > 1 ? cli->args[1] : NULL;
    bool use = strcmp(what, "use") == 0, rm = strcmp(what, "rm") == 0;
    if (!contexts_read(&v, &err)) {
        return unreadable(&err);
    }
    if (strcmp(what, "ls") == 0 && name == NULL) {
        return contexts_list(cli, v);
    }
    if (!(use || rm) || name == NULL) {
        return fail(EXIT_USAGE, "drover context --help shows examples",
                    "write ls, use NAME or rm NAME");
    }
    json_t *all = json_object_get(v, "contexts");
    if (json_object_get(all, name) == NULL) {
        return fail(EXIT_NOT_FOUND, "drover context lists them", "there is no context '%.80s'",
                    name);
    }
    if (use) {
        (void)json_object_set_new(v, "current", json_string(name));
    } else {
        (void)json_object_del(all, name);
    }
    if (contexts_current(v) == NULL) {
        (void)json_object_del(v, "current");
    }
    if (!contexts_write(v, &err)) {
        return unreadable(&err);
    }
    return contexts_list(cli, v);
}
