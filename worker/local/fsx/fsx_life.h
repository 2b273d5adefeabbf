/* What happens to file systems, associations and tasks by the clock, and their cost: from
 * CreationTime to DeleteFileSystem, whole hours of the capacity. Needs app->mu. */
#pragma once
#include "common/json.h"
#include "common/units.h"
#include <limits.h>

struct app;

/* Every change that is due; returns when the next one is. */
usec_t fsx_tick(struct app *app, usec_t now);
/* Close the line of the invoice at an instant; the next begins there. */
void fsx_charge(struct app *app, const char *id, usec_t at);
/* True while a task of the file system is PENDING or EXECUTING. */
bool fsx_task_runs(const struct app *app, const char *id);
/* The folder that a channel of a job mounts; false: err has the FailureReason. Associations that
 * import by themselves do so now. */
bool fsx_mount(struct app *app, const json_t *source, char out[static PATH_MAX],
               struct err *err) MUST_CHECK;
