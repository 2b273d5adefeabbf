/* Archives of training scripts, for handlers. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

#define APIDB_SOURCE_URI_MAX 1025

struct apidb_source {
    int64_t size;
    char uri[APIDB_SOURCE_URI_MAX]; /* where it lies */
    struct buf json;                /* of the API; the caller frees it */
};
void apidb_source_done(struct apidb_source *s); /* cleanup function */
/* ERR_NOT_FOUND: none of that digest was sent. */
bool apidb_source_get(struct store *s, const char *sha256, struct apidb_source *ret,
                      struct err *err) MUST_CHECK;
/* Note that it lies there now. */
bool apidb_source_put(struct store *s, const char *sha256, int64_t size, const char *uri,
                      struct err *err) MUST_CHECK;
