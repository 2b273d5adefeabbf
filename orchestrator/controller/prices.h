/* Prices from the operator's file. */
#pragma once
#include "shell.h"

/* Inside a transaction: the file's prices into their table. A file that cannot be read changes
 * nothing. False: the database refuses. */
bool prices_load(struct controller *c, void *arg, struct err *err);
/* Reads the file again when it has changed since it was read last; what waited for a price goes
 * on. */
void prices_tick(struct controller *c);
