/* What stages with metrics ask of CloudWatch Logs and SageMaker. */
#include "deep.h"

/* No stage here defines metrics: their logs are not read. */
static _Noreturn void no_metrics(void)
{
    deep_die("nobody collects metrics here");
}

struct log_pages_call *log_stream_after(struct aws_client *c, struct aws_gate gate,
                                        const char *job_name, const char *after, log_stream_cb cb,
                                        void *ctx)
{
    (void)c, (void)gate, (void)job_name, (void)after, (void)cb, (void)ctx;
    no_metrics();
}

struct log_pages_call *log_page_get(struct aws_client *c, struct aws_gate gate, const char *stream,
                                    const char *token, log_page_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)stream, (void)token, (void)cb, (void)ctx;
    no_metrics();
}

struct sagemaker_call *sagemaker_final_metrics(struct aws_client *c, struct aws_gate gate,
                                               const char *name, sagemaker_metrics_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)name, (void)cb, (void)ctx;
    no_metrics();
}

void log_pages_cancel(struct log_pages_call *call)
{
    ASSERT(call == NULL);
}
