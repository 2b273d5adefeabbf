/* Idempotency keys: the same key with the same request gets the first answer again; with another
 * request it is refused; while the first request runs the second one is to come again. The key's
 * row is written in the transaction it answers for. */
#include "idempotency.h"
#include "common/hash.h"
#include "common/json.h"
#include "reply.h"
#include "request.h"
#include "store/api/idempotency_keys.h"
#include <errno.h>

/* Longer than anything a request does besides its database: listing S3 for a dry run takes 25 s at
 * most. A client that asks with the key of a droverd that froze gets through after it. */
#define KEY_SILENCE_US (40 * USEC_PER_SEC)

/* What is kept of an answer with a secret. */
#define ID_KEPT     "made"
#define ID_KEPT_MAX 512

static bool key_read(const struct api_req *r, bool required, char ret[static 256], struct err *err)
{
    const char *header = req_header(r, "Idempotency-Key");
    ret[0] = '\0';
    if (header == NULL) {
        return required ? err_set(err, ERR_MALFORMED,
                                  "the Idempotency-Key header is missing: send a random one, and "
                                  "the same one when you repeat the request")
                        : true;
    }
    struct str k = str_trim(str_of(header));
    if (k.n >= 2 && k.p[0] == '"' && k.p[k.n - 1] == '"') {
        k = (struct str){k.p + 1, k.n - 2};
    }
    bool ok = k.n >= 1 && k.n <= 255;
    for (size_t i = 0; ok && i < k.n; i++) {
        ok = k.p[i] > 0x20 && k.p[i] < 0x7f && k.p[i] != '"';
    }
    if (!ok) {
        return err_set(err, ERR_MALFORMED, "Idempotency-Key: 1 to 255 visible ASCII characters");
    }
    memcpy(ret, k.p, k.n);
    ret[k.n] = '\0';
    return true;
}

static bool request_hash(const struct api_req *r, uint8_t ret[static 32], struct err *err)
{
    struct sha256 h;
    sha256_init(&h);
    const char *stage = req_query(r, "stage"), *last = req_query(r, "last");
    const char *head[] = {r->method, r->path, stage != NULL ? stage : "", last != NULL ? last : ""};
    for (size_t i = 0; i < ARRAY_LEN(head); i++) {
        sha256_add(&h, head[i], strlen(head[i]) + 1);
    }
    sha256_add(&h, r->body.p, r->body.n);
    char chunk[65536];
    for (off_t at = 0; r->spool_fd >= 0;) {
        ssize_t n = pread(r->spool_fd, chunk, sizeof chunk, at);
        if (n < 0) {
            sha256_done(&h);
            return err_set_os(err, ERR_IO, errno, "cannot read the spooled body");
        }
        if (n == 0) {
            break;
        }
        sha256_add(&h, chunk, (size_t)n);
        at += n;
    }
    sha256_end(&h, ret);
    return true;
}

static bool key_replay(struct keyed *k, bool *ret_replayed, struct err *err)
{
    struct api_req *r = k->r;
    struct apidb_answer a = {.answer = BUF_INIT(API_ANSWER_MAX)};
    bool found = false;
    bool ok = apidb_key_get(r->db, r->who.token_id, k->key, &found, &a, err);
    if (ok && found && memcmp(a.body_hash, k->hash, sizeof k->hash) != 0) {
        ok = err_set(err, ERR_KEY_REUSED,
                     "this Idempotency-Key was used for another request; use a new one");
    }
    if (ok && found) {
        struct str text = str_trim(buf_str(&a.answer));
        (void)reply_json(r, a.status, text);
        reply_header(r, "Idempotent-Replayed", "true");
        if (a.location[0] != '\0') {
            reply_header(r, MHD_HTTP_HEADER_LOCATION, "%s", a.location);
        }
    }
    *ret_replayed = ok && found;
    buf_done(&a.answer);
    return ok;
}

bool keyed_begin(struct api_req *r, bool required, struct keyed *ret, bool *ret_replayed,
                 struct err *err)
{
    *ret = (struct keyed){.r = r};
    *ret_replayed = false;
    if (!key_read(r, required, ret->key, err)) {
        return false;
    }
    if (ret->key[0] == '\0') {
        return true;
    }
    if (!request_hash(r, ret->hash, err) || !key_replay(ret, ret_replayed, err)) {
        return false;
    }
    if (*ret_replayed) {
        return true;
    }
    if (!apidb_key_lock(r->db, r->who.token_id, ret->key, KEY_SILENCE_US, &ret->locked, err)) {
        return false;
    }
    if (!ret->locked) {
        return err_set(err, ERR_KEY_IN_USE,
                       "a request with this Idempotency-Key is running; try again");
    }
    /* The first request may have ended before the lock was taken. */
    return key_replay(ret, ret_replayed, err);
}

static bool store(const struct keyed *k, const struct buf *answer, const char *location,
                  struct err *err)
{
    if (k->key[0] == '\0') {
        return true;
    }
    struct apidb_answer a = {.status = k->r->status, .answer = *answer};
    memcpy(a.body_hash, k->hash, sizeof a.body_hash);
    size_t n = strlen(location);
    ASSERT(n < sizeof a.location);
    memcpy(a.location, location, n);
    return apidb_key_put(k->r->db, k->r->who.token_id, k->key, &a, err);
}

bool keyed_store(struct keyed *k, const char *location, struct err *err)
{
    return store(k, &k->r->out, location, err);
}

bool keyed_store_secret(struct keyed *k, const char *id, const char *location, struct err *err)
{
    AUTO_BUF struct buf kept = BUF_INIT(ID_KEPT_MAX);
    buf_addf(&kept, "{\"" ID_KEPT "\":\"%s\"}", id);
    return store(k, &kept, location, err);
}

bool keyed_told(struct api_req *r, const char *then, struct err *err)
{
    AUTO_JSON json_t *answer = json_loadb(r->out.p, r->out.n, 0, NULL);
    const char *id = json_string_value(json_object_get(answer, ID_KEPT));
    return id == NULL ||
           err_set(err, ERR_CONFLICT,
                   "the first request with this Idempotency-Key has made %s, and its secret was in "
                   "that answer only: %s, and make another with a new key",
                   id, then);
}

void keyed_end(struct keyed *k)
{
    if (k->locked && k->r->db != NULL && store_alive(k->r->db)) {
        apidb_key_unlock(k->r->db, k->r->who.token_id, k->key);
    }
    k->locked = false;
}
