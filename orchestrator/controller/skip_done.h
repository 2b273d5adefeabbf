/* Asks S3 about the tasks that core/leader/skip_done.h names, and writes what the answers mean. */
#pragma once
#include "common/base.h"

struct controller;

/* Takes the answers that came, asks about more. False: leadership lost. */
bool skip_done_tick(struct controller *c);
/* Drops all questions. Their tasks are not queued again. */
void skip_done_cancel_all(struct controller *c);
