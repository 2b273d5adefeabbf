/* The end of a download: everything is checked, then the manifest is written. */
#pragma once
#include "manifest_extend.h"
#include "part_hosts.h"
#include "resume.h"

struct finish { /* value, all borrowed */
    struct sink *sink;
    const struct pipeline *run;
    const struct resume *resume;
    const struct writer *writer;
    struct manifest_extend *extend; /* its objects move into the manifest */
    struct part_hosts *hosts;       /* NULL: this host has the whole part */
    bool late;                      /* see part_hosts_clean */
    const char *task;
    const char *attempt;
    usec_t started_us;
};
/* Before anything is fetched: true when drover may check so large an output. `first`: shards of
 * earlier parts. ERR_LIMIT: it has too many objects. */
bool finish_can_be_checked(const struct pipeline *run, const char *attempt, int64_t first,
                           struct err *err) MUST_CHECK;
/* Check our share of the shards and tell the other hosts that it is finished. Only with hosts;
 * uses their sink. */
bool finish_share(const struct finish *f, struct err *err) MUST_CHECK;
/* Check every shard and write the manifest. *ret_whole false: other hosts have not finished, and
 * nothing was written; else *ret_total counts all rows, and the caller calls stats_done. */
bool finish_part(const struct finish *f, struct stats *ret_total, bool *ret_whole,
                 struct err *err) MUST_CHECK;
