/* A credential_process on a loop: the command is split as a shell would and started without one;
 * its output is read until it ends. */
#pragma once
#include "common/buf.h"
#include "common/loop.h"

struct creds_process;
/* err NULL: it ended with status 0 and `out` is what it wrote; borrowed for the call. The process
 * object is freed after the call. */
typedef void (*creds_process_cb)(void *ctx, struct str out, const struct err *err);

/* Start it; cb runs once, from the loop. It is killed after 60 s. ERR_UNAUTHENTICATED when it
 * cannot be started. */
bool creds_process_start(struct loop *l, const char *command, creds_process_cb cb, void *ctx,
                         struct creds_process **ret, struct err *err) MUST_CHECK;
/* Kill it, no callback. */
void creds_process_cancel(struct creds_process *p);
/* Split a command into words as a POSIX shell does, without expansions. words[n] with a NULL behind
 * them and their texts are one allocation, which the caller frees. False: an open quote, nothing at
 * all, or more than 64 words. */
bool creds_process_split(const char *command, char ***ret, size_t *ret_n) MUST_CHECK;
