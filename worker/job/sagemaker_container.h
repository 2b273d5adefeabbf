/* The container contract: where SageMaker puts things below /opt/ml (or $DROVER_ML_ROOT), and how
 * a job says why it failed. Every hyperparameter arrives as a string. */
#pragma once
#include "common/err.h"
#include <jansson.h>

#define CONTRACT_PATH_BYTES_MAX   4096
#define CONTRACT_CONFIG_BYTES_MAX (1u << 20)

/* Root of the contract, "/opt/ml" by default. */
const char *contract_root(void);
/* A path with a leading /opt/ml read under the root; other paths as they are. Caller frees. */
char *contract_path(const char *path);
/* hyperparameters.json as an object of strings; NULL in *ret when there is no such file. Numbers
 * and booleans are accepted too, and a value that is a JSON string literal is unquoted, as the
 * SageMaker Python SDK quotes each value. Caller decrefs. */
bool contract_hyperparameters(json_t **ret, struct err *err) MUST_CHECK;
/* Hosts of this job by resourceconfig.json; 1 when there is no such file. */
bool contract_hosts(int *ret, struct err *err) MUST_CHECK;
/* Folder of the named channel, of the only channel when name is NULL. ERR_INVALID names what is
 * there. Caller frees. */
bool contract_channel(const char *name, char **ret, struct err *err) MUST_CHECK;
/* Name of a cause of failure for an error, as in the controller's list. */
const char *contract_cause(const struct err *err);
/* Exit status of worker_protocol.h for a cause. */
int contract_exit(const char *cause);
/* Write "<cause>: <message>" to output/failure below the root, if output/ is there, else nothing.
 * SageMaker shows the first 1,024 characters. */
void contract_fail(const char *cause, const char *message);
