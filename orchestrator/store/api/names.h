/* Names of states and causes from core's tables, as arrays for queries that print them. */
#pragma once
#include "core/model.h"

static const char *const names_task_state[] = {
#define X(s, name, terminal, comment) name,
#include "core/states/task_state.def"
#undef X
};
static const char *const names_attempt_state[] = {
#define X(s, name, terminal, comment) name,
#include "core/states/attempt_state.def"
#undef X
};
static const char *const names_cause[] = {
#define X(c, name, counts, times, from_s, to_s, remedy) name,
#include "core/failure/cause.def"
#undef X
};
static const char *const names_remedy[] = {
#define X(c, name, counts, times, from_s, to_s, remedy) remedy,
#include "core/failure/cause.def"
#undef X
};
static const char *const names_wait_reason[] = {
#define X(r, name, holds, turn, gang, ends, binds, told, woken, figures, text, next) name,
#include "core/sched/wait_reason.def"
#undef X
};
static const char *const names_wait_text[] = {
#define X(r, name, holds, turn, gang, ends, binds, told, woken, figures, text, next) text,
#include "core/sched/wait_reason.def"
#undef X
};
/* Reasons that people are told nothing of: those whose column `told` is PASSES. */
static const char *const names_wait_passing[] = {
#define PASSES(name) name,
#define WAITS(name)
#define BLOCKS(name)
#define X(r, name, holds, turn, gang, ends, binds, told, woken, figures, text, next) told(name)
#include "core/sched/wait_reason.def"
#undef X
#undef PASSES
#undef WAITS
#undef BLOCKS
};
static const char *const names_cost_phase[] = {
#define X(p, name, works) name,
#include "core/money/cost_phase.def"
#undef X
};
#define PARAM_NAMES(p, names) param_text_array((p), (names), ARRAY_LEN(names))
