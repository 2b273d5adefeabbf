/* A secret of AWS Secrets Manager or of the Systems Manager Parameter Store, read with the job's
 * role. It stays in memory: no log, manifest or error holds it. */
#pragma once
#include "common/err.h"

#define SECRET_BYTES_MAX 4096

/* arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME or arn:aws:ssm:REGION:ACCOUNT:parameter/NAME */
bool secret_arn_ok(const char *arn);
/* The caller frees *ret. Retries for some seconds. ERR_FORBIDDEN, ERR_NOT_FOUND; ERR_INVALID when
 * the value cannot be in a header. */
bool secret_read(const char *arn, char **ret, struct err *err) MUST_CHECK;
