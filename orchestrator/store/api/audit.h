/* The audit table: who changed what. */
#pragma once
#include "store/pg/connection.h"

/* Insert an audit row in the current transaction. detail_json may be NULL. */
bool apidb_audit(struct store *s, const char *token_id, const char *role, const char *action,
                 const char *subject, const char *detail_json, const char *request_id,
                 struct err *err) MUST_CHECK;
