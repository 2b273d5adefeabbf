/* Webhooks: list, make, show, change, remove, try; and what was sent to them. The notifier
 * delivers. */
#include "store/api/webhooks.h"
#include "api/server/audit.h"
#include "api/server/idempotency.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "api/server/scope.h"
#include "api/server/server_state.h"
#include "common/hash.h"
#include "common/rng.h"
#include "store/pg/tx.h"
#include <stdio.h>

#define SIGNING_KEY_BYTES 32

/* Without `kinds` all of them. */
static const char *const all_kinds[] = {"held", "budget", "failed", "done", "stuck", "lost"};

/* Of another project it is not there; one of every project is for tokens of every project. */
static bool webhook_seen(struct api_req *r, int64_t id, struct err *err)
{
    char project[128];
    return apidb_webhook_project(r->db, id, project, err) &&
           (r->who.projects[0] == '\0' || (project[0] != '\0' && scope_has(r, project)) ||
            err_set(err, ERR_NOT_FOUND, "there is no webhook w-%lld", (long long)id));
}

static bool one_out(struct api_req *r, int status, const struct buf *rows)
{
    ASSERT(rows->n > 4); /* "[{...}]" */
    buf_addf(&r->out, "%.*s\n", (int)rows->n - 2, rows->p + 1);
    return reply_out(r, status);
}

