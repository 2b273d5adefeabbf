/* See listed_parts.h. */
#include "listed_parts.h"
#include "api/server/request.h"
#include "common/json.h"
#include "core/leader/input_listing.h"
#include "store/api/part_load.h"

/* {"uris":"a\nb"} for a part of several objects. False: too long. */
static bool part_vars(const struct bridge_object *at, size_t n, struct buf *out)
{
    AUTO_BUF struct buf joined = BUF_INIT(API_BODY_MAX);
    for (size_t i = 0; i < n; i++) {
        buf_add_cstr(&joined, i == 0 ? "" : "\n");
        buf_add_cstr(&joined, at[i].uri);
    }
    buf_reset(out);
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_strn(&w, "uris", buf_str(&joined));
    json_out_end_object(&w);
    return !joined.overflow && !out->overflow;
}

static bool rows_load(struct apidb_load *load, const struct bridge_listing *listing, size_t step,
                      struct err *err)
{
    AUTO_BUF struct buf vars = BUF_INIT(API_BODY_MAX);
    for (size_t i = 0; i < listing->n; i += step) {
        const struct bridge_object *at = &listing->at[i];
        size_t n = MIN(step, listing->n - i);
        int64_t size = 0;
        for (size_t j = 0; j < n; j++) {
            size += at[j].size;
        }
        if (n > 1 && !part_vars(at, n, &vars)) {
            return err_set(err, ERR_LIMIT, "per_part joins too many names");
        }
        if (!apidb_load_row(load, str_of(at->uri), size, n > 1 ? buf_str(&vars) : STR(""), err)) {
            return false;
        }
    }
    return true;
}

bool listed_parts_load(struct store *s, int64_t campaign_id, int64_t stage_id,
                       const struct bridge_listing *listing, int per_part, struct err *err)
{
    CLEANUP(apidb_load_freep)
    struct apidb_load *load = NULL;
    int64_t parts = input_listing_parts((int64_t)listing->n, per_part);
    return apidb_load_begin(s, campaign_id, stage_id, parts, &load, err) &&
           rows_load(load, listing, (size_t)per_part, err) && apidb_load_end(load, true, err);
}
