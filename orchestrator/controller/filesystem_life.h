/* Carries the life of file systems (core/leader/filesystem_life.h): one call at a time about each,
 * its answer written before the next. */
#pragma once
#include "shell.h"

/* Rows at takeover, and what people have asked of them since. */
bool filesystems_read(struct controller *c, struct err *err) MUST_CHECK;
/* Of one that is open. */
void filesystem_attach_io(struct controller *c, struct live_filesystem *f);
/* Writes what came of the answers. */
void filesystems_record(struct controller *c);
/* The next calls. *wake_us is lowered to when it is to run again. */
void filesystems_tick(struct controller *c, int64_t *wake_us);
void filesystems_cancel(struct controller *c);
