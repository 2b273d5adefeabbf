/* The audit trail of requests. */
#pragma once
#include "request.h"

/* Write an audit row for r. */
bool req_audit(struct api_req *r, const char *action, const char *subject, const char *detail_json,
               struct err *err) MUST_CHECK;
