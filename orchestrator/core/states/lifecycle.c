/* Names and edges of every state table. The lists are the .def files; the edges are here, one
 * table a machine. Ends have no way out but a person's retry of parts that failed. A number
 * outside its enum (a row written by a newer version) has no name, is not terminal and has no edge.
 *
 *   attempt   intended -> submitted -> starting -> running -> uploading -> verifying -> succeeded
 *             intended -> unknown (a Create may have taken effect) -> any of those, or void
 *             any live -> stopping | failed | stopped | conflict;  verifying -> failed
 *   task      waiting <-> active -> done | failed | skipped | cancelled;  waiting <-> held
 *   stage     blocked -> running <-> held;  -> succeeded | failed | skipped | cancelled
 *   campaign  planned -> running <-> draining, paused, held;  -> succeeded | failed | cancelled
 *   pool      expected -> available -> reused | terminated;  in_use: a job runs on what it took
 *   endpoint  intended -> creating -> in_service <-> updating;  any of them -> deleting -> deleted
 *             or failed
 *   file system  intended -> creating -> available -> exporting;  any -> deleting -> deleted
 *             or failed */
#include "common/base.h"
#include "core/model.h"
#include <assert.h>

/* Index of `s` in names[n]; n when it is not there. */
static int find_name(const char *const *names, int n, const char *s)
{
    for (int i = 0; i < n; i++) {
        if (s != NULL && strcmp(names[i], s) == 0) {
            return i;
        }
    }
    return n;
}

