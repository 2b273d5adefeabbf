/* Answers in gzip, for who takes it. */
#pragma once
#include "request.h"

/* True when Accept-Encoding has gzip, or *, and not with a weight of 0. */
bool accepts_gzip(const struct api_req *r);
/* Compress the answer in r->out when that is worth it and accepted. Small answers stay as they are:
 * nothing is gained, and those with secrets (sessions, tokens) are among them. The ETag is that of
 * the plain bytes: it stands for the state, and If-Match takes it whatever was accepted. */
void compress_answer(struct api_req *r);
