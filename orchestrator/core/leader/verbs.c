/* See verbs.h. */
#include "verbs.h"
#include <assert.h>
#include <string.h>

#define CAMPAIGN_CANCELLING CAMPAIGN_STATE_COUNT /* besides the states themselves */
#define CAMPAIGN_GATED      (CAMPAIGN_STATE_COUNT + 1)
#define CAMPAIGN_ARCHIVED   (CAMPAIGN_STATE_COUNT + 2)

static const char *const verb_names[] = {
    [VERB_RETRY] = "retry",     [VERB_SKIP] = "skip",     [VERB_HOLD] = "hold",
    [VERB_RELEASE] = "release", [VERB_PAUSE] = "pause",   [VERB_RESUME] = "resume",
    [VERB_DRAIN] = "drain",     [VERB_CANCEL] = "cancel", [VERB_ARCHIVE] = "archive",
};
static_assert(ARRAY_LEN(verb_names) == VERB_COUNT, "every verb has a name");

static const struct {
    bool moves;
    enum task_state from, to;
} part_moves[VERB_COUNT] = {
    [VERB_RETRY] = {true, TASK_FAILED, TASK_WAITING},
    [VERB_SKIP] = {true, TASK_FAILED, TASK_SKIPPED},
    [VERB_HOLD] = {true, TASK_WAITING, TASK_HELD},
    [VERB_RELEASE] = {true, TASK_HELD, TASK_WAITING},
};

static const char *const refusals[VERB_ANSWER_COUNT] = {
    [VERB_CARRIED_OUT] = "",
    [VERB_REOPENS] = "",
    [VERB_GOES_ON] = "",
    [VERB_CANCELLED] = "it was cancelled; submit it again",
    [VERB_CANCELLING] = "it is being cancelled; submit it again",
    [VERB_ENDED] = "it has ended; retry its failed parts, or submit it again",
    [VERB_STAGE_CANCELLED] = "the stage was cancelled; submit the campaign again",
    [VERB_GATED] = "a gate holds it, which resuming does not open",
    [VERB_NOT_ENDED] = "it has not ended; wait for its end or cancel it, then archive it",
    [VERB_ARCHIVED] = "it is archived; submit it again",
    [VERB_NO_SUCH_TYPE] = "a stage of it does not list this instance type; retry by stage",
};

#define X(verb, campaign, blocked, running, held, succeeded, failed, skipped, cancelled)           \
    [VERB_##verb][CAMPAIGN_##campaign] = {                                                         \
        [STAGE_BLOCKED] = VERB_##blocked,    [STAGE_RUNNING] = VERB_##running,                     \
        [STAGE_HELD] = VERB_##held,          [STAGE_SUCCEEDED] = VERB_##succeeded,                 \
        [STAGE_FAILED] = VERB_##failed,      [STAGE_SKIPPED] = VERB_##skipped,                     \
        [STAGE_CANCELLED] = VERB_##cancelled},
static const uint8_t table[VERB_COUNT][CAMPAIGN_STATE_COUNT + 3][STAGE_STATE_COUNT] = {
#include "operation_table.def"
};
#undef X

const char *verb_name(enum verb v)
{
    return (unsigned)v < VERB_COUNT ? verb_names[v] : "?";
}

enum verb verb_parse(const char *s)
{
    for (int i = 0; i < VERB_COUNT; i++) {
        if (strcmp(verb_names[i], s) == 0) {
            return (enum verb)i;
        }
    }
    return VERB_COUNT;
}

enum verb_answer verb_answer(enum verb v, enum campaign_state campaign, enum wanted wanted,
                             enum stage_state stage)
{
    bool cancelling = wanted == WANTED_CANCEL && !campaign_state_terminal(campaign);
    ASSERT((unsigned)v < VERB_COUNT);
    if ((unsigned)campaign >= CAMPAIGN_STATE_COUNT || (unsigned)stage >= STAGE_STATE_COUNT) {
        return VERB_ENDED;
    }
    return (enum verb_answer)table[v][cancelling ? CAMPAIGN_CANCELLING : campaign][stage];
}

enum verb_answer verb_answer_any(enum verb v, enum campaign_state campaign, enum wanted wanted)
{
    return verb_answer(v, campaign, wanted, STAGE_RUNNING); /* refused there: refused for all */
}

enum verb_answer verb_answer_gated(enum verb v)
{
    ASSERT((unsigned)v < VERB_COUNT);
    return (enum verb_answer)table[v][CAMPAIGN_GATED][STAGE_HELD];
}

enum verb_answer verb_answer_archived(enum verb v)
{
    ASSERT((unsigned)v < VERB_COUNT);
    return (enum verb_answer)table[v][CAMPAIGN_ARCHIVED][STAGE_SUCCEEDED];
}

bool verb_moves_parts(enum verb v)
{
    return (unsigned)v < VERB_COUNT && part_moves[v].moves;
}

enum task_state verb_parts_from(enum verb v)
{
    ASSERT(verb_moves_parts(v));
    return part_moves[v].from;
}

enum task_state verb_parts_to(enum verb v)
{
    ASSERT(verb_moves_parts(v));
    return part_moves[v].to;
}

bool verb_refused(enum verb_answer a)
{
    return a >= VERB_CANCELLED;
}

const char *verb_refusal(enum verb_answer a)
{
    return refusals[a];
}
