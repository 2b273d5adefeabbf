/* The services that hand out credentials without a signature: the container endpoint (for jobs, and
 * for containers named in the configuration) and the instance metadata service, version 2. */
#pragma once
#include "local/http/request.h"

/* True when the request is for one of them; its service is then "metadata". */
bool metadata_is(const struct request *r);
/* "GetContainerCredentials", "PutInstanceToken" or "GetInstanceMetadata". */
const char *metadata_operation(const struct request *r);
/* app->mu held. */
void metadata_handle(struct request *r);