bool webhooks_get(struct api_req *r, struct err *err)
{
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    if (!req_db(r, err) || !apidb_webhooks(r->db, 0, r->who.projects, &rows, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"webhooks\":%s}\n", buf_cstr(&rows));
    return reply_out(r, 200);
}

/* An ETag begins with what may be changed; the rest is of all that is shown, counters too. */
static bool tag_of(struct api_req *r, int64_t id, char ret[static ETAG_SIZE], struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT(API_BODY_MAX);
    if (!apidb_webhook_tag(r->db, id, &text, err)) {
        return false;
    }
    (void)snprintf(ret, ETAG_SIZE, "w%08x-", hash_crc32(text.p, text.n));
    return true;
}

/* The webhook with its ETag. */
static bool shown(struct api_req *r, int64_t id, struct err *err)
{
    char tag[ETAG_SIZE];
    AUTO_BUF struct buf rows = BUF_INIT(API_BODY_MAX);
    if (!tag_of(r, id, tag, err) || !apidb_webhooks(r->db, id, "", &rows, err) ||
        !one_out(r, 200, &rows)) {
        return false;
    }
    reply_etag_of_body(r, tag);
    return true;
}

bool webhook_get(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    return req_db(r, err) && webhook_seen(r, id, err) && shown(r, id, err);
}

/* "22:00-07:30", whose form is checked, to minutes; -1 without it. */
static bool quiet_read(const char *text, int64_t *ret_from, int64_t *ret_until, struct err *err)
{
    *ret_from = *ret_until = -1;
    if (text == NULL) {
        return true;
    }
    const int d[] = {text[0] - '0', text[1] - '0', text[3] - '0', text[4] - '0',
                     text[6] - '0', text[7] - '0', text[9] - '0', text[10] - '0'};
    *ret_from = (d[0] * 10 + d[1]) * 60 + d[2] * 10 + d[3];
    *ret_until = (d[4] * 10 + d[5]) * 60 + d[6] * 10 + d[7];
    return *ret_from != *ret_until ||
           err_set(err, ERR_INVALID, "quiet: '%s' are no hours; write 22:00-07:00", text);
}

/* The format that goes with url (NULL: with the one there is). asked NULL: none is asked for,
 * and it stays as it was where it may. */
static bool format_of(const struct api_req *r, const char *url, const char *asked, const char *was,
                      const char **ret, struct err *err)
{
    bool was_mail = strcmp(was, "email") == 0;
    bool mail = url != NULL ? str_starts(str_of(url), "mailto:") : was_mail;
    *ret = asked != NULL ? asked : mail ? "email" : was_mail ? "json" : was;
    if (mail && url != NULL && str_of(req_config(r)->mail.url).n == 0) {
        return err_set(err, ERR_INVALID,
                       "url: mail needs a server that sends it: droverd's setting smtp_url");
    }
    return mail == (strcmp(*ret, "email") == 0) ||
           err_set(err, ERR_INVALID,
                   mail ? "format: what is sent to mailto: has the format email, not %s"
                        : "format: %s goes to an address like mailto:a@example.com",
                   *ret);
}

/* How many there are of `kinds`; 0 without it. */
static size_t kinds_read(const json_t *body, const char *ret[static WEBHOOK_KINDS_MAX])
{
    size_t i;
    const json_t *one, *kinds = json_object_get(body, "kinds");
    json_array_foreach(kinds, i, one)
    {
        ASSERT(i < WEBHOOK_KINDS_MAX);
        ret[i] = json_string_value(one);
    }
    return json_array_size(kinds);
}

static bool webhook_read(const struct api_req *r, struct apidb_webhook_new *w, struct err *err)
{
    const json_t *body = req_json(r);
    w->name = json_string_value(json_object_get(body, "name"));
    w->url = json_string_value(json_object_get(body, "url"));
    w->project = json_string_value(json_object_get(body, "project"));
    w->by = r->who.token_id;
    if (!format_of(r, w->url, json_string_value(json_object_get(body, "format")), "json",
                   &w->format, err) ||
        !quiet_read(json_string_value(json_object_get(body, "quiet")), &w->quiet_from,
                    &w->quiet_until, err)) {
        return false;
    }
    w->kinds_n = kinds_read(body, w->kinds);
    for (size_t i = 0; i < ARRAY_LEN(all_kinds) && json_object_get(body, "kinds") == NULL; i++) {
        w->kinds[w->kinds_n++] = all_kinds[i];
    }
    if (w->project == NULL && r->who.projects[0] != '\0') {
        return err_set(err, ERR_FORBIDDEN,
                       "a webhook without project is told of every project, and the token counts "
                       "in: %s",
                       r->who.projects);
    }
    return w->project == NULL || scope_has(r, w->project) ||
           err_set(err, ERR_NOT_FOUND, "there is no project '%.64s'", w->project);
}

/* What the audit keeps: an address may be a secret, its host is not. */
static json_t *without_path(const json_t *webhook)
{
    json_t *ret = json_copy((json_t *)(uintptr_t)webhook);
    const char *url = json_string_value(json_object_get(ret, "url"));
    const char *host = url != NULL ? strstr(url, "://") : NULL;
    if (host != NULL) {
        size_t n = (size_t)(host - url) + 3;
        n += strcspn(url + n, "/?");
        (void)json_object_set_new(ret, "url", json_stringn(url, n));
    }
    return ret;
}

/* The answer that a webhook was made; rows: it, as a list. */
static void made_out(struct api_req *r, const struct apidb_webhook_new *w, const struct buf *rows)
{
    if (strcmp(w->format, "email") == 0) {
        buf_add_cstr(&r->out, "{\"secret\":null"); /* mail is not signed */
    } else {
        buf_add_cstr(&r->out, "{\"secret\":\"whsec_");
        str_base64(&r->out, (const uint8_t *)w->secret.p, w->secret.n);
        buf_add_cstr(&r->out, "\"");
    }
    ASSERT(rows->n > 4); /* "[{...}]" */
    buf_addf(&r->out, ",%.*s\n", (int)rows->n - 3, rows->p + 2);
    (void)reply_out(r, 201);
}

/* The secret of signatures is in this answer and nowhere else that people see. */
static bool webhook_make(struct api_req *r, const struct apidb_webhook_new *w, struct keyed *k,
                         const char *detail, struct err *err)
{
    int64_t id;
    AUTO_BUF struct buf rows = BUF_INIT(API_BODY_MAX);
    AUTO_TX struct store *tx = r->db;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_webhook_new(tx, w, &id, err) ||
        !apidb_webhooks(tx, id, "", &rows, err)) {
        return false;
    }
    const char *name = arena_printf(&r->arena, "w-%lld", (long long)id);
    const char *location = arena_printf(&r->arena, "/v1/webhooks/%s", name);
    bool secret = strcmp(w->format, "email") != 0;
    made_out(r, w, &rows);
    if (!(secret ? keyed_store_secret(k, name, location, err) : keyed_store(k, location, err)) ||
        !req_audit(r, "webhook.make", name, detail, err) || !tx_commit(tx, err)) {
        return false;
    }
    reply_header(r, MHD_HTTP_HEADER_LOCATION, "%s", location);
    return true;
}

bool webhooks_post(struct api_req *r, struct err *err)
{
    uint8_t secret[SIGNING_KEY_BYTES];
    bool replayed;
    CLEANUP(keyed_end)
    struct keyed k = {0};
    rng_secret(secret, sizeof secret);
    struct apidb_webhook_new w = {.secret = {(const char *)secret, sizeof secret}};
    AUTO_JSON json_t *kept = without_path(req_json(r));
    AUTO_FREE char *detail = json_text(kept);
    if (!webhook_read(r, &w, err) || !req_db(r, err) ||
        !keyed_begin(r, false, &k, &replayed, err)) {
        return false;
    }
    return replayed ? keyed_told(r, "remove it", err) : webhook_make(r, &w, &k, detail, err);
}

