/* The container contract: where SageMaker puts things below /opt/ml (or $DROVER_ML_ROOT), and how
 * a job says why it failed. Every hyperparameter arrives as a string. */
#pragma once
#include "common/err.h"
#include <jansson.h>

#define SAGEMAKER_CONTAINER_PATH_BYTES_MAX   4096
#define SAGEMAKER_CONTAINER_CONFIG_BYTES_MAX (1u << 20)

/* Root of the contract, "/opt/ml" by default. */
const char *sagemaker_container_root(void);
/* A path with a leading /opt/ml read under the root; other paths as they are. Caller frees. */
char *sagemaker_container_path(const char *path);
/* hyperparameters.json as an object of strings; NULL in *ret when there is no such file. Numbers
 * and booleans are accepted too, and a value that is a JSON string literal is unquoted, as the
 * SageMaker Python SDK quotes each value. Caller decrefs. */
bool sagemaker_container_hyperparameters(json_t **ret, struct err *err) MUST_CHECK;
/* Hosts of this job by resourceconfig.json; 1 when there is no such file. */
bool sagemaker_container_hosts(int *ret, struct err *err) MUST_CHECK;
/* Folder of the named channel, of the only channel when name is NULL. ERR_INVALID names what is
 * there. Caller frees. */
bool sagemaker_container_channel(const char *name, char **ret, struct err *err) MUST_CHECK;
/* Name of a cause of failure for an error, as in the controller's list. */
const char *sagemaker_container_cause(const struct err *err);
/* Exit status of worker_protocol.h for a cause. */
int sagemaker_container_exit(const char *cause);
/* Write "<cause>: <message>" to output/failure below the root, if output/ is there, else nothing.
 * SageMaker shows the first 1,024 characters. */
void sagemaker_container_fail(const char *cause, const char *message);
