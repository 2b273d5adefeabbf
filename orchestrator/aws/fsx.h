/* Typed FSx for Lustre calls: file systems, their associations with S3, and tasks between the two.
 * Asynchronous on the loop, one callback a call, no retries; rates and what may be repeated are in
 * operation.def. Every create carries a ClientRequestToken: the same bytes again give what the
 * first call made, other bytes under that token make nothing.
 * Source: Amazon FSx API reference, CreateFileSystem, DescribeFileSystems, DeleteFileSystem,
 * CreateDataRepositoryAssociation, CreateDataRepositoryTask, CancelDataRepositoryTask. */
#pragma once
#include "core/capacity/filesystem_report.h"
#include "json_call.h"

enum fsx_kind { FSX_FILESYSTEM, FSX_ASSOCIATION, FSX_TASK, FSX_KIND_COUNT };

#define FSX_LIST_PAGES_MAX 50

/* Runs once. rows: borrowed; of FSX_DONE only, one of create and describe, none of end. failure:
 * of FSX_FAILED only, else NULL. */
typedef void (*fsx_cb)(void *ctx, enum fsx_answer answer, const union fsx_row *rows, size_t n,
                       const struct aws_failure *failure);

/* The returned handle is for aws_fsx_cancel, after which there is no callback. request: the exact
 * bytes with their ClientRequestToken, copied. What is made is CREATING or PENDING. */
struct fsx_call;
struct fsx_call *aws_fsx_create(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                                struct str request, fsx_cb cb, void *ctx);
struct fsx_call *aws_fsx_describe(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                                  const char *id, fsx_cb cb, void *ctx);
/* All of the account, in no order, over all pages (bounded; a repeated token ends the list).
 * filesystem_id: only what belongs to this one, of associations and tasks; NULL: all. */
struct fsx_call *aws_fsx_list(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                              const char *filesystem_id, fsx_cb cb, void *ctx);
/* Delete a file system with its data and without a backup, or an association, whose files stay in
 * the file system; cancel a task. All three go in the background: see the lifecycle. */
struct fsx_call *aws_fsx_end(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                             const char *id, fsx_cb cb, void *ctx);
void aws_fsx_cancel(struct fsx_call *call);