#define NAMES(prefix, COUNT)                                                                       \
    const char *prefix##_name(enum prefix s)                                                       \
    {                                                                                              \
        return (unsigned)s < COUNT ? prefix##_names[s] : "?";                                      \
    }                                                                                              \
    enum prefix prefix##_parse(const char *s)                                                      \
    {                                                                                              \
        return (enum prefix)find_name(prefix##_names, COUNT, s);                                   \
    }                                                                                              \
    static_assert(ARRAY_LEN(prefix##_names) == COUNT, "every " #prefix " has a name")

#define TERMINAL(prefix, COUNT)                                                                    \
    bool prefix##_terminal(enum prefix s)                                                          \
    {                                                                                              \
        return (unsigned)s < COUNT && prefix##_ends[s];                                            \
    }

#define X(s, name, terminal, comment) name,
static const char *const campaign_state_names[] = {
#include "campaign_state.def"
};
static const char *const stage_state_names[] = {
#include "stage_state.def"
};
static const char *const task_state_names[] = {
#include "task_state.def"
};
static const char *const attempt_state_names[] = {
#include "attempt_state.def"
};
static const char *const operation_state_names[] = {
#include "operation_state.def"
};
static const char *const pool_state_names[] = {
#include "pool_state.def"
};
static const char *const endpoint_state_names[] = {
#include "endpoint_state.def"
};
static const char *const filesystem_state_names[] = {
#include "filesystem_state.def"
};
#undef X
#define X(s, name, terminal, comment) terminal,
static const bool campaign_state_ends[] = {
#include "campaign_state.def"
};
static const bool stage_state_ends[] = {
#include "stage_state.def"
};
static const bool task_state_ends[] = {
#include "task_state.def"
};
static const bool attempt_state_ends[] = {
#include "attempt_state.def"
};
static const bool pool_state_ends[] = {
#include "pool_state.def"
};
static const bool endpoint_state_ends[] = {
#include "endpoint_state.def"
};
static const bool filesystem_state_ends[] = {
#include "filesystem_state.def"
};
#undef X
#define X(k, name, remedy) name,
static const char *const parked_kind_names[] = {
#include "parked_kind.def"
};
#undef X
#define X(k, name) name,
static const char *const resource_kind_names[] = {
#include "resource_kind.def"
};
#undef X
#define X(k, name, remedy) remedy,
static const char *const parked_kind_remedies[] = {
#include "parked_kind.def"
};
#undef X
#define X(c, name, counts, times, from_s, to_s, remedy) name,
static const char *const cause_names[] = {
#include "core/failure/cause.def"
};
#undef X
#define X(c, name, counts, times, from_s, to_s, remedy) remedy,
static const char *const cause_remedies[] = {
#include "core/failure/cause.def"
};
#undef X
#define X(r, name, holds, turn, gang, ends, binds, told, woken, figures, text, next) name,
static const char *const wait_reason_names[] = {
#include "core/sched/wait_reason.def"
};
#undef X
#define X(r, name, holds, turn, gang, ends, binds, told, woken, figures, text, next) text,
static const char *const wait_reason_texts[] = {
#include "core/sched/wait_reason.def"
};
#undef X
#define X(r, name, holds, turn, gang, ends, binds, told, woken, figures, text, next) next,
static const char *const wait_reason_nexts[] = {
#include "core/sched/wait_reason.def"
};
#undef X
static const char *const wanted_names[] = {
    [WANTED_RUN] = "run",
    [WANTED_DRAIN] = "drain",
    [WANTED_PAUSE] = "pause",
    [WANTED_CANCEL] = "cancel",
};
static const char *const market_names[] = {
    [MARKET_ON_DEMAND] = "on_demand",
    [MARKET_SPOT] = "spot",
};
static const char *const at_limit_names[] = {
    [AT_LIMIT_DRAIN] = "drain",
    [AT_LIMIT_STOP] = "stop",
    [AT_LIMIT_HOLD] = "hold",
};

NAMES(campaign_state, CAMPAIGN_STATE_COUNT);
NAMES(stage_state, STAGE_STATE_COUNT);
NAMES(task_state, TASK_STATE_COUNT);
NAMES(attempt_state, ATTEMPT_STATE_COUNT);
NAMES(operation_state, OPERATION_STATE_COUNT);
NAMES(pool_state, POOL_STATE_COUNT);
NAMES(endpoint_state, ENDPOINT_STATE_COUNT);
NAMES(filesystem_state, FILESYSTEM_STATE_COUNT);
NAMES(parked_kind, PARKED_KIND_COUNT);
NAMES(resource_kind, RESOURCE_KIND_COUNT);
NAMES(cause, CAUSE_COUNT);
NAMES(wanted, WANTED_COUNT);
NAMES(market, MARKET_COUNT);
NAMES(at_limit, AT_LIMIT_COUNT);

const char *quota_market_name(enum market m, bool warm)
{
    return warm ? "warm" : market_name(m);
}

TERMINAL(campaign_state, CAMPAIGN_STATE_COUNT)
TERMINAL(stage_state, STAGE_STATE_COUNT)
TERMINAL(task_state, TASK_STATE_COUNT)
TERMINAL(attempt_state, ATTEMPT_STATE_COUNT)
TERMINAL(pool_state, POOL_STATE_COUNT)
TERMINAL(endpoint_state, ENDPOINT_STATE_COUNT)
TERMINAL(filesystem_state, FILESYSTEM_STATE_COUNT)

const char *parked_kind_remedy(enum parked_kind k)
{
    return (unsigned)k < PARKED_KIND_COUNT ? parked_kind_remedies[k] : "";
}

const char *cause_remedy(enum cause c)
{
    return (unsigned)c < CAUSE_COUNT ? cause_remedies[c] : "";
}

const char *wait_reason_name(enum wait_reason r)
{
    return (unsigned)r < WAIT_REASON_COUNT ? wait_reason_names[r] : "?";
}

const char *wait_reason_text(enum wait_reason r)
{
    return (unsigned)r < WAIT_REASON_COUNT ? wait_reason_texts[r] : "";
}

const char *wait_reason_next(enum wait_reason r)
{
    return (unsigned)r < WAIT_REASON_COUNT ? wait_reason_nexts[r] : "";
}

enum wait_reason wait_reason_parse(const char *s)
{
    return (enum wait_reason)find_name(wait_reason_names, WAIT_REASON_COUNT, s);
}

static const bool campaign_edges[CAMPAIGN_STATE_COUNT][CAMPAIGN_STATE_COUNT] = {
    [CAMPAIGN_PLANNED] = {[CAMPAIGN_RUNNING] = true,
                          [CAMPAIGN_DRAINING] = true,
                          [CAMPAIGN_PAUSED] = true,
                          [CAMPAIGN_HELD] = true,
                          [CAMPAIGN_FAILED] = true,
                          [CAMPAIGN_CANCELLED] = true},
    [CAMPAIGN_RUNNING] = {[CAMPAIGN_DRAINING] = true,
                          [CAMPAIGN_PAUSED] = true,
                          [CAMPAIGN_HELD] = true,
                          [CAMPAIGN_SUCCEEDED] = true,
                          [CAMPAIGN_FAILED] = true,
                          [CAMPAIGN_CANCELLED] = true},
    [CAMPAIGN_DRAINING] = {[CAMPAIGN_RUNNING] = true,
                           [CAMPAIGN_PAUSED] = true,
                           [CAMPAIGN_HELD] = true,
                           [CAMPAIGN_SUCCEEDED] = true,
                           [CAMPAIGN_FAILED] = true,
                           [CAMPAIGN_CANCELLED] = true},
    [CAMPAIGN_PAUSED] = {[CAMPAIGN_RUNNING] = true,
                         [CAMPAIGN_DRAINING] = true,
                         [CAMPAIGN_HELD] = true,
                         [CAMPAIGN_SUCCEEDED] = true,
                         [CAMPAIGN_FAILED] = true,
                         [CAMPAIGN_CANCELLED] = true},
    [CAMPAIGN_HELD] = {[CAMPAIGN_RUNNING] = true,
                       [CAMPAIGN_DRAINING] = true,
                       [CAMPAIGN_PAUSED] = true,
                       [CAMPAIGN_SUCCEEDED] = true,
                       [CAMPAIGN_FAILED] = true,
                       [CAMPAIGN_CANCELLED] = true},
    [CAMPAIGN_SUCCEEDED] = {[CAMPAIGN_RUNNING] = true}, /* a person retried failed parts */
    [CAMPAIGN_FAILED] = {[CAMPAIGN_RUNNING] = true},
};

static const bool stage_edges[STAGE_STATE_COUNT][STAGE_STATE_COUNT] = {
    [STAGE_BLOCKED] = {[STAGE_RUNNING] = true,
                       [STAGE_HELD] = true,
                       [STAGE_FAILED] = true, /* its input cannot be listed */
                       [STAGE_SKIPPED] = true,
                       [STAGE_CANCELLED] = true},
    [STAGE_RUNNING] = {[STAGE_HELD] = true,
                       [STAGE_SUCCEEDED] = true,
                       [STAGE_FAILED] = true,
                       [STAGE_SKIPPED] = true,
                       [STAGE_CANCELLED] = true},
    [STAGE_HELD] = {[STAGE_RUNNING] = true,
                    [STAGE_SUCCEEDED] = true,
                    [STAGE_FAILED] = true,
                    [STAGE_SKIPPED] = true,
                    [STAGE_CANCELLED] = true},
    [STAGE_SUCCEEDED] = {[STAGE_RUNNING] = true}, /* a person retried failed parts */
    [STAGE_FAILED] = {[STAGE_RUNNING] = true},
    [STAGE_SKIPPED] = {[STAGE_BLOCKED] = true}, /* of a stage that it needs */
};

static const bool task_edges[TASK_STATE_COUNT][TASK_STATE_COUNT] = {
    [TASK_WAITING] = {[TASK_ACTIVE] = true,
                      [TASK_HELD] = true,
                      [TASK_FAILED] = true, /* what it needs is gone */
                      [TASK_SKIPPED] = true,
                      [TASK_CANCELLED] = true},
    [TASK_ACTIVE] = {[TASK_WAITING] = true, /* a retry, or its attempt was voided */
                     [TASK_DONE] = true,
                     [TASK_FAILED] = true,
                     [TASK_SKIPPED] = true,
                     [TASK_CANCELLED] = true},
    [TASK_HELD] = {[TASK_WAITING] = true,
                   [TASK_FAILED] = true, /* the retry that made it wait is undone */
                   [TASK_SKIPPED] = true,
                   [TASK_CANCELLED] = true},
    [TASK_FAILED] = {[TASK_WAITING] = true, [TASK_SKIPPED] = true}, /* an operator's doing */
};

static const bool attempt_edges[ATTEMPT_STATE_COUNT][ATTEMPT_STATE_COUNT] = {
    [ATTEMPT_INTENDED] = {[ATTEMPT_UNKNOWN] = true,
                          [ATTEMPT_SUBMITTED] = true,
                          [ATTEMPT_FAILED] = true,
                          [ATTEMPT_CONFLICT] = true,
                          [ATTEMPT_VOID] = true},
    [ATTEMPT_UNKNOWN] = {[ATTEMPT_SUBMITTED] = true,
                         [ATTEMPT_STARTING] = true,
                         [ATTEMPT_RUNNING] = true,
                         [ATTEMPT_UPLOADING] = true,
                         [ATTEMPT_STOPPING] = true,
                         [ATTEMPT_VERIFYING] = true,
                         [ATTEMPT_FAILED] = true,
                         [ATTEMPT_STOPPED] = true,
                         [ATTEMPT_CONFLICT] = true,
                         [ATTEMPT_VOID] = true},
    [ATTEMPT_SUBMITTED] = {[ATTEMPT_STARTING] = true,
                           [ATTEMPT_RUNNING] = true,
                           [ATTEMPT_UPLOADING] = true,
                           [ATTEMPT_STOPPING] = true,
                           [ATTEMPT_VERIFYING] = true,
                           [ATTEMPT_FAILED] = true,
                           [ATTEMPT_STOPPED] = true,
                           [ATTEMPT_CONFLICT] = true},
    [ATTEMPT_STARTING] = {[ATTEMPT_RUNNING] = true,
                          [ATTEMPT_UPLOADING] = true,
                          [ATTEMPT_STOPPING] = true,
                          [ATTEMPT_VERIFYING] = true,
                          [ATTEMPT_FAILED] = true,
                          [ATTEMPT_STOPPED] = true,
                          [ATTEMPT_CONFLICT] = true},
    [ATTEMPT_RUNNING] = {[ATTEMPT_STARTING] = true, /* spot, RetryStrategy */
                         [ATTEMPT_UPLOADING] = true,
                         [ATTEMPT_STOPPING] = true,
                         [ATTEMPT_VERIFYING] = true,
                         [ATTEMPT_FAILED] = true,
                         [ATTEMPT_STOPPED] = true,
                         [ATTEMPT_CONFLICT] = true},
    [ATTEMPT_UPLOADING] = {[ATTEMPT_STARTING] = true,
                           [ATTEMPT_STOPPING] = true,
                           [ATTEMPT_VERIFYING] = true,
                           [ATTEMPT_FAILED] = true,
                           [ATTEMPT_STOPPED] = true,
                           [ATTEMPT_CONFLICT] = true},
    [ATTEMPT_STOPPING] = {[ATTEMPT_VERIFYING] = true, /* a stop races with the end */
                          [ATTEMPT_FAILED] = true,
                          [ATTEMPT_STOPPED] = true,
                          [ATTEMPT_CONFLICT] = true},
    [ATTEMPT_VERIFYING] = {[ATTEMPT_SUCCEEDED] = true, [ATTEMPT_FAILED] = true},
};

bool campaign_edge(enum campaign_state from, enum campaign_state to)
{
    return (unsigned)from < CAMPAIGN_STATE_COUNT && (unsigned)to < CAMPAIGN_STATE_COUNT &&
           campaign_edges[from][to];
}

bool stage_edge(enum stage_state from, enum stage_state to)
{
    return (unsigned)from < STAGE_STATE_COUNT && (unsigned)to < STAGE_STATE_COUNT &&
           stage_edges[from][to];
}

bool task_edge(enum task_state from, enum task_state to)
{
    return (unsigned)from < TASK_STATE_COUNT && (unsigned)to < TASK_STATE_COUNT &&
           task_edges[from][to];
}

bool attempt_edge(enum attempt_state from, enum attempt_state to)
{
    return (unsigned)from < ATTEMPT_STATE_COUNT && (unsigned)to < ATTEMPT_STATE_COUNT &&
           attempt_edges[from][to];
}

/* A pool row belongs to the attempt that leaves it. IN_USE: that attempt runs on instances it took
 * from another pool, and will leave them in its turn. */
static const bool pool_edges[POOL_STATE_COUNT][POOL_STATE_COUNT] = {
    [POOL_EXPECTED] = {[POOL_AVAILABLE] = true,
                       [POOL_IN_USE] = true,
                       [POOL_REUSED] = true,
                       [POOL_TERMINATED] = true},
    [POOL_AVAILABLE] = {[POOL_REUSED] = true, [POOL_TERMINATED] = true},
    [POOL_IN_USE] = {[POOL_AVAILABLE] = true, [POOL_REUSED] = true, [POOL_TERMINATED] = true},
};

bool pool_edge(enum pool_state from, enum pool_state to)
{
    return (unsigned)from < POOL_STATE_COUNT && (unsigned)to < POOL_STATE_COUNT &&
           pool_edges[from][to];
}

/* It ends by way of DELETING alone: an end says that nothing of it is left at AWS. */
static const bool endpoint_edges[ENDPOINT_STATE_COUNT][ENDPOINT_STATE_COUNT] = {
    [ENDPOINT_INTENDED] = {[ENDPOINT_CREATING] = true, [ENDPOINT_DELETING] = true},
    [ENDPOINT_CREATING] = {[ENDPOINT_IN_SERVICE] = true, [ENDPOINT_DELETING] = true},
    [ENDPOINT_IN_SERVICE] = {[ENDPOINT_UPDATING] = true, [ENDPOINT_DELETING] = true},
    [ENDPOINT_UPDATING] = {[ENDPOINT_IN_SERVICE] = true, [ENDPOINT_DELETING] = true},
    [ENDPOINT_DELETING] = {[ENDPOINT_DELETED] = true, [ENDPOINT_FAILED] = true},
};

bool endpoint_edge(enum endpoint_state from, enum endpoint_state to)
{
    return (unsigned)from < ENDPOINT_STATE_COUNT && (unsigned)to < ENDPOINT_STATE_COUNT &&
           endpoint_edges[from][to];
}

bool attempt_holds_slot(enum attempt_state s)
{
    return (unsigned)s <= ATTEMPT_STOPPING;
}

/* As that of an endpoint. MISCONFIGURED, which has no edge, is a word of AWS: one that never was
 * available is deleted as failed; of one in use it is only said, since that can be mended. */
static const bool filesystem_edges[FILESYSTEM_STATE_COUNT][FILESYSTEM_STATE_COUNT] = {
    [FILESYSTEM_INTENDED] = {[FILESYSTEM_CREATING] = true, [FILESYSTEM_DELETING] = true},
    [FILESYSTEM_CREATING] = {[FILESYSTEM_AVAILABLE] = true, [FILESYSTEM_DELETING] = true},
    [FILESYSTEM_AVAILABLE] = {[FILESYSTEM_EXPORTING] = true, [FILESYSTEM_DELETING] = true},
    [FILESYSTEM_EXPORTING] = {[FILESYSTEM_DELETING] = true},
    [FILESYSTEM_DELETING] = {[FILESYSTEM_DELETED] = true, [FILESYSTEM_FAILED] = true},
};

bool filesystem_edge(enum filesystem_state from, enum filesystem_state to)
{
    return (unsigned)from < FILESYSTEM_STATE_COUNT && (unsigned)to < FILESYSTEM_STATE_COUNT &&
           filesystem_edges[from][to];
}
