/* The leader's state read whole from PostgreSQL, once, at takeover. */
#pragma once
#include "shell.h"

/* Inside leadership; a transaction a step. */
bool view_load(struct controller *c, struct err *err) MUST_CHECK;
