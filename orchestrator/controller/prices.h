/* Prices of instance types from the operator's file. */
#pragma once
#include "shell.h"

/* Into the table, inside a transaction; what cannot be read is told and left out. */
bool prices_load(struct controller *c, void *arg, struct err *err);
