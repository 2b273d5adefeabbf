/* Named places where a test ends, freezes or fails the process. They exist only in builds with
 * -DFAILPOINTS.
 * DROVER_FAILPOINT=name:action[:skip[:times]], where action is kill, pause (SIGSTOP to itself) or
 * error, and the first `skip` passes do nothing. DROVER_FAILPOINT_LIST=FILE appends each name
 * passed, once. FP("x") returns true when the action is `error`; the caller then behaves as if the
 * step had failed. */
#pragma once
#include "base.h"
#ifdef FAILPOINTS
bool failpoint_hit(const char *name);
#define FP(name) failpoint_hit(name)
#else
#define FP(name) false
#endif
