/* The CreateTrainingJob request of a part: as it was sent, or as it would be. */
#include "api/server/request.h"
#include "api/server/reply.h"
#include "api/server/routes.h"
#include "api/server/server.h"
#include "campaigns.h"
#include "core/lowering/request_preview.h"
#include "parts.h"
#include "store/api/campaigns.h"
#include "store/api/parts.h"

/* What the next attempt would send, or what an ended one did: its bytes are gone then. */
static bool rebuild(struct api_req *r, int64_t campaign, int64_t task_id,
                    const struct apidb_request *q, struct buf *ret, struct err *err)
{
    struct spec *s;
    AUTO_JSON json_t *vars = NULL;
    if (!campaign_spec_read(r, campaign, &s, err) ||
        (q->vars_json != NULL &&
         !json_parse(str_of(q->vars_json), strlen(q->vars_json), &vars, err))) {
        return false;
    }
    int stage = spec_stage_find(s, q->stage);
    if (stage < 0) {
        return err_set(err, ERR_INTERNAL, "the stored spec has no stage '%s'", q->stage);
    }
    const struct spec_task task = {.campaign_id = campaign,
                                   .stage_name = q->stage,
                                   .task_id = task_id,
                                   .seq = q->seq,
                                   .uri = q->uri,
                                   .size = q->size,
                                   .attempt_n = (int)MAX(q->n, INT64_C(1)),
                                   .vars = vars};
    const struct preview_attempt attempt = {.name = q->n > 0 ? q->name.s : NULL,
                                            .id = q->attempt_id,
                                            .instance_type = q->instance_type,
                                            .volume_gb = q->volume_gb,
                                            .max_runtime_s = q->max_runtime_s};
    const char *region = req_config(r)->defaults.region;
    return request_preview(s, s->stages[stage], &task, &attempt,
                           region != NULL ? region : "us-east-1", ret, err);
}

static const char *note_of(const struct apidb_request *q)
{
    if (q->request != NULL) {
        return "the bytes that were sent or are being sent";
    }
    return q->n > 0 ? "made again from the campaign: the bytes of an ended attempt are not kept"
                    : "not sent yet: name, numbers, subnet and keep-alive are chosen at the start";
}

/* Values of the environment are for admins, as in the campaign's spec. Ours say who we are. */
static void hide_environment(json_t *request)
{
    json_t *env = json_object_get(request, "Environment");
    const char *key;
    void *next;
    json_t *v;
    json_object_foreach_safe(env, next, key, v)
    {
        if (strncmp(key, "DROVER_", 7) != 0) {
            (void)json_object_set_new(env, key, json_string("***"));
        }
    }
}

bool request_get(struct api_req *r, struct err *err)
{
    int64_t campaign, task;
    CLEANUP(apidb_request_done)
    struct apidb_request q = {0};
    AUTO_BUF struct buf bytes = BUF_INIT(API_ANSWER_MAX);
    AUTO_JSON json_t *request = NULL;
    if (!part_find(r, &campaign, &task, err) ||
        !apidb_attempt_request(r->db, campaign, task, req_number(r, "attempt"), &q, err)) {
        return false;
    }
    bool sent = q.request != NULL && strcmp(q.request, "{}") != 0; /* {}: of an adopted job */
    if (sent) {
        buf_add_cstr(&bytes, q.request);
    } else if (!rebuild(r, campaign, task, &q, &bytes, err)) {
        return false;
    }
    if (!json_parse(buf_str(&bytes), bytes.n, &request, err)) {
        return false;
    }
    if (r->who.role < API_ADMIN) {
        hide_environment(request);
    }
    AUTO_JSON json_t *answer =
        json_pack("{s:s, s:o, s:b, s:s, s:O}", "operation", "CreateTrainingJob", "attempt",
                  q.n > 0 ? json_integer(q.n) : json_null(), "sent", sent, "note", note_of(&q),
                  "request", request);
    ASSERT(answer != NULL);
    AUTO_FREE char *text = json_text(answer);
    return reply_json(r, 200, str_of(text));
}
