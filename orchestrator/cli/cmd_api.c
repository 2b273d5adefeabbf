/* drover api and open: a request as it is, and addresses of the dashboard. */
#include "cli.h"
#include "client.h"
#include "print.h"
#include "ref.h"
#include <spawn.h>
#include <stdio.h>
#include <unistd.h>

#define STDIN_MAX (64 * 1024 * 1024)

static bool body_read(const char *arg, struct buf *ret)
{
    if (arg == NULL || strcmp(arg, "-") != 0) {
        buf_add_cstr(ret, arg != NULL ? arg : "");
        return !ret->overflow;
    }
    return buf_add_file(ret, stdin);
}

/* PATCH wants the ETag of what it changes: its own, or that of the list it is read with, as of
 * /v1/projects/NAME. */
static bool etag_read(struct cli *cli, const char *path, char ret[static 128], int *ret_exit)
{
    CLEANUP(reply_done)
    struct client_reply now = {0};
    struct err ignored = ERR_INIT;
    AUTO_FREE char *list = xasprintf("%.*s", (int)(strrchr(path, '/') - path), path);
    struct client_call call = {.method = "GET", .path = path};
    bool came = client_try(cli, &call, &now, &ignored);
    if (!came || now.status >= 300) {
        call.path = came && now.status == 405 ? list : path;
        reply_done(&now);
        if (!client_call(cli, &call, &now, ret_exit)) {
            return false;
        }
    }
    (void)snprintf(ret, 128, "%s", now.etag);
    return true;
}

int cmd_api(struct cli *cli)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"};
    const char *method = cli->args[0], *path = cli->args[1];
    int status = EXIT_OK;
    bool known = false;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        known |= strcmp(methods[i], method) == 0;
    }
    if (!known || path[0] != '/') {
        return fail(EXIT_USAGE, "drover api GET /v1/campaigns",
                    "write a method in capitals and a path that begins with /");
    }
    AUTO_BUF struct buf body = BUF_INIT(STDIN_MAX);
    if (!body_read(cli->args_n > 2 ? cli->args[2] : NULL, &body)) {
        return fail(EXIT_USAGE, "drover api --help shows examples",
                    "the body cannot be read, or is larger than 64 MB");
    }
    char random[37], etag[128] = "";
    key_random(random);
    bool patch = strcmp(method, "PATCH") == 0;
    if (patch && !etag_read(cli, path, etag, &status)) {
        return status;
    }
    bool changes = strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
    const char *key = cli->opt.key != NULL ? cli->opt.key : random;
    const struct client_call call = {.method = method,
                                     .path = path,
                                     .body = buf_str(&body),
                                     .key = changes ? key : NULL,
                                     .once = cli->opt.key == NULL,
                                     .if_match = patch ? etag : NULL};
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_call(cli, &call, &r, &status)) {
        return status;
    }
    if (r.json != NULL && !print_machine(cli, r.json, NULL)) {
        print_json(cli, r.json);
    } else if (r.json == NULL) {
        (void)fwrite(r.text.p, 1, r.text.n, stdout);
    }
    return EXIT_OK;
}

int cmd_open(struct cli *cli)
{
    int status;
    struct ref ref = {.part = -1};
    AUTO_BUF struct buf url = BUF_INIT(4096);
    buf_addf(&url, "%s/", client_url(cli->client));
    if (cli->args_n > 0 &&
        (!ref_read(cli, cli->args[0], &ref, &status) ||
         (ref.part >= 0 && ref.stage[0] == '\0' && !ref_stage_find(cli, &ref, &status)))) {
        return status;
    }
    if (cli->args_n > 0) {
        buf_addf(&url, "c/%s", ref.campaign + 2);
    }
    if (ref.stage[0] != '\0' || ref.part >= 0) {
        buf_add_cstr(&url, "?");
    }
    if (ref.stage[0] != '\0') {
        buf_add_cstr(&url, "stage=");
        str_url_encode(&url, str_of(ref.stage), false);
        buf_add_cstr(&url, ref.part >= 0 ? "&" : "");
    }
    if (ref.part >= 0) {
        buf_addf(&url, "part=%lld", (long long)ref.part);
    }
    (void)puts(buf_cstr(&url));
    if (cli->out_tty && getenv("DISPLAY") != NULL) {
        char *args[] = {(char *)(uintptr_t) "xdg-open", (char *)(uintptr_t)buf_cstr(&url), NULL};
        pid_t child;
        (void)posix_spawnp(&child, args[0], NULL, NULL, args, environ); /* the address is printed */
    }
    return EXIT_OK;
}
