/* The audit table: who changed what. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* A row of the audit. All are borrowed. */
struct apidb_audit_row {
    const char *token_id, *role, *action, *subject, *request_id;
    const char *before_json; /* what was there before; NULL: nothing to tell */
    const char *detail_json; /* what was asked for; NULL: {} */
};
/* Insert an audit row in the current transaction. */
bool apidb_audit(struct store *s, const struct apidb_audit_row *row, struct err *err) MUST_CHECK;

/* Which rows, and for whom. No string is NULL; "" is all. */
struct apidb_audit_query {
    int64_t after_id, n;
    bool down;            /* newest first */
    int64_t campaign_id;  /* 0: all */
    const char *who;      /* a token's id or name */
    const char *action;   /* "campaign.retry", or "campaign" for all of these */
    const char *projects; /* of who asks, by commas */
    bool admin;           /* who asks sees what was done with tokens */
};
/* Append a page of the audit in order of ids, as JSON texts joined by commas. *ret_next is after_id
 * of the page after it, 0 when there is none; a page with less than n rows may have a next one. */
bool apidb_audit_page(struct store *s, const struct apidb_audit_query *q, struct buf *ret_rows,
                      int64_t *ret_next, struct err *err) MUST_CHECK;
