/* What a download reports: first how far its preparation is, then its rows. */
#pragma once
#include "job/progress_report.h"
#include "pipeline.h"

struct download_report { /* value; all borrowed */
    const struct download_options *o;
    const char *task;
    const char *attempt;
    struct sink *sink; /* for nothing else, until progress_report_stop */
    bool finished;     /* before this run */
};
/* To read or remove the objects of a large earlier output takes long, and a job that tells nothing
 * for long is ended as hung. */
void download_report_preparation(const struct download_report *r, struct progress *p, int host,
                                 struct progress_report **ret);
void download_report_rows(const struct download_report *r, const struct pipeline *run,
                          struct progress_report **ret);
