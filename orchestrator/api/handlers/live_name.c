/* Submitting a name twice; see live_name.h. */
#include "live_name.h"
#include "common/cleanup.h"
#include "core/spec/spec_diff.h"
#include "store/api/campaigns.h"

static bool live_name_refuse(struct api_req *r, const struct spec *spec,
                             const struct apidb_live *live, struct err *err)
{
    struct faults *diff = arena_alloc(&r->arena, sizeof *diff);
    spec_diff(buf_str(&live->spec_text), buf_str(&r->body), r->who.role >= API_ADMIN, diff);
    r->other_campaign = live->id;
    r->faults = diff;
    int n = diff->n + diff->dropped;
    const char *files = n == 0 ? "the files are the same"
                               : arena_printf(&r->arena, "%d key%s of the files differ%s", n,
                                              n == 1 ? "" : "s", n == 1 ? "s" : "");
    return err_set(err, ERR_LIVE_NAME, "c-%lld has the name '%.128s' and is %s; %s",
                   (long long)live->id, spec->name, live->state, files);
}

bool live_name_check(struct api_req *r, const struct spec *spec, struct err *err)
{
    if (req_query(r, "live_name") == NULL) {
        return true;
    }
    struct apidb_live live = {0};
    bool ok = apidb_campaign_live(r->db, spec->project, spec->name, &live, err) &&
              (live.id == 0 || live_name_refuse(r, spec, &live, err));
    buf_done(&live.spec_text);
    return ok;
}
