/* Answers that carry credentials: JSON of the container's endpoint, of the instance metadata
 * service and of a credential_process, XML of STS. Pure. A message never repeats what was read. */
#pragma once
#include "creds_plan.h"

/* from: CREDS_CONTAINER, CREDS_INSTANCE or CREDS_PROCESS. Keys without an end (a process may leave
 * it out) expire at USEC_NEVER. */
bool creds_answer_json(struct str body, enum creds_source from, struct aws_creds *ret,
                       struct err *err) MUST_CHECK;
/* AssumeRole and AssumeRoleWithWebIdentity. */
bool creds_answer_xml(struct str body, struct aws_creds *ret, struct err *err) MUST_CHECK;
