/* Lines of a job's log as people read them. */
#pragma once
#include "common/json.h"

/* For each line ({time, host, text}): `level` is "error", "warn" or "info". A line that is a JSON
 * object with an `event`, as our programs write them, gets `shown`: "event key=value ..."; `text`
 * stays as it came. */
void log_lines_readable(json_t *lines);
