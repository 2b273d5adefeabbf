/* ROOT/requests.log, with the setting log_bodies: what each request of a service asked, one line of
 * JSON each, for tests that hold them against the services' models. JSON services: the body as it
 * was understood. Others: method, URI, headers but those of the signature, and the body of a form
 * or of XML. A reset does not empty it. */
#pragma once
#include "common/buf.h"

struct request;
struct request_log {
    int fd; /* < 0: it is off */
};

/* Opens it for appending. */
bool request_log_open(struct request_log *l, const char *root, struct err *err) MUST_CHECK;
void request_log_close(struct request_log *l);
/* Appends the request when its answer is decided; nothing while it is off, of the oracle's pages
 * and of metadata. */
void request_log_write(const struct request_log *l, const struct request *r);
