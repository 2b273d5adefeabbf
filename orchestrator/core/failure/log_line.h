/* One line of a job's log. */
#pragma once
#include "common/str.h"
#include "common/units.h"

struct log_line { /* strings borrowed */
    usec_t time;
    struct str host;
    struct str text;
};
