/* What attempts teach, from and to its rows. Memory moves after the commit. */
#pragma once
#include "shell.h"

/* Reads what the attempts of the stage have taught so far, into memory. */
bool history_load(struct controller *c, struct live_stage *ls, struct err *err) MUST_CHECK;
/* A person let the stage go on: written. *ret_last: its newest attempt. */
bool history_resume(struct controller *c, struct live_stage *ls, int64_t *ret_last,
                    struct err *err) MUST_CHECK;
/* What the stages of a campaign have learned; what is known of quotas. */
bool history_write(struct controller *c, struct live_campaign *lc, struct err *err) MUST_CHECK;
bool history_write_slots(struct controller *c, usec_t now_us, struct err *err) MUST_CHECK;
/* After the commit. */
void history_written(struct live_campaign *lc);
void history_slots_written(struct controller *c, usec_t now_us);
