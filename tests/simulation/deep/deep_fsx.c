/* No stage here makes a file system: FSx is never asked. */
#include "aws/fsx.h"
#include "deep.h"

static _Noreturn void no_fsx(void)
{
    deep_die("nobody makes file systems here");
}

struct fsx_call *aws_fsx_create(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                                struct str request, fsx_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)kind, (void)request, (void)cb, (void)ctx;
    no_fsx();
}

struct fsx_call *aws_fsx_describe(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                                  const char *id, fsx_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)kind, (void)id, (void)cb, (void)ctx;
    no_fsx();
}

struct fsx_call *aws_fsx_list(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                              const char *filesystem_id, fsx_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)kind, (void)filesystem_id, (void)cb, (void)ctx;
    no_fsx();
}

struct fsx_call *aws_fsx_end(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                             const char *id, fsx_cb cb, void *ctx)
{
    (void)c, (void)gate, (void)kind, (void)id, (void)cb, (void)ctx;
    no_fsx();
}

void aws_fsx_cancel(struct fsx_call *call)
{
    ASSERT(call == NULL);
}
