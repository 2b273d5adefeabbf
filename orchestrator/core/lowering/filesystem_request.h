/* The exact bytes of what is asked of FSx about the file system of a stage of kind lustre. Pure and
 * deterministic: the same input gives the same bytes, which FSx takes once under one token. */
#pragma once
#include "common/buf.h"
#include "common/err.h"
#include "core/spec/spec.h"

#define FILESYSTEM_TAG_TOKEN         "drover-token"
#define FILESYSTEM_LINK_PATH         "/" /* of its one link: channels see the prefix as it is */
#define FILESYSTEM_VERSION           "2.15"
#define FILESYSTEM_TOKEN_SIZE        64 /* with the NUL */
#define FILESYSTEM_REQUEST_BYTES_MAX (64 * 1024)

struct filesystem_request_input {
    const struct spec *spec;
    const struct spec_stage *stage; /* of kind lustre */
    int64_t campaign_id;
    const struct job_name *token;
    int64_t attempt_id;
    const char *install_id;
};
/* CreateFileSystem. ERR_INVALID when a value breaks a limit of the API. */
bool filesystem_request_make(const struct filesystem_request_input *in, struct buf *ret,
                             struct err *err) MUST_CHECK;

struct filesystem_request_of { /* a file system that is there */
    const char *token, *aws_id;
};
/* CreateDataRepositoryAssociation: all of the prefix comes in, and what is new there later. */
void filesystem_request_link(const struct filesystem_request_of *of, const char *import_from,
                             struct buf *ret);
/* CreateDataRepositoryTask: what jobs wrote goes to the prefix. n: of how many before, so that each
 * has a token of its own. */
void filesystem_request_export(const struct filesystem_request_of *of, int n, struct buf *ret);
