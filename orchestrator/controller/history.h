/* What attempts teach, from and to its rows. A failed transaction ends the leadership, so memory
 * is what the rows say even though it moves before the commit. */
#pragma once
#include "shell.h"

bool history_load(struct controller *c, struct live_stage *ls, struct err *err) MUST_CHECK;
/* A person let the stage go on: written and reset. */
bool history_resume(struct controller *c, struct live_stage *ls, struct err *err) MUST_CHECK;
bool history_write(struct controller *c, usec_t now_us, struct err *err) MUST_CHECK;
