/* The exact bytes of CreateTrainingJob for one attempt, and the hash that proves a job is ours.
 * Pure and deterministic: the same input gives the same bytes. */
#pragma once
#include "core/spec/spec.h"
#include "core/spec/spec_expand.h"

struct request_volume { /* the file system of a stage of kind lustre, which is there */
    const char *stage, *aws_id, *mount;
};
struct training_request_input {
    const struct spec *spec;
    const struct spec_stage *stage;
    const struct spec_task *task;
    const struct job_name *name;
    int64_t attempt_id;
    const char *instance_type;
    int volume_gb;
    int64_t max_runtime_s;
    int64_t keep_alive_s; /* of the warm pool the job leaves; 0: none, and always for spot */
    const char *subnet;   /* the one it goes to; NULL: all that the stage names */
    const char *install_id;
    const char *region;
    const struct request_volume *volumes; /* those that channels of the stage name */
    int volumes_n;
};
/* MaxWaitTimeInSeconds: run time and all waiting for instances together. */
int64_t training_request_spot_wait_s(int64_t max_runtime_s);
/* *ret_request: JSON text. ret_identity: hex SHA-256 of the request without DROVER_REQUEST, which
 * is then put into Environment under that name. ERR_INVALID when a value breaks a limit of the API
 * (hyperparameter > 2500, > 100 keys, ...), which no later try mends. ERR_UNAVAILABLE: a file
 * system is not there. */
bool training_request_make(const struct training_request_input *in, struct buf *ret_request,
                           char ret_identity[static HASH_HEX_N], struct err *err) MUST_CHECK;
