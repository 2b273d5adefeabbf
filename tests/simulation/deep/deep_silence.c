/* Describes without an Environment, as another emulator gives them: now and then, or always. Only
 * some worlds have such. A job that does not say whose it is stays ours by its name, so all that
 * holds elsewhere holds here: no job of ours is let go (I29, I6), no task has two (I1). */
#include "deep.h"

/* A leader asks so long again before it believes a name, beside its other questions. */
#define ASKED_AGAIN_US (45 * SEC)

void silence_draw(void)
{
    struct rng *r = &deep->rng_silent;
    bool always = rng_chance(r, 0.3);
    deep->silence = !deep->silent ? 0 : always ? 1 : 0.1 + 0.8 * rng_unit(r);
}

void silence_take(struct job_description *job)
{
    if (deep->silence > 0 && rng_chance(&deep->rng_silent, deep->silence)) {
        job->request_hash[0] = '\0';
        job->attempt_id = 0;
        job->untold = true;
    }
}

int64_t silence_us(void)
{
    return deep->silent ? ASKED_AGAIN_US : 0;
}
