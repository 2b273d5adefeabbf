/* Names used in tables that no list of core/ has. */
#pragma once
#include "core/rows.h"

const char *account_quota_word(enum account_quota q);
/* Parse "500000,800000" into warn->at_ppm. False when it violates the table's CHECK. */
bool warn_at_read(const char *text, struct warn_at *warn);