/* If-Match must be the ETag of now, up to its "-", or "*". */
static bool if_match(struct api_req *r, int64_t id, struct err *err)
{
    char tag[ETAG_SIZE];
    const char *match = req_header(r, MHD_HTTP_HEADER_IF_MATCH);
    return tag_of(r, id, tag, err) &&
           (strcmp(match, "*") == 0 ||
            (match[0] == '"' && strncmp(match + 1, tag, strlen(tag)) == 0) ||
            err_set(err, ERR_PRECONDITION, "the webhook has changed since; read it again"));
}

static bool audit_change(struct api_req *r, int64_t id, const struct buf *rows, struct err *err)
{
    AUTO_JSON json_t *list = json_loads(buf_cstr(rows), 0, NULL);
    AUTO_JSON json_t *was = without_path(json_array_get(list, 0));
    AUTO_JSON json_t *asked = without_path(req_json(r));
    AUTO_FREE char *was_json = json_text(was);
    return req_audit_change(r, "webhook.change", arena_printf(&r->arena, "w-%lld", (long long)id),
                            was_json, asked, err);
}

/* c->format becomes what goes with the address. */
static bool change_format(struct api_req *r, const struct buf *rows, struct apidb_webhook_change *c,
                          struct err *err)
{
    AUTO_JSON json_t *list = json_loads(buf_cstr(rows), 0, NULL);
    const char *was = json_string_value(json_object_get(json_array_get(list, 0), "format"));
    const char *format;
    ASSERT(was != NULL);
    if (!format_of(r, c->url, c->format, was, &format, err)) {
        return false;
    }
    c->format = arena_printf(&r->arena, "%s", format);
    return true;
}

bool webhook_patch(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    const json_t *body = req_json(r), *quiet = json_object_get(body, "quiet");
    struct apidb_webhook_change c = {
        .name = json_string_value(json_object_get(body, "name")),
        .url = json_string_value(json_object_get(body, "url")),
        .format = json_string_value(json_object_get(body, "format")),
        .set_quiet = quiet != NULL,
    };
    c.kinds_n = kinds_read(body, c.kinds);
    AUTO_BUF struct buf rows = BUF_INIT(API_BODY_MAX);
    if (!quiet_read(json_string_value(quiet), &c.quiet_from, &c.quiet_until, err) ||
        !req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    return tx_begin(tx, TX_WRITE, err) && apidb_webhook_lock(tx, id, err) &&
           webhook_seen(r, id, err) && if_match(r, id, err) &&
           apidb_webhooks(tx, id, "", &rows, err) && change_format(r, &rows, &c, err) &&
           apidb_webhook_change(tx, id, &c, err) && audit_change(r, id, &rows, err) &&
           tx_commit(tx, err) && shown(r, id, err);
}

bool webhook_delete(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    AUTO_BUF struct buf rows = BUF_INIT(API_BODY_MAX);
    if (!req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    return tx_begin(tx, TX_WRITE, err) && webhook_seen(r, id, err) &&
           apidb_webhooks(tx, id, "", &rows, err) && apidb_webhook_delete(tx, id, err) &&
           req_audit(r, "webhook.remove", arena_printf(&r->arena, "w-%lld", (long long)id), "{}",
                     err) &&
           tx_commit(tx, err) && one_out(r, 200, &rows);
}

bool webhook_test(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0), delivery = 0;
    AUTO_BUF struct buf rows = BUF_INIT(API_BODY_MAX);
    if (!req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    return tx_begin(tx, TX_WRITE, err) && webhook_seen(r, id, err) &&
           apidb_webhook_test(tx, id, &delivery, err) &&
           apidb_deliveries(tx, id, delivery, 1, &rows, err) &&
           req_audit(r, "webhook.test", arena_printf(&r->arena, "w-%lld", (long long)id), "{}",
                     err) &&
           tx_commit(tx, err) && one_out(r, 202, &rows);
}

bool webhook_deliveries_get(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    if (!req_db(r, err) || !webhook_seen(r, id, err) ||
        !apidb_deliveries(r->db, id, 0, req_number(r, "limit"), &rows, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"deliveries\":%s}\n", buf_cstr(&rows));
    return reply_out(r, 200);
}

bool delivery_resend(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0), delivery = req_id(r, 1);
    AUTO_BUF struct buf rows = BUF_INIT(API_BODY_MAX);
    if (!req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    const char *subject =
        arena_printf(&r->arena, "w-%lld/d-%lld", (long long)id, (long long)delivery);
    return tx_begin(tx, TX_WRITE, err) && webhook_seen(r, id, err) &&
           apidb_delivery_resend(tx, id, delivery, err) &&
           apidb_deliveries(tx, id, delivery, 1, &rows, err) &&
           req_audit(r, "webhook.resend", subject, "{}", err) && tx_commit(tx, err) &&
           one_out(r, 202, &rows);
}
