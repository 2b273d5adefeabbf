/* What handlers answer: status, headers, JSON, problems. */
#pragma once
#include "request.h"

void reply_header(struct api_req *r, const char *name, const char *fmt, ...) PRINTF(3, 4);
/* r->out is the answer, whole JSON; true. */
bool reply_out(struct api_req *r, int status);
bool reply_json(struct api_req *r, int status, struct str json); /* copies; true */
/* Set ETag; true when If-None-Match has it: the answer is 304 then. */
bool reply_etag(struct api_req *r, const char *etag);
/* Strong ETag of r->out. */
void reply_etag_of_body(struct api_req *r, const char *prefix);
/* problem+json from err (and r->faults). */
void reply_problem(struct api_req *r, const struct err *err);
void reply_problem_status(struct api_req *r, int status, const char *code, const char *detail);
