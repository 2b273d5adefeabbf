/* POST /campaigns/{id}/parts: all spooled lines are checked, then loaded in one transaction. */
#include "api/server/audit.h"
#include "api/server/idempotency.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "common/log.h"
#include "core/lowering/request_check.h"
#include "core/spec/spec_json.h"
#include "metrics.h"
#include "ndjson.h"
#include "store/api/campaigns.h"
#include "store/api/part_load.h"
#include "store/api/parts.h"
#include "store/pg/tx.h"
#include <errno.h>
#include <sys/mman.h>

#define LINE_ARENA_MAX (1024 * 1024)
#define FORGET_BYTES   (8 * 1024 * 1024) /* mapped pages this far behind the reader are dropped */

struct spooled { /* the mapped body */
    void *p;
    size_t n;
};

static void spooled_done(struct spooled *s)
{
    if (s->p != NULL) {
        (void)munmap(s->p, s->n);
    }
}

static bool spooled_map(const struct api_req *r, struct spooled *ret, struct err *err)
{
    if (r->spool_fd < 0 || r->body_n == 0) {
        return true;
    }
    void *p = mmap(NULL, (size_t)r->body_n, PROT_READ, MAP_PRIVATE, r->spool_fd, 0);
    if (p == MAP_FAILED) {
        return err_set_os(err, ERR_IO, errno, "cannot map the spooled body");
    }
    *ret = (struct spooled){p, (size_t)r->body_n};
    return true;
}

/* The body as text; the mark of UTF-8 before it is no part of its first line. */
static struct str spooled_text(const struct spooled *s)
{
    struct str text = {s->p, s->n};
    return text.n > 0 ? str_without_mark(text) : text;
}

/* The next line of the mapping. Drops pages far behind it, so that they do not count as our
 * memory. */
static bool next_line(struct str *text, const char **forgotten, struct str *ret_line)
{
    if (text->p != NULL && text->p - *forgotten > FORGET_BYTES) {
        void *p;
        memcpy(&p, forgotten, sizeof p);
        (void)madvise(p, FORGET_BYTES, MADV_DONTNEED);
        *forgotten += FORGET_BYTES;
    }
    return ndjson_next(text, ret_line);
}

/* request: it is a part, of which no request can be made. */
static void line_fault(struct api_req *r, int line_i, const char *pointer, bool request,
                       const struct err *why)
{
    if (r->faults == NULL) {
        r->faults = arena_alloc(&r->arena, sizeof *r->faults);
    }
    faults_add(r->faults, (struct position){line_i, 1}, pointer, request ? "request" : "line",
               request ? "give the line each variable of its stage, and texts that fit"
                       : "{\"uri\":\"s3://bucket/key\",\"size\":123}",
               "%s", why->message);
}

/* Check every line; faults name lines. *ret_n: number of parts. */
static bool lines_check(struct api_req *r, struct request_checks *check, const struct spooled *body,
                        int64_t *ret_n, struct err *err)
{
    CLEANUP(arena_done)
    struct arena a;
    arena_init(&a, LINE_ARENA_MAX);
    int64_t n = 0;
    int line_i = 0;
    struct str line;
    struct str text = spooled_text(body);
    const char *forgotten = body->p;
    while (next_line(&text, &forgotten, &line)) {
        struct ndjson_part part;
        const char *pointer;
        struct err why = ERR_INIT;
        line_i++;
        if (str_trim(line).n == 0) {
            continue;
        }
        if (!ndjson_part_parse(line, &a, &part, &pointer, &why)) {
            line_fault(r, line_i, pointer, false, &why);
        } else if (!request_check_part(check, n, part.uri, part.size, part.vars, &why)) {
            line_fault(r, line_i, "vars", true, &why);
        } else {
            n++;
        }
        if (a.used > 0) {
            arena_reset(&a);
        }
    }
    if (r->faults != NULL) {
        return err_set(err, ERR_INVALID, "%d of %d lines are not parts; nothing was added",
                       r->faults->n + r->faults->dropped, line_i);
    }
    *ret_n = n;
    return true;
}

