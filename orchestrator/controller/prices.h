/* Prices: those of the operator's file, and for what it does not name AWS Pricing's list. */
#pragma once
#include "shell.h"

/* The file's prices and the stored list into the table of prices. A file that cannot be read
 * changes nothing. When the database refuses, prices are as the table has them, and the next tick
 * tries again. */
void prices_take_over(struct controller *c);
/* Inside a transaction: the stored list alone. */
bool prices_use_list(struct controller *c, struct err *err);
/* In memory they are as the table has them from now on; what waited for a price goes on. False: it
 * could not be read. */
bool prices_reread(struct controller *c);
/* Reads them again when the file has changed since it was read last, or when that was refused. */
void prices_tick(struct controller *c);
