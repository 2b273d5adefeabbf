/* What SageMaker moves for a job: File channels from S3 to every host before it runs, model and
 * output archives to S3 after it. Works on ROOT/s3 directly. A failure's message is the job's
 * FailureReason. */
#pragma once
#include "supervise.h"

#define TRANSFER_KEYS_MAX 1000000

/* The job's role may not touch the bucket. */
bool transfer_denied(const struct supervisor *s, const char *bucket);
bool transfer_channels(struct supervisor *s, struct err *err) MUST_CHECK;
bool transfer_artifacts(struct supervisor *s, struct err *err) MUST_CHECK;
