/* See wait_reason.h. */
#include "wait_reason.h"
#include "common/base.h"

static const struct wait_reason_row rows[WAIT_REASON_COUNT] = {
#define X(r, name, holds, turn, gang, ends, binds, told, woken, figures, text, next)               \
    [WAIT_##r] = {                                                                                 \
        WAIT_HOLDS_##holds, turn,  WAIT_GANG_##gang,      WAIT_ENDS_##ends, WAIT_BINDS_##binds,    \
        WAIT_TOLD_##told,   woken, WAIT_FIGURES_##figures},
#include "wait_reason.def"
#undef X
};

const struct wait_reason_row *wait_reason_row(enum wait_reason r)
{
    ASSERT((unsigned)r < WAIT_REASON_COUNT);
    return &rows[r];
}
