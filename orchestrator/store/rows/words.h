/* Words of the tables that no list of core/ has. */
#pragma once
#include "core/rows.h"

const char *account_quota_word(enum account_quota q);
/* "500000,800000" into warn->at_ppm; false: not as the table's CHECK has it. */
bool warn_at_read(const char *text, struct warn_at *warn);
