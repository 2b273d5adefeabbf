/* CloudWatch Logs of the first host of a training job, from its beginning on. Source: CloudWatch
 * Logs API reference, DescribeLogStreams, GetLogEvents. */
#pragma once
#include "core/failure/log_line.h"
#include "sagemaker.h"

#define LOG_PAGE_LINES 1000

struct log_pages_call;
/* name: the stream that comes next; "": there is none (yet). Borrowed. */
typedef void (*log_stream_cb)(void *ctx, const char *name, const struct aws_failure *f);
/* The first stream of the host algo-1 whose name comes behind `after`; a restart of the job opens
 * another one. */
struct log_pages_call *log_stream_after(struct aws_client *c, struct aws_gate gate,
                                        const char *job_name, const char *after, log_stream_cb cb,
                                        void *ctx);
/* lines are borrowed, at most LOG_PAGE_LINES. next: where the following page begins, the token
 * asked with when there are no more lines for now. */
typedef void (*log_page_cb)(void *ctx, const struct log_line *lines, size_t n, const char *next,
                            const struct aws_failure *f);
/* token "": from the head of the stream. */
struct log_pages_call *log_page_get(struct aws_client *c, struct aws_gate gate, const char *stream,
                                    const char *token, log_page_cb cb, void *ctx);
/* No answer comes any more; NULL ignored. */
void log_pages_cancel(struct log_pages_call *call);
