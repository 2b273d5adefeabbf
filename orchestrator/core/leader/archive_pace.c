/* See archive_pace.h. */
#include "archive_pace.h"
#include "call_again.h"
#include <string.h>

#define ROWS_LEAST 200
#define ROWS_MOST  5000
#define STEP_US    (30 * USEC_PER_MSEC)
#define TOLD_TIMES 20

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

bool leader_archive_exports(const struct operation_row *op)
{
    return op->selector_json != NULL && strstr(op->selector_json, "\"to\"") != NULL;
}

struct archive_told leader_archive_told(const struct operation_row *op, bool over, int64_t attempts)
{
    int64_t done = over ? op->total : MIN(attempts, op->total);
    return (struct archive_told){.tells = over || op->state == OPERATION_ACCEPTED ||
                                          done - op->done >= MAX(1, op->total / TOLD_TIMES),
                                 .state = over ? OPERATION_DONE : OPERATION_RUNNING,
                                 .done = done};
}

bool leader_archive_put_due(const struct archive_put_pace *p, int64_t boot_us)
{
    return boot_us >= p->next_us;
}

void leader_archive_put_answered(struct archive_put_pace *p, bool ok, int64_t boot_us)
{
    p->next_us = ok ? 0 : boot_us + retry_step_us(AGAIN_US, AGAIN_MAX_US, p->failures);
    p->failures = ok ? 0 : MIN(p->failures + 1, 1000);
}

void leader_archive_put_nowhere(struct archive_put_pace *p, int64_t boot_us)
{
    p->next_us = boot_us + AGAIN_MAX_US;
}
