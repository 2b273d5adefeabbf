/* Reads the list in S3 of what the smoke test of an endpoint sends (smoke_payloads). */
#pragma once
#include "common/s3.h"
#include "core/leader/smoke_payloads.h"

/* fault: NULL, or what is wrong with the list, for people. unread: S3 did not answer; ask again.
 * p: taken over by the callback. */
typedef void (*payloads_cb)(void *ctx, struct payloads *p, const char *fault, bool unread);
struct payload_read;
/* Reads the object. The call is freed after its callback; payload_cancel: no callback comes. */
struct payload_read *payload_read_start(struct aws_client *c, const char *uri, payloads_cb cb,
                                        void *ctx);
void payload_cancel(struct payload_read *r); /* NULL ignored */
