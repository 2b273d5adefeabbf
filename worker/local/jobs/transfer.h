/* What SageMaker moves for a job: File channels from S3 to every host before it runs, checkpoints
 * in both directions, model and output archives to S3 after it. Works on ROOT/s3 directly. A
 * failure's message is the job's FailureReason. */
#pragma once
#include "supervise.h"

#define TRANSFER_KEYS_MAX 1000000

/* True when the job's role may not access the bucket. */
bool transfer_denied(const struct supervisor *s, const char *bucket);
bool transfer_channels(struct supervisor *s, struct err *err) MUST_CHECK;
/* True when the job has a CheckpointConfig. */
bool transfer_has_checkpoints(const struct supervisor *s);
/* Nothing to do without CheckpointConfig. Save may be called repeatedly. */
bool transfer_checkpoints_load(struct supervisor *s, struct err *err) MUST_CHECK;
bool transfer_checkpoints_save(struct supervisor *s, struct err *err) MUST_CHECK;
bool transfer_artifacts(struct supervisor *s, struct err *err) MUST_CHECK;
