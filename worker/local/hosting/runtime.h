/* InvokeEndpoint: POST /endpoints/NAME/invocations, forwarded to a model server of the endpoint.
 * The server may take a minute, so it is asked on a thread of its own while the connection
 * waits. */
#pragma once
#include "local/http/request.h"

#define RUNTIME_BODY_BYTES_MAX 6291456

/* True for a request of SageMaker's runtime; the others of that path are S3's. */
bool runtime_is(const struct request *r);
/* Choose an instance: r->forward_to is set, or the request is answered. app->mu held. */
void runtime_invoke(struct request *r);
/* Ask it and write the answer. Without app->mu. */
void runtime_forward(struct request *r);
