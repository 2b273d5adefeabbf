/* Sources of training scripts: PUT brings an archive to the bucket once a digest, GET and HEAD say
 * whether it is there. The archive goes from its spool file to S3; PostgreSQL keeps its digest. */
#include "sources.h"
#include "api/server/audit.h"
#include "api/server/reply.h"
#include "api/server/routes.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "core/spec/source_uri.h"
#include "default_bucket.h"
#include "refused.h"
#include "store/api/sources.h"
#include "store/pg/tx.h"
#include <errno.h>
#include <unistd.h>

#define SOURCE_LIST_US   (10 * USEC_PER_SEC)
#define SOURCE_UPLOAD_US BRIDGE_WAIT_US_MAX
#define PIECE_BYTES      65536

/* The digest of the body; of an archive, its first two bytes as gzip has them. */
static bool read_body(const struct api_req *r, char ret[static SHA256_HEX_N], struct err *err)
{
    uint8_t piece[PIECE_BYTES], digest[32], first[2] = {0, 0};
    CLEANUP(sha256_done)
    struct sha256 h;
    if (r->spool_fd < 0 || r->body_n == 0) {
        return err_set(err, ERR_INVALID, "the body is empty; send a tar archive in gzip");
    }
    sha256_init(&h);
    for (int64_t at = 0; at < r->body_n;) {
        ssize_t n = pread(r->spool_fd, piece, sizeof piece, at);
        if (n <= 0) {
            return err_set_os(err, ERR_IO, n < 0 ? errno : EIO, "cannot read the spooled body");
        }
        if (at == 0) {
            memcpy(first, piece, MIN(sizeof first, (size_t)n));
        }
        sha256_add(&h, piece, (size_t)n);
        at += n;
    }
    sha256_end(&h, digest);
    str_hex(digest, sizeof digest, ret);
    return (first[0] == 0x1f && first[1] == 0x8b) ||
           err_set(err, ERR_INVALID, "the body is no gzip; send a tar archive in gzip");
}

/* True when S3 has an object of that size there. */
static bool is_there(struct api_req *r, const char *uri, int64_t size, bool *ret, struct err *err)
{
    struct bridge_question q = {.kind = BRIDGE_S3_LIST, .max = 2};
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    struct err why = ERR_INIT;
    (void)snprintf(q.uri, sizeof q.uri, "%s", uri);
    *ret = false;
    if (!req_bridge(r, &q, SOURCE_LIST_US, &reply, &why)) {
        return why.code == ERR_NOT_FOUND || refused_by_s3(&why, "s3:ListBucket", err);
    }
    *ret = reply.listing.n == 1 && reply.listing.at[0].size == size;
    return true;
}

/* The row of a source whose object is where it would be put now. ERR_NOT_FOUND. */
static bool find(struct api_req *r, const char *sha256, const char *uri, struct apidb_source *ret,
                 struct err *err)
{
    bool there = false;
    if (!apidb_source_get(r->db, sha256, ret, err)) {
        return false;
    }
    if (strcmp(ret->uri, uri) == 0 && !is_there(r, uri, ret->size, &there, err)) {
        return false;
    }
    return there || err_set(err, ERR_NOT_FOUND, "the source is no longer in %s", uri);
}

/* The digest of the path, and where its archive lies. */
static bool place_of(struct api_req *r, const char **ret_sha256, char uri[static SOURCE_URI_MAX],
                     struct err *err)
{
    const char *bucket;
    *ret_sha256 = arena_strndup(&r->arena, r->params[0].p, r->params[0].n);
    return default_bucket(r, &bucket, err) && source_uri(bucket, r->params[0], uri, err);
}

static bool answer(struct api_req *r, const struct apidb_source *s, int status)
{
    buf_add_str(&r->out, buf_str(&s->json));
    return reply_out(r, status);
}

bool source_get(struct api_req *r, struct err *err)
{
    const char *sha256;
    char uri[SOURCE_URI_MAX];
    CLEANUP(apidb_source_done)
    struct apidb_source s = {.size = 0};
    return req_db(r, err) && place_of(r, &sha256, uri, err) && find(r, sha256, uri, &s, err) &&
           answer(r, &s, 200);
}

static bool note(struct api_req *r, const char *sha256, const char *uri, struct err *err)
{
    char detail[48];
    CLEANUP(apidb_source_done)
    struct apidb_source s = {.size = 0};
    AUTO_TX struct store *tx = r->db;
    (void)snprintf(detail, sizeof detail, "{\"bytes\":%lld}", (long long)r->body_n);
    return tx_begin(tx, TX_WRITE, err) && apidb_source_put(tx, sha256, r->body_n, uri, err) &&
           apidb_source_get(tx, sha256, &s, err) &&
           req_audit(r, "source.put", sha256, detail, err) && tx_commit(tx, err) &&
           answer(r, &s, 201);
}

static bool upload(struct api_req *r, const char *uri, struct err *err)
{
    struct bridge_question q = {.kind = BRIDGE_S3_PUT, .fd = r->spool_fd, .size = r->body_n};
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    struct err why = ERR_INIT;
    (void)snprintf(q.uri, sizeof q.uri, "%s", uri);
    return req_bridge(r, &q, SOURCE_UPLOAD_US, &reply, &why) ||
           refused_by_s3(&why, "s3:PutObject", err);
}

bool source_put(struct api_req *r, struct err *err)
{
    const char *sha256;
    char uri[SOURCE_URI_MAX], digest[SHA256_HEX_N];
    CLEANUP(apidb_source_done)
    struct apidb_source there = {.size = 0};
    struct err why = ERR_INIT;
    if (!read_body(r, digest, err) || !req_db(r, err) || !place_of(r, &sha256, uri, err)) {
        return false;
    }
    if (strcmp(digest, sha256) != 0) {
        return err_set(err, ERR_INVALID, "the body has the digest %s", digest);
    }
    if (find(r, sha256, uri, &there, &why)) {
        return answer(r, &there, 200);
    }
    if (why.code != ERR_NOT_FOUND) {
        *err = why;
        return false;
    }
    return upload(r, uri, err) && note(r, sha256, uri, err);
}

bool sources_check(struct api_req *r, const struct spec *s, struct err *err)
{
    for (int i = 0; i < s->stages_n; i++) {
        const struct spec_training *t = s->stages[i]->training;
        CLEANUP(apidb_source_done)
        struct apidb_source sent = {.size = 0};
        struct err why = ERR_INIT;
        if (t == NULL || t->source_sha256 == NULL ||
            (apidb_source_get(r->db, t->source_sha256, &sent, &why) &&
             strcmp(sent.uri, t->source_dir) == 0)) {
            continue;
        }
        if (why.code != ERR_NONE && why.code != ERR_NOT_FOUND) {
            *err = why;
            return false;
        }
        r->faults = arena_alloc(&r->arena, sizeof *r->faults);
        faults_add(r->faults, (struct position){0, 0},
                   arena_printf(&r->arena, "stages.%s.source_dir", s->stages[i]->name), "not_sent",
                   "PUT /v1/sources/DIGEST first; drover submit does it",
                   "no source of this digest was sent to %s", t->source_dir);
        return err_set(err, ERR_INVALID, "a source was not sent");
    }
    return true;
}