static bool lines_load(struct apidb_load *load, const struct spooled *body, struct err *err)
{
    CLEANUP(arena_done)
    struct arena a;
    arena_init(&a, LINE_ARENA_MAX);
    struct str line;
    struct str text = spooled_text(body);
    const char *forgotten = body->p;
    while (next_line(&text, &forgotten, &line)) {
        struct ndjson_part part;
        const char *pointer;
        if (str_trim(line).n == 0) {
            continue;
        }
        if (!ndjson_part_parse(line, &a, &part, &pointer, err) ||
            !apidb_load_row(load, part.uri, part.size, part.vars, err)) {
            return false;
        }
        if (a.used > 0) {
            arena_reset(&a);
        }
    }
    return true;
}

/* ERR_CONFLICT unless the stage takes its parts from the API. Its spec lives in *a. */
static bool stage_takes_parts(struct api_req *r, int64_t campaign_id, const char *name,
                              struct arena *a, struct request_checks *ret, struct err *err)
{
    AUTO_BUF struct buf json = BUF_INIT(4 * API_BODY_MAX);
    AUTO_BUF struct buf text = BUF_INIT(2 * API_BODY_MAX);
    AUTO_JSON json_t *v = NULL;
    arena_init(a, 32 * API_BODY_MAX);
    struct spec *spec;
    if (!apidb_campaign_spec(r->db, campaign_id, &json, &text, err) ||
        !json_parse(buf_str(&json), json.n, &v, err) || !spec_from_json(v, a, &spec, err)) {
        return false;
    }
    int i = spec_stage_find(spec, name);
    if (i < 0 || spec->stages[i]->fan_out != FAN_OUT_API) {
        return err_set(
            err, ERR_CONFLICT,
            "stage '%.64s' does not take parts from the API; that needs fan_out: {from: api}",
            name);
    }
    request_check_begin(ret, spec, spec->stages[i], req_config(r)->defaults.region);
    return true;
}

static bool load_and_answer(struct api_req *r, const struct apidb_stage_row *stage,
                            int64_t campaign_id, const struct spooled *body, int64_t n, bool last,
                            struct keyed *k, struct err *err)
{
    AUTO_TX struct store *tx = r->db;
    CLEANUP(apidb_load_freep)
    struct apidb_load *load = NULL;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_bulk(tx, err) ||
        !apidb_load_begin(tx, campaign_id, stage->id, n, &load, err) ||
        !lines_load(load, body, err) || !apidb_load_end(load, last, err)) {
        return false;
    }
    char answer[160];
    (void)snprintf(answer, sizeof answer, "{\"parts\":%lld,\"total\":%lld,\"closed\":%s}",
                   (long long)n, (long long)apidb_load_total(load), last ? "true" : "false");
    (void)reply_json(r, 201, str_of(answer));
    const char *subject = arena_printf(&r->arena, "c-%lld/%s", (long long)campaign_id, stage->name);
    return keyed_store(k, "", err) && req_audit(r, "parts.add", subject, answer, err) &&
           apidb_notify(tx, err) && apidb_load_publish(tx, campaign_id, err) && tx_commit(tx, err);
}

bool parts_post(struct api_req *r, struct err *err)
{
    int64_t campaign_id = req_id(r, 0), n = 0;
    bool last = req_flag(r, "last"), replayed;
    struct apidb_stage_row stage;
    const char *name = req_query(r, "stage");
    CLEANUP(spooled_done)
    struct spooled body = {0};
    CLEANUP(arena_done)
    struct arena a = {0};
    CLEANUP(request_check_done)
    struct request_checks check = {0};
    CLEANUP(keyed_end)
    struct keyed k = {0};
    if (!req_db(r, err) || !apidb_stage_find(r->db, campaign_id, name, &stage, err) ||
        !stage_takes_parts(r, campaign_id, stage.name, &a, &check, err) ||
        !keyed_begin(r, false, &k, &replayed, err)) {
        return false;
    }
    if (replayed) {
        return true;
    }
    if (!spooled_map(r, &body, err)) {
        return false;
    }
    if (!lines_check(r, &check, &body, &n, err)) {
        return false;
    }
    bool ok = load_and_answer(r, &stage, campaign_id, &body, n, last, &k, err);
    apidb_bulk_end(r->db);
    if (ok) {
        metric_add(METRIC_PARTS_INSERTED, n);
    }
    return ok;
}
