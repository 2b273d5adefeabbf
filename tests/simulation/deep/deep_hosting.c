/* No stage here deploys: hosting is never asked. */
#include "aws/hosting.h"
#include "aws/invocations.h"
#include "deep.h"

static _Noreturn void no_hosting(void)
{
    deep_die("nobody deploys here");
}

struct hosting_call *hosting_create(struct aws_client *c, struct aws_gate gate,
                                    enum hosting_kind kind, struct str request,
                                    hosting_create_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)kind, (void)request, (void)cb, (void)ctx;
    no_hosting();
}

struct hosting_call *hosting_describe(struct aws_client *c, struct aws_gate gate,
                                      enum hosting_kind kind, const char *name,
                                      hosting_describe_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)kind, (void)name, (void)cb, (void)ctx;
    no_hosting();
}

struct hosting_call *hosting_delete(struct aws_client *c, struct aws_gate gate,
                                    enum hosting_kind kind, const char *name, hosting_change_cb cb,
                                    void *ctx)
{
    (void)c, (void)gate, (void)kind, (void)name, (void)cb, (void)ctx;
    no_hosting();
}

struct hosting_call *endpoint_invoke(struct aws_client *c, struct aws_gate gate, const char *name,
                                     const char *content_type, struct str body,
                                     endpoint_invoke_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)name, (void)content_type, (void)body, (void)cb, (void)ctx;
    no_hosting();
}

void hosting_cancel(struct hosting_call *call)
{
    ASSERT(call == NULL);
}

struct invocations_call *invocations_read(struct aws_client *c, struct aws_gate gate,
                                          const char *endpoint, const char *variant,
                                          const struct invocation_question *q, invocations_cb cb,
                                          void *ctx)
{
    (void)c, (void)gate, (void)endpoint, (void)variant, (void)q, (void)cb, (void)ctx;
    no_hosting();
}

void invocations_cancel(struct invocations_call *call)
{
    ASSERT(call == NULL);
}
