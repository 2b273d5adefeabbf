/* Endpoints of stages that deploy, for handlers. */
#pragma once
#include "common/buf.h"
#include "core/model.h"
#include "store/pg/connection.h"

/* Append n endpoints of these projects (by commas, "": every project), those that are there first;
 * only the one of that name unless it is NULL. */
bool apidb_endpoints(struct store *s, int64_t n, const char *name, const char *projects,
                     struct buf *ret, struct err *err) MUST_CHECK;
/* Ask for the deletion of one that is there. ERR_NOT_FOUND. */
bool apidb_endpoint_delete(struct store *s, const char *name, struct err *err) MUST_CHECK;
struct apidb_endpoint { /* what a later end of it depends on */
    enum endpoint_state state;
    usec_t in_service_us, until_us;
    usec_t extend_us; /* that people want, unanswered; 0: none */
    bool delete_asked;
    musd_t price_musd_per_hour, reserved_musd;
    int64_t instances;
    char level[12];   /* the cap that leaves the least: global, project, campaign, stage */
    musd_t left_musd; /* so much */
};
/* Nobody else changes its row until the transaction ends. */
bool apidb_endpoint_lock(struct store *s, const char *name, struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND. */
bool apidb_endpoint_terms(struct store *s, const char *name, struct apidb_endpoint *ret,
                          struct err *err) MUST_CHECK;
/* Ask for a later end. */
bool apidb_endpoint_extend(struct store *s, const char *name, usec_t until_us,
                           struct err *err) MUST_CHECK;
