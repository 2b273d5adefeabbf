/* The keys in which two campaign files differ, as they were written. */
#pragma once
#include "common/position.h"
#include "common/str.h"

/* Add one fault per key of which the files have different values, or that only one of them has:
 * pointer "stages.download.max_runtime", message "1h -> 2h", code "changed", "added" or "removed",
 * the position in `after`; a map with a `name` that only one file has is one key. Entries of a
 * list are matched by their `name` where all have one. !secrets: values of `vars` and `environment`
 * are left out. A text that is not YAML has no keys. */
void spec_diff(struct str before, struct str after, bool secrets, struct faults *out);
