/* Why a job failed, by the last lines of its log: the last line of the traceback or the last error,
 * of the host that failed first and not of those who died of it. Pure, bounded. */
#pragma once
#include "core/model.h"
#include "log_line.h"

#define LOG_TAIL_HOST_MAX 63
#define LOG_TAIL_TEXT_MAX 400

struct log_tail_evidence {
    enum cause cause; /* UNKNOWN: the lines do not say */
    bool alone;       /* the job ran on this one host as far as the lines show */
    char host[LOG_TAIL_HOST_MAX + 1];
    char text[LOG_TAIL_TEXT_MAX + 1]; /* the line that decided; "" when none speaks of a failure */
};
/* lines of each host in their order; the hosts may be mixed in any way. */
void log_tail_read(const struct log_line *lines, size_t n, struct log_tail_evidence *ret);
