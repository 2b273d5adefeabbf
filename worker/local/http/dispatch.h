/* From a whole request to its answer: which service, which operation, signature, rate, faults,
 * handler, wire log. */
#pragma once
#include "request.h"

/* Answer a request whose body is complete. Takes app->mu itself. */
void dispatch_request(struct request *r);
/* Answer a request whose forward_to dispatch_request has set, which may take a minute; on any
 * thread. */
void dispatch_forward(struct request *r);
/* It waits for a message until r->wait_until: dispatch_again tries then, and at r->wait_due. */
bool dispatch_waits(const struct request *r);
void dispatch_again(struct request *r);
/* Carry out a request whose connection was closed before its effect. app->mu held. */
void dispatch_detached(struct request *r);
/* Set service, operation and input of a request read back from the journal. */
void dispatch_restore(struct request *r, const char *operation);
/* True when the body goes to a file; decided from method and headers. */
bool dispatch_wants_upload(const struct request *r);
