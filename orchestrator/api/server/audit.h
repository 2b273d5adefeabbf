/* The audit trail of requests. */
#pragma once
#include "request.h"

/* Write an audit row for r. detail_json: what was asked for. */
bool req_audit(struct api_req *r, const char *action, const char *subject, const char *detail_json,
               struct err *err) MUST_CHECK;
/* The same of a change: of what stood before it, a JSON object or a list of one, the row keeps as
 * `before` those members that what was asked for has too. */
bool req_audit_change(struct api_req *r, const char *action, const char *subject,
                      const char *was_json, const json_t *asked, struct err *err) MUST_CHECK;
/* The same with what was there before it, as JSON. */
bool req_audit_both(struct api_req *r, const char *action, const char *subject,
                    const char *before_json, const char *detail_json, struct err *err) MUST_CHECK;
