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
/* Let the preparation write its progress over that of others where the output is the task's, as far
 * as can be told before the input is read, which may take long. */
bool download_report_claim(const struct download_report *r, struct sink *sink, const char *part,
                           struct progress_report *report, struct err *err) MUST_CHECK;
void download_report_rows(const struct download_report *r, const struct pipeline *run,
                          struct progress_report **ret);
