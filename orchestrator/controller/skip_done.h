/* Asks S3 about the tasks that core/leader/skip_done.h names, and writes what the answers mean. */
#pragma once
#include "core/leader/skip_done.h"

struct controller;

/* Takes the answers that came, asks about more. False: leadership lost. */
bool skip_done_tick(struct controller *c);
/* The tasks that are asked about, or whose answer was not taken yet. Returns how many. */
size_t skip_done_busy(const struct controller *c, int64_t ret_ids[static SKIP_DONE_AT_ONCE]);
/* Drops all questions. Their tasks are not queued again. */
void skip_done_cancel_all(struct controller *c);
