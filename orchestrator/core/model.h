/* Values the whole controller speaks in: states, causes, rows. Plain data, copied freely, no
 * pointers into other objects. State lists are the .def files; SQL repeats them as CHECK
 * constraints and a test compares. */
#pragma once
#include "common/units.h"

enum campaign_state {
#define X(s, name, terminal, comment) CAMPAIGN_##s,
#include "core/states/campaign_state.def"
#undef X
    CAMPAIGN_STATE_COUNT
};
enum stage_state {
#define X(s, name, terminal, comment) STAGE_##s,
#include "core/states/stage_state.def"
#undef X
    STAGE_STATE_COUNT
};
enum task_state {
#define X(s, name, terminal, comment) TASK_##s,
#include "core/states/task_state.def"
#undef X
    TASK_STATE_COUNT
};
enum attempt_state {
#define X(s, name, terminal, comment) ATTEMPT_##s,
#include "core/states/attempt_state.def"
#undef X
    ATTEMPT_STATE_COUNT
};
enum operation_state {
#define X(s, name, terminal, comment) OPERATION_##s,
#include "core/states/operation_state.def"
#undef X
    OPERATION_STATE_COUNT
};
enum pool_state {
#define X(s, name, terminal, comment) POOL_##s,
#include "core/states/pool_state.def"
#undef X
    POOL_STATE_COUNT
};
enum endpoint_state {
#define X(s, name, terminal, comment) ENDPOINT_##s,
#include "core/states/endpoint_state.def"
#undef X
    ENDPOINT_STATE_COUNT
};
enum filesystem_state {
#define X(s, name, terminal, comment) FILESYSTEM_##s,
#include "core/states/filesystem_state.def"
#undef X
    FILESYSTEM_STATE_COUNT
};
/* What may be parked: set aside because the database or this binary refuses one of its values. */
enum parked_kind {
#define X(k, name, remedy) PARKED_##k,
#include "core/states/parked_kind.def"
#undef X
    PARKED_KIND_COUNT
};
/* What may be a stray and is no job. */
enum resource_kind {
#define X(k, name) RESOURCE_##k,
#include "core/states/resource_kind.def"
#undef X
    RESOURCE_KIND_COUNT
};
enum cause {
#define X(c, name, counts, times, from_s, to_s, remedy) CAUSE_##c,
#include "core/failure/cause.def"
#undef X
    CAUSE_COUNT
};
enum wait_reason {
#define X(r, name, holds, turn, gang, ends, binds, told, woken, figures, text, next) WAIT_##r,
#include "core/sched/wait_reason.def"
#undef X
    WAIT_REASON_COUNT
};
/* What people want of a campaign; written by the API, read by the leader. */
enum wanted {
    WANTED_RUN,
    WANTED_DRAIN,
    WANTED_PAUSE,
    WANTED_CANCEL,
    WANTED_COUNT
}; /* PAUSE stops what runs */
/* How instances are bought; each has quotas of its own. */
enum market { MARKET_ON_DEMAND, MARKET_SPOT, MARKET_COUNT };
/* What becomes of a campaign whose budget is used up. */
enum at_limit { AT_LIMIT_DRAIN, AT_LIMIT_STOP, AT_LIMIT_HOLD };
#define AT_LIMIT_COUNT 3

#define JOB_NAME_MAX      63
#define INSTANCE_TYPE_MAX 32
#define HASH_HEX_N        65
#define REQUEST_BYTES_MAX (1024 * 1024) /* of a request: what SageMaker takes, and what we store */
#define VOLUME_GB_MAX     16384         /* the largest volume SageMaker gives an instance */
#define WARNS_MAX         8             /* thresholds of one cap that people are told of */
#define PHASE_FIGURES_N   18            /* of an attempt, as stored: see cost_phase_store */

struct job_name {
    char s[JOB_NAME_MAX + 1];
};

/* Size of a task's input in MB as scheduler and forecast count it; 0 bytes: not known. */
static inline uint32_t size_mb_of(int64_t bytes)
{
    int64_t mb = bytes / (1024 * 1024);
    return mb < 0 ? 0 : mb > UINT32_MAX ? UINT32_MAX : (uint32_t)mb;
}

/* lifecycle.c: names and edges of every state table. _parse gives COUNT for an unknown name. */
const char *campaign_state_name(enum campaign_state s);
const char *stage_state_name(enum stage_state s);
const char *task_state_name(enum task_state s);
const char *attempt_state_name(enum attempt_state s);
const char *operation_state_name(enum operation_state s);
const char *pool_state_name(enum pool_state s);
const char *endpoint_state_name(enum endpoint_state s);
const char *filesystem_state_name(enum filesystem_state s);
const char *parked_kind_name(enum parked_kind k);
const char *resource_kind_name(enum resource_kind k);
/* What a person can do; {c} stands for the campaign. */
const char *parked_kind_remedy(enum parked_kind k);
const char *cause_name(enum cause c);
const char *cause_remedy(enum cause c);
const char *wait_reason_name(enum wait_reason r);
const char *wait_reason_text(enum wait_reason r);
/* What would change it: a command with {c} for the campaign; "" when time alone does. */
const char *wait_reason_next(enum wait_reason r);
enum wait_reason wait_reason_parse(const char *s);
const char *wanted_name(enum wanted w);
const char *market_name(enum market m);
/* The market of a quota as it is stored and shown; warm: of the quota of warm pools. */
const char *quota_market_name(enum market m, bool warm);
const char *at_limit_name(enum at_limit a);
enum campaign_state campaign_state_parse(const char *s);
enum stage_state stage_state_parse(const char *s);
enum task_state task_state_parse(const char *s);
enum attempt_state attempt_state_parse(const char *s);
enum operation_state operation_state_parse(const char *s);
enum pool_state pool_state_parse(const char *s);
enum endpoint_state endpoint_state_parse(const char *s);
enum filesystem_state filesystem_state_parse(const char *s);
enum parked_kind parked_kind_parse(const char *s);
enum resource_kind resource_kind_parse(const char *s);
enum cause cause_parse(const char *s);
enum wanted wanted_parse(const char *s);
enum market market_parse(const char *s);
enum at_limit at_limit_parse(const char *s);
bool campaign_state_terminal(enum campaign_state s);
bool stage_state_terminal(enum stage_state s);
bool task_state_terminal(enum task_state s);
bool attempt_state_terminal(enum attempt_state s);
bool pool_state_terminal(enum pool_state s);
bool endpoint_state_terminal(enum endpoint_state s);
bool filesystem_state_terminal(enum filesystem_state s);
bool campaign_edge(enum campaign_state from, enum campaign_state to);
bool stage_edge(enum stage_state from, enum stage_state to);
bool task_edge(enum task_state from, enum task_state to);
bool attempt_edge(enum attempt_state from, enum attempt_state to);
bool pool_edge(enum pool_state from, enum pool_state to);
bool endpoint_edge(enum endpoint_state from, enum endpoint_state to);
bool filesystem_edge(enum filesystem_state from, enum filesystem_state to);
/* Whether an attempt in this state holds its slots (and its reservation). INTENDED..STOPPING do;
 * VERIFYING and the end do not. */
bool attempt_holds_slot(enum attempt_state s);
