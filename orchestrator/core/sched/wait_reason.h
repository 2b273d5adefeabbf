/* What follows from a wait reason: the columns of wait_reason.def. */
#pragma once
#include "core/model.h"

enum wait_holds { WAIT_HOLDS_KIND, WAIT_HOLDS_STAGE };
enum wait_gang { WAIT_GANG_ALONE, WAIT_GANG_GATHERS, WAIT_GANG_KEEPS };
enum wait_ends { WAIT_ENDS_LATER, WAIT_ENDS_DRAINED, WAIT_ENDS_SOON };
enum wait_binds {
    WAIT_BINDS_NONE,
    WAIT_BINDS_SLOTS,
    WAIT_BINDS_CONCURRENCY,
    WAIT_BINDS_RATE,
    WAIT_BINDS_MONEY
};
enum wait_told { WAIT_TOLD_PASSES, WAIT_TOLD_WAITS, WAIT_TOLD_BLOCKS };
enum wait_figures { WAIT_FIGURES_NONE, WAIT_FIGURES_QUOTA, WAIT_FIGURES_OWN_CAP };
struct wait_reason_row {
    enum wait_holds holds;
    bool turn;
    enum wait_gang gang;
    enum wait_ends ends;
    enum wait_binds binds;
    enum wait_told told;
    bool woken;
    enum wait_figures figures;
};
/* The row of a reason; static. */
const struct wait_reason_row *wait_reason_row(enum wait_reason r);
