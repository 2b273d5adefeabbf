/* See ask.h. */
#include "ask.h"
#include "common/cleanup.h"
#include "common/http.h"

#define ANSWER_MAX (256 * 1024)

struct asking {
    const struct oidc_config *cfg;
    bool plain; /* by http */
    bool done;
    char refused[ADDR_TEXT_BYTES];
    struct buf body;
    int status;
    struct err err;
};

/* A private address, and every one by http, has to be named by the setting. */
static bool may_connect(void *ctx, const struct sockaddr *address)
{
    struct asking *a = ctx;
    struct net_addr to;
    int port;
    if (!addr_from_sockaddr(address, &to, &port)) {
        return false;
    }
    if (addr_is_allowed(&a->cfg->allow, &to, port) && (!a->plain || addr_is_blocked(&to))) {
        return true;
    }
    addr_format(&to, a->refused);
    return false;
}

static void on_reply(void *ctx, const struct http_reply *reply)
{
    struct asking *a = ctx;
    a->done = true;
    a->status = reply->ok ? reply->status : 0;
    a->err = reply->err;
    buf_add_str(&a->body, buf_str(&reply->body));
}

static bool ask(struct asking *a, const struct http_request *request, struct err *err)
{
    struct loop *l = NULL;
    struct http *h = NULL;
    a->plain = strncmp(request->url, "http:", 5) == 0;
    bool ok = loop_new(&l, err) && http_new(l, &h, err);
    if (ok) {
        (void)http_send(h, request, on_reply, a);
        while (!a->done) {
            loop_run_once(l, -1);
        }
    }
    http_free(h);
    loop_free(l);
    if (!ok) {
        return false;
    }
    if (a->status == 0 && a->refused[0] != '\0') {
        return err_set(err, ERR_UNAVAILABLE,
                       "the provider of logins is at %s, a private address or port%s: an admin may "
                       "allow it by oidc_allow_net",
                       a->refused, a->plain ? ", or is asked by http" : "");
    }
    return a->status != 0 || err_set(err, ERR_UNAVAILABLE, "the provider of logins at %s: %s",
                                     a->cfg->issuer, a->err.message);
}

bool ask_json(const struct oidc_config *cfg, const char *url, const char *form,
              const char *authorization, int *ret_status, json_t **ret, struct err *err)
{
    const struct http_header headers[] = {{"Accept", "application/json"},
                                          {"User-Agent", cfg->user_agent},
                                          {"Content-Type", "application/x-www-form-urlencoded"},
                                          {"Authorization", authorization}};
    const struct http_request request = {
        .method = form == NULL ? "GET" : "POST",
        .url = url,
        .headers = headers,
        .headers_n = form == NULL ? 2 : (size_t)(authorization == NULL ? 3 : 4),
        .body = str_of(form),
        .reply_max = ANSWER_MAX,
        .timeout_us = cfg->timeout_us,
        .may_connect = may_connect};
    struct asking a = {.cfg = cfg, .body = BUF_INIT(ANSWER_MAX)};
    struct err why = ERR_INIT;
    bool ok = ask(&a, &request, err);
    if (ok && (!json_parse(buf_str(&a.body), ANSWER_MAX, ret, &why) || !json_is_object(*ret))) {
        json_decref(TAKE(*ret));
        ok = err_set(err, ERR_UNAVAILABLE,
                     "the provider of logins answers %s with status %d and no JSON object", url,
                     a.status);
    }
    *ret_status = a.status;
    buf_done(&a.body);
    return ok;
}
