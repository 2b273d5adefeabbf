/* What SageMaker moves for a job: File channels from S3 to every host before it runs (Pipe channels
 * are only looked through; feed.h sends them), checkpoints
 * in both directions, model and output archives to S3 after it. Works on ROOT/s3 directly. A
 * failure's message is the job's FailureReason. */
#pragma once
#include "supervise.h"

#define TRANSFER_KEYS_MAX 1000000

/* True when the job's role may not access the bucket. */
bool transfer_denied(const struct supervisor *s, const char *bucket);
/* True when a channel of InputDataConfig comes in mode Pipe. */
bool transfer_is_pipe(const struct supervisor *s, const json_t *channel);
/* The file of an object that is there and may be read. */
bool transfer_object(const struct supervisor *s, const char *uri, char out[static PATH_MAX],
                     struct err *err) MUST_CHECK;
/* Make a FailureReason of what is in err. Always false. */
bool transfer_fail(const char *uri, struct err *err);
/* Copies File channels to the hosts, links file systems, fills s->plans. */
bool transfer_channels(struct supervisor *s, struct err *err) MUST_CHECK;
/* True when the job has a CheckpointConfig. */
bool transfer_has_checkpoints(const struct supervisor *s);
/* Nothing to do without CheckpointConfig. Save may be called repeatedly. */
bool transfer_checkpoints_load(struct supervisor *s, struct err *err) MUST_CHECK;
bool transfer_checkpoints_save(struct supervisor *s, struct err *err) MUST_CHECK;
bool transfer_artifacts(struct supervisor *s, struct err *err) MUST_CHECK;
