/* File systems; see filesystems.h. */
#include "filesystems.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_filesystems(struct store *s, int64_t n, const char *projects, struct buf *ret,
                       struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, n);
    param_text(&p, projects);
    return store_text(s, QUERY(API_FILESYSTEMS), &p, "row", ret, err);
}

bool apidb_filesystem_delete(struct store *s, const char *name, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, name);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(API_FILESYSTEM_DELETE), &p, &r, err)) {
        return false;
    }
    return row_count(r) == 1 ||
           err_set(err, ERR_NOT_FOUND, "there is no file system '%.63s'", name);
}

bool apidb_filesystem_there(struct store *s, int64_t campaign_id, int64_t stage_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(API_FILESYSTEM_GONE), &p, &r, err)) {
        return false;
    }
    return row_count(r) == 0 ||
           err_set(err, ERR_CONFLICT,
                   "stage %.64s mounts the file system of stage %.64s, which is gone (%.200s): a "
                   "retry cannot run; submit it again%s",
                   row_text(r, 0, 0), row_text(r, 0, 1), row_text(r, 0, 2),
                   stage_id == 0 ? ", or retry other stages by their names" : "");
}
