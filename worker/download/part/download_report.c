/* See download_report.h. */
#include "download_report.h"
#include "incremental_mode.h"
#include "summary.h"

static struct progress_report_config config_of(const struct download_report *r)
{
    return (struct progress_report_config){.as = r->o->report,
                                           .task = r->task,
                                           .attempt = r->attempt,
                                           .interval_us = r->o->progress_interval_s * USEC_PER_SEC,
                                           .line = summary_line};
}

void download_report_preparation(const struct download_report *r, struct progress *p, int host,
                                 struct progress_report **ret)
{
    struct progress_report_config c = config_of(r);
    c.progress = p;
    c.of = PROGRESS_REPORT_OF_PREPARATION;
    c.host = host;
    c.keep_file = r->finished;
    p->rows_in = p->shards_in = -1;
    progress_report_start(&c, r->sink, ret);
}

bool download_report_claim(const struct download_report *r, struct sink *sink, const char *part,
                           struct progress_report *report, struct err *err)
{
    bool ours = r->finished;
    if (!r->finished && !incremental_mode_claims(sink, r->o, r->task, part, &ours, err)) {
        return false;
    }
    if (ours && r->task[0] != '\0') { /* nothing waits for the progress of a run by hand */
        progress_report_borrow(report);
    }
    return true;
}

void download_report_rows(const struct download_report *r, const struct pipeline *run,
                          struct progress_report **ret)
{
    struct progress_report_config c = config_of(r);
    c.progress = &run->progress;
    c.of = PROGRESS_REPORT_OF_ROWS;
    c.host = run->host;
    c.hosts = run->hosts;
    c.rows_all = run->rows;
    c.shards_all = pipeline_shards(run);
    progress_report_start(&c, r->sink, ret);
}
