/* What S3 refuses droverd, as the API says it. */
#pragma once
#include "common/err.h"

/* Always false. What S3 refuses is no fault of the request, and no other token helps: ERR_AWS with
 * the action that droverd's role needs. Everything else as it is. */
bool refused_by_s3(const struct err *why, const char *action, struct err *err);
