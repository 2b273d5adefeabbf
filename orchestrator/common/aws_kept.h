/* A call that is to be signed later: a copy of it. */
#pragma once
#include "common/arena.h"
#include "common/aws.h"

#define AWS_KEPT_BYTES_MAX ((size_t)2 * 1024 * 1024)

/* False: its body is too long to be kept. */
bool aws_kept_fits(const struct aws_call *call);
/* *ret is the call, with all that it points to in `a`, of AWS_KEPT_BYTES_MAX; a body that is
 * borrowed, its operation and the contexts of its callbacks stay where they are. */
void aws_kept(struct arena *a, const struct aws_call *call, struct aws_call *ret);
