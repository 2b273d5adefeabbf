/* Names used in tables that no list of core/ has. For this folder only. */
#pragma once
#include "core/model.h"
#include "core/money/ledger.h"
#include "core/rows.h"
#include "store/pg/connection.h"
#include "store/pg/query.h"

/* Bind five parameters: kinds, from, to, amounts, seconds. */
void param_entries(struct params *p, const struct ledger_entry *e, int n);
