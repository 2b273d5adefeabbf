/* Which stages use the file system of a stage of kind lustre: those of whose channels one names it.
 * Pure. */
#pragma once
#include "core/lowering/training_request.h"
#include "leader_state.h"

enum filesystem_use {
    FILESYSTEM_UNUSED, /* and not again */
    FILESYSTEM_USED,   /* by a stage that has not ended, perhaps */
    FILESYSTEM_KEPT    /* a retry of what has failed would use it: what was imported is not again */
};
enum filesystem_use leader_filesystem_use(const struct leader_state *s,
                                          const struct filesystem_row *r);
/* Notes in r that it is kept for a retry, and in its reason until when and what ends it, or takes
 * that back. True: r has changed. */
bool leader_filesystem_say_kept(const struct leader_state *s, struct filesystem_row *r);
/* The stage whose file system a stage of jobs names, though it was there and will not be there
 * again: its time was over, or somebody deleted it. NULL: none. */
const struct live_stage *leader_filesystem_lost(const struct leader_state *s,
                                                const struct live_campaign *lc,
                                                const struct spec_stage *stage);
/* A file system that jobs of this stage mount is not available, or not any more: no job of it is
 * started now, nor later from a request that names it. */
bool leader_filesystem_going(const struct leader_state *s, const struct live_campaign *lc,
                             const struct spec_stage *stage);
/* The file systems that jobs of this stage mount, for its request; texts are borrowed. Returns how
 * many are there now. */
int leader_filesystem_volumes(const struct leader_state *s, int64_t campaign_id,
                              const struct spec_stage *stage,
                              struct request_volume ret[static SPEC_CHANNELS_MAX]);
/* Its end may be written: a write of its row that failed was long enough ago. */
bool leader_filesystem_end_due(const struct live_filesystem *f, int64_t boot_us);
