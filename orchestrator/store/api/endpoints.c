/* Endpoints; see endpoints.h. */
#include "endpoints.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_endpoints(struct store *s, int64_t n, const char *name, const char *projects,
                     struct buf *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, n);
    param_text(&p, name);
    param_text(&p, projects);
    return store_text(s, QUERY(API_ENDPOINTS), &p, "row", ret, err);
}

bool apidb_endpoint_delete(struct store *s, const char *name, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, name);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(API_ENDPOINT_DELETE), &p, &r, err)) {
        return false;
    }
    return row_count(r) == 1 || err_set(err, ERR_NOT_FOUND, "there is no endpoint '%.63s'", name);
}

bool apidb_endpoint_lock(struct store *s, const char *name, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, name);
    return store_run(s, QUERY(API_ENDPOINT_LOCK), &p, NULL, err);
}

bool apidb_endpoint_terms(struct store *s, const char *name, struct apidb_endpoint *ret,
                          struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, name);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(API_ENDPOINT_TERMS), &p, &r, err)) {
        return false;
    }
    if (row_count(r) != 1) {
        return err_set(err, ERR_NOT_FOUND, "there is no endpoint '%.63s'", name);
    }
    *ret = (struct apidb_endpoint){.state = endpoint_state_parse(row_text(r, 0, 0)),
                                   .in_service_us = row_time(r, 0, 1),
                                   .until_us = row_time(r, 0, 2),
                                   .extend_us = row_time(r, 0, 3),
                                   .delete_asked = row_bool(r, 0, 4),
                                   .price_musd_per_hour = row_i64(r, 0, 5),
                                   .instances = row_i64(r, 0, 6),
                                   .reserved_musd = row_i64(r, 0, 7),
                                   .left_musd = row_i64(r, 0, 9)};
    row_text_into(r, 0, 8, ret->level, sizeof ret->level);
    return true;
}

bool apidb_endpoint_extend(struct store *s, const char *name, usec_t until_us, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, name);
    param_time(&p, until_us);
    return store_run(s, QUERY(API_ENDPOINT_EXTEND), &p, NULL, err);
}
