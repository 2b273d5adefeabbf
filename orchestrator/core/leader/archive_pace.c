/* See archive_pace.h. */
#include "archive_pace.h"
#include "common/units.h"

#define ROWS_LEAST 200
#define ROWS_MOST  5000
#define STEP_US    (30 * USEC_PER_MSEC)

const char *leader_archive_refusal(enum campaign_state state, int64_t active)
{
    return !campaign_state_terminal(state) ? "it runs again"
           : active > 0                    ? "jobs of it have not ended"
                                           : "";
}

int64_t leader_archive_rows(int64_t rows, int64_t took_us)
{
    int64_t next = took_us < STEP_US / 3 ? 2 * rows : took_us > STEP_US ? rows / 2 : rows;
    return MIN(MAX(next, ROWS_LEAST), ROWS_MOST);
}
