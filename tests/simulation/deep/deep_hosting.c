/* No stage here deploys: hosting is never asked. Nor is what only handlers ask of AWS. */
#include "aws/event_queue.h"
#include "aws/hosting.h"
#include "aws/identity.h"
#include "aws/images.h"
#include "aws/invocations.h"
#include "aws/pricing.h"
#include "aws/quota_request.h"
#include "aws/subnets.h"
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

static _Noreturn void no_handler(void)
{
    deep_die("no handler runs here");
}

void identity_get(struct aws_client *c, identity_cb cb, void *ctx)
{
    (void)c, (void)cb, (void)ctx;
    no_handler();
}

void image_digest(struct aws_client *c, const char *registry, const char *repository,
                  const char *tag, image_digest_cb cb, void *ctx)
{
    (void)c, (void)registry, (void)repository, (void)tag, (void)cb, (void)ctx;
    no_handler();
}

void subnets_describe(struct aws_client *c, const char *ids, subnets_cb cb, void *ctx)
{
    (void)c, (void)ids, (void)cb, (void)ctx;
    no_handler();
}

void quota_request(struct aws_client *c, const char *name, int64_t value, quota_request_cb cb,
                   void *ctx)
{
    (void)c, (void)name, (void)value, (void)cb, (void)ctx;
    deep_die("nobody asks for a higher quota here");
}

/* Prices are from a file here, and AWS Pricing is never asked. */
struct pricing_call *pricing_read(struct aws_client *c, struct aws_gate gate, const char *region,
                                  pricing_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)region, (void)cb, (void)ctx;
    deep_die("nobody asks for prices here");
}

void pricing_cancel(UNUSED struct pricing_call *call)
{
}

const char *pricing_region(const char *region)
{
    return region;
}

struct event_queue_call *event_queue_receive(struct aws_client *c, struct aws_gate gate,
                                             const char *url, int most, event_queue_receive_cb cb,
                                             void *ctx)
{
    (void)c, (void)gate, (void)url, (void)most, (void)cb, (void)ctx;
    no_handler();
    return NULL;
}

struct event_queue_call *event_queue_delete(struct aws_client *c, struct aws_gate gate,
                                            const char *url, char *const *receipts, size_t n,
                                            event_queue_delete_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)url, (void)receipts, (void)n, (void)cb, (void)ctx;
    no_handler();
    return NULL;
}

struct event_queue_call *event_queue_look(struct aws_client *c, struct aws_gate gate,
                                          const char *url, event_queue_look_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)url, (void)cb, (void)ctx;
    no_handler();
    return NULL;
}

void event_queue_cancel(struct event_queue_call *call)
{
    (void)call;
}
