/* Words of the tables that no list of core/ has. Of this folder alone. */
#pragma once
#include "core/model.h"
#include "core/money/ledger.h"
#include "leader.h"
#include "store/pg/query.h"

/* Five parameters: kinds, from, to, amounts, seconds. */
void param_entries(struct params *p, const struct ledger_entry *e, int n);
