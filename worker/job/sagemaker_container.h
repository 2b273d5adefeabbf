/* The SageMaker container contract: where SageMaker puts files below /opt/ml (or $DROVER_ML_ROOT),
 * and how a job reports why it failed. Every hyperparameter arrives as a string. */
#pragma once
#include "common/err.h"
#include <jansson.h>

#define SAGEMAKER_CONTAINER_PATH_BYTES_MAX   4096
#define SAGEMAKER_CONTAINER_CONFIG_BYTES_MAX (1u << 20)

/* Root of the contract, "/opt/ml" by default. */
const char *sagemaker_container_root(void);
/* Map a leading /opt/ml to the root; other paths are unchanged. The caller frees the result. */
char *sagemaker_container_path(const char *path);
/* hyperparameters.json as an object of strings; *ret is NULL when there is no such file. Numbers
 * and booleans are accepted too, and a value that is a JSON string literal is unquoted, as the
 * SageMaker Python SDK quotes each value. Caller decrefs. */
bool sagemaker_container_hyperparameters(json_t **ret, struct err *err) MUST_CHECK;
#define SAGEMAKER_CONTAINER_HOSTS_MAX      1000
#define SAGEMAKER_CONTAINER_HOST_BYTES_MAX 128
struct sagemaker_container_hosts { /* of this job, by name, bytewise */
    int n;                         /* at least 1 */
    int me;                        /* index of this one */
    char names[SAGEMAKER_CONTAINER_HOSTS_MAX][SAGEMAKER_CONTAINER_HOST_BYTES_MAX];
};
/* The hosts of this job: resourceconfig.json, else DROVER_HOSTS (names, or name=address, separated
 * by commas) and DROVER_HOST; one host when there is neither. ERR_INVALID for a name that is there
 * twice, and when this host is not among them. */
bool sagemaker_container_hosts(struct sagemaker_container_hosts *ret, struct err *err) MUST_CHECK;
/* Folder of the named channel, of the only channel when name is NULL. ERR_INVALID lists the
 * existing channels. Caller frees. */
bool sagemaker_container_channel(const char *name, char **ret, struct err *err) MUST_CHECK;
/* The name of a cause (orchestrator/core/failure/cause.def) for an error. */
const char *sagemaker_container_cause(const struct err *err);
/* Exit status of worker_protocol.h for a cause. */
int sagemaker_container_exit(const char *cause);
/* Write "<cause>: <message>" to output/failure below the root, if output/ exists; else do nothing.
 * SageMaker shows the first 1,024 characters. */
void sagemaker_container_fail(const char *cause, const char *message);
