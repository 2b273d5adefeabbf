/* See calls.h. */
#include "calls.h"
#include "aws/job_log.h"
#include "output_check.h"

void attempt_attach_io(struct controller *c, struct live_attempt *a)
{
    a->io = xcalloc(1, sizeof *a->io);
    *a->io = (struct attempt_io){.c = c, .attempt_id = a->row.id};
}

static void forget_progress(struct live_attempt *a)
{
    if (a->io->progress != NULL) {
        a->io->progress->attempt = NULL;
        a->io->progress = NULL;
    }
}

void attempt_remove(struct controller *c, struct live_attempt *a)
{
    sagemaker_cancel(a->io->create);
    sagemaker_cancel(a->io->describe);
    sagemaker_cancel(a->io->stop);
    output_cancel(a->io->check);
    job_log_cancel(a->io->log);
    forget_progress(a);
    free(a->io->recast);
    free(a->io);
    a->io = NULL;
    leader_state_remove_attempt(&c->state, a);
}

void pool_attach_io(struct controller *c, struct live_pool *p)
{
    p->io = xcalloc(1, sizeof *p->io);
    *p->io = (struct pool_io){.c = c, .pool_id = p->row.id};
}

void pool_remove(struct controller *c, struct live_pool *p)
{
    sagemaker_cancel(p->io->describe);
    sagemaker_cancel(p->io->update);
    free(p->io);
    p->io = NULL;
    leader_state_remove_pool(&c->state, p);
}

struct job_summary *job_summaries_dup(const struct job_summary *jobs, size_t n)
{
    struct job_summary *ret = xmalloc((n + 1) * sizeof *ret);
    if (n > 0) {
        memcpy(ret, jobs, n * sizeof *ret);
    }
    return ret;
}
