/* See calls.h. */
#include "calls.h"
#include "aws/job_log.h"
#include "common/clock.h"
#include "output_check.h"

void attempt_attach_io(struct controller *c, struct live_attempt *a)
{
    a->io = xcalloc(1, sizeof *a->io);
    *a->io = (struct attempt_io){.c = c, .attempt_id = a->row.id};
}

void attempt_remove(struct controller *c, struct live_attempt *a)
{
    sagemaker_cancel(a->io->create);
    sagemaker_cancel(a->io->describe);
    sagemaker_cancel(a->io->stop);
    output_cancel(a->io->check);
    job_log_cancel(a->io->log);
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

struct listed_page *listed_page_new(const struct job_summary *jobs, size_t n, const char *next,
                                    const struct aws_failure *f)
{
    struct listed_page *p = xcalloc(1, sizeof *p);
    p->at_us = clock_boot_us();
    p->failed = f != NULL;
    p->failure = f != NULL ? *f : (struct aws_failure){.outcome = AWS_OK};
    p->jobs = xcalloc(n + 1, sizeof *p->jobs);
    if (n > 0) {
        memcpy(p->jobs, jobs, n * sizeof *jobs);
    }
    p->n = n;
    p->next = xstrdup(next);
    return p;
}

void listed_page_free(struct listed_page *p)
{
    if (p != NULL) {
        free(p->jobs);
        free(p->next);
        free(p);
    }
}
