/* See forecast_history.h. */
#include "forecast_history.h"
#include "core/failure/retry_policy.h"
#include "core/model.h"
#include "store/api/stage_history.h"

/* Causes that count as an attempt, as the history query takes them. */
static size_t counting(int16_t ret[static CAUSE_COUNT])
{
#define X(c, name, counts, times, from_s, to_s, remedy) counts,
    static const bool counts[] = {
#include "core/failure/cause.def"
    };
#undef X
    size_t n = 0;
    for (int c = 0; c < CAUSE_COUNT; c++) {
        if (counts[c]) {
            ret[n++] = (int16_t)c;
        }
    }
    return n;
}

bool forecast_history_load(struct store *db, struct arena *a, struct forecast_stage *st,
                           struct err *err)
{
    int16_t causes[CAUSE_COUNT];
    size_t causes_n = counting(causes);
    struct apidb_history *h = arena_alloc(a, sizeof *h);
    if (!apidb_history(db, st->campaign_id, st->stage_id, causes, causes_n, h, err)) {
        return false;
    }
    int64_t seen[CAUSE_COUNT] = {0};
    for (size_t i = h->n; i-- > 0;) { /* newest first; learn the oldest first */
        const struct apidb_past *p = &h->at[i];
        st->tries += p->end != END_OTHER;
        st->failed_tries += p->end == END_LOST;
        seen[p->cause] += p->end == END_LOST;
        if (p->end == END_DONE && p->run_us > 0) {
            duration_learn(&st->duration, size_mb_of(p->size), p->run_us);
        }
        if (p->start_us > 0) {
            duration_learn(&st->start, 0, p->start_us);
        }
    }
    st->retry_wait_s = retry_wait_expected_s(st->stage, seen);
    return true;
}
