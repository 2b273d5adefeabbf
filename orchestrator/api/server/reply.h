/* Answers of handlers: status, headers, JSON, problems. */
#pragma once
#include "request.h"

#define ETAG_SIZE 16 /* of a letter, eight hexadecimal digits and a dash, with room */

/* Add a header of the answer; the value is printf-formatted and copied. */
void reply_header(struct api_req *r, const char *name, const char *fmt, ...) PRINTF(3, 4);
/* Answer with the JSON in r->out. Returns true. */
bool reply_out(struct api_req *r, int status);
/* answer with a copy of json; returns true */
bool reply_json(struct api_req *r, int status, struct str json);
/* Set the ETag. True when this is a GET whose If-None-Match has it; the answer is then 304. A
 * handler does nothing after it. */
bool reply_etag(struct api_req *r, const char *etag);
/* Set r's ETag from the bytes of r->out behind `prefix`; strong. */
void reply_etag_of_body(struct api_req *r, const char *prefix);
/* The ETag of an answer to GET that has none yet, of its bytes; it may become a 304. */
void reply_etag_default(struct api_req *r);
/* Answer with problem+json made from err and r->faults. */
void reply_problem(struct api_req *r, const struct err *err);
/* Answer with problem+json of this status and code. */
void reply_problem_status(struct api_req *r, int status, const char *code, const char *detail);
