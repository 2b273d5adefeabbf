/* A person archives an ended campaign: its parts and attempts go, its costs stay. */
#include "store/api/archive.h"
#include "api/server/audit.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "campaigns.h"
#include "common/s3.h"
#include "core/leader/operations.h"
#include "store/api/campaigns.h"
#include "store/pg/tx.h"

/* By the table of verbs, and by what of it still lives. */
static bool allowed(struct api_req *r, int64_t id, const struct apidb_wish *now, struct err *err)
{
    enum verb_answer answer = verb_answer_any(VERB_ARCHIVE, now->state, now->wanted);
    AUTO_BUF struct buf why = BUF_INIT(1024);
    if (!verb_refused(answer) && !apidb_archive_hindrance(r->db, id, &why, err)) {
        return false;
    }
    const char *text = verb_refused(answer) ? verb_refusal(answer) : buf_cstr(&why);
    return text[0] == '\0' ||
           err_set(err, ERR_CONFLICT, "campaign c-%lld is not archived: %s", (long long)id, text);
}

#define TO_MAX 900

/* {"to": "s3://bucket/folder"}, or nothing. *ret: that folder's of the campaign, "": nowhere. */
static bool read_folder(struct api_req *r, int64_t id, const json_t *body, const char **ret,
                        struct err *err)
{
    const char *to = json_string_value(json_object_get(body, "to"));
    struct s3_uri uri;
    *ret = "";
    if (to == NULL) {
        return true;
    }
    if (strlen(to) > TO_MAX || !s3_parse_uri(str_of(to), &uri, err)) {
        return err_set(err, ERR_INVALID,
                       "to: a folder like s3://bucket/archive, of at most %d bytes", TO_MAX);
    }
    size_t key = strlen(uri.key);
    *ret = arena_printf(&r->arena, "s3://%s/%s%sc-%lld/", uri.bucket, uri.key,
                        key > 0 && uri.key[key - 1] != '/' ? "/" : "", (long long)id);
    return true;
}

/* Who names a folder is told when nothing comes to it. */
static bool folder_taken(int64_t id, const char *folder, const char *taken, struct err *err)
{
    if (folder[0] == '\0' || strcmp(folder, taken) == 0) {
        return true;
    }
    return taken[0] != '\0'
               ? err_set(err, ERR_CONFLICT,
                         "campaign c-%lld is written to %s already; copy it from there: aws s3 cp "
                         "--recursive %s %s",
                         (long long)id, taken, taken, folder)
               : err_set(err, ERR_CONFLICT,
                         "campaign c-%lld is not written to %s: it is archived without a folder, "
                         "and rows of it are deleted; its costs are kept: drover cost c-%lld",
                         (long long)id, folder, (long long)id);
}

/* Inside the transaction; the campaign is locked. */
static bool ask(struct api_req *r, int64_t id, const char *folder, struct err *err)
{
    AUTO_JSON json_t *detail = folder[0] != '\0' ? json_pack("{s:s}", "to", folder) : json_object();
    AUTO_FREE char *told = json_text(detail);
    AUTO_BUF struct buf taken = BUF_INIT(TO_MAX + 100);
    const char *subject = arena_printf(&r->arena, "c-%lld", (long long)id);
    bool asked = false;
    return apidb_archive_ask(r->db, id, r->who.token_id, folder, &asked, &taken, err) &&
           folder_taken(id, folder, buf_cstr(&taken), err) &&
           (!asked || req_audit(r, "campaign.archive", subject, told, err));
}

bool campaign_archive(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    struct apidb_wish now;
    const char *folder;
    if (!read_folder(r, id, req_json(r), &folder, err) || !req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_campaign_lock(tx, id, &now, err) ||
        (!now.archived && !allowed(r, id, &now, err)) || !ask(r, id, folder, err)) {
        return false;
    }
    return campaign_answer(r, id, 202, err) && apidb_notify(tx, err) && tx_commit(tx, err);
}
