/* Named places where a test may end, freeze or fail the process. Compiled in with -DFAILPOINTS,
 * else nothing. DROVER_FAILPOINT=name:action[:skip[:times]] in the environment; action kill, pause
 * (SIGSTOP to itself) or error; skip passes are let through first. DROVER_FAILPOINT_LIST=FILE
 * appends each name passed, once. FP("x") returns true when the action is `error`: the caller then
 * fails as if the step had. */
#pragma once
#include "base.h"
#ifdef FAILPOINTS
bool failpoint_hit(const char *name);
#define FP(name) failpoint_hit(name)
#else
#define FP(name) false
#endif
