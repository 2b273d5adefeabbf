/* Prices: those of the operator's file, and for what it does not name AWS Pricing's list. */
#pragma once
#include "shell.h"

/* Inside a transaction: the file's prices and the stored list into the table of prices. A file that
 * cannot be read changes nothing. False: the database refuses. */
bool prices_load(struct controller *c, void *arg, struct err *err);
/* Inside a transaction: the stored list alone. */
bool prices_use_list(struct controller *c, struct err *err);
/* In memory they are as the table has them from now on; what waited for a price goes on. False: it
 * could not be read. */
bool prices_reread(struct controller *c);
/* Reads the file again when it has changed since it was read last. */
void prices_tick(struct controller *c);
