/* The audit table: who changed what. */
#pragma once
#include "store/pg/connection.h"

bool apidb_audit(struct store *s, const char *token_id, const char *role, const char *action,
                 const char *subject, const char *detail_json, const char *request_id,
                 struct err *err) MUST_CHECK;
