/* The model of a container, from S3 into its model folder. */
#pragma once
#include "common/json.h"

/* container: the definition of CreateModel. root: of drover-local. Failure: the endpoint's
 * FailureReason. */
bool model_files_fetch(const char *root, const json_t *container, const char *folder,
                       struct err *err) MUST_CHECK;
/* The bucket a container's model is in, "" when it has none. */
void model_files_bucket(const json_t *container, char *out, size_t out_n);
