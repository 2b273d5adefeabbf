/* See cost_phase.h. */
#include "cost_phase.h"
#include <assert.h>
#include <string.h>

static const struct {
    const char *name;
    bool works;
} phases[] = {
#define X(p, name, works) {name, works},
#include "cost_phase.def"
#undef X
};

static_assert(PHASE_FIGURES_N == 3 * COST_PHASES_OF_JOB, "three figures of each are stored");

const char *cost_phase_name(enum cost_phase phase)
{
    ASSERT((unsigned)phase < COST_PHASE_COUNT);
    return phases[phase].name;
}

enum cost_phase cost_phase_of_status(const char *status, bool file_channels)
{
    static const struct {
        const char *status;
        enum cost_phase phase;
    } rows[] = {
        {"Pending", COST_PHASE_WAIT},
        {"Interrupted", COST_PHASE_WAIT},
        {"Starting", COST_PHASE_START},
        {"LaunchingMLInstances", COST_PHASE_START},
        {"PreparingTrainingStack", COST_PHASE_START},
        {"Restarting", COST_PHASE_START},
        {"DownloadingTrainingImage", COST_PHASE_IMAGE},
        {"Training", COST_PHASE_TRAINING},
        {"Updating", COST_PHASE_TRAINING},
        {"Uploading", COST_PHASE_UPLOAD},
        {"Stopping", COST_PHASE_UPLOAD},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(status, rows[i].status) == 0) {
            return rows[i].phase;
        }
    }
    if (strcmp(status, "Downloading") == 0) {
        return file_channels ? COST_PHASE_DATA : COST_PHASE_IMAGE;
    }
    return COST_PHASE_COUNT;
}

static int64_t overlap(usec_t from, usec_t to, usec_t billed_from, usec_t billed_to)
{
    return MAX(0, MIN(to, billed_to) - MAX(from, billed_from));
}

void cost_phase_measure(const struct cost_phase_span *spans, int n, usec_t billed_from,
                        usec_t billed_to, bool spot, struct cost_phase_times *ret)
{
    memset(ret, 0, sizeof *ret);
    for (int i = 0; i < n; i++) {
        enum cost_phase p = spans[i].phase;
        usec_t from = spans[i].from, to = spans[i].to > 0 ? spans[i].to : billed_to;
        if (p >= COST_PHASES_OF_JOB || from <= 0 || to <= from) {
            continue;
        }
        ret->elapsed_us[p] += to - from;
        bool free = spot && (p == COST_PHASE_WAIT || p == COST_PHASE_START);
        if (billed_from > 0 && !free) {
            ret->billed_us[p] += overlap(from, to, billed_from, billed_to);
        }
    }
}

void cost_phase_split(const struct cost_phase_times *t, int64_t billable_s, musd_t cost_musd,
                      struct cost_phase_sums *ret)
{
    int64_t all_us = 0, upto_us = 0, given_s = 0, s = 0;
    musd_t given_musd = 0, musd = 0;
    ASSERT(billable_s >= 0 && cost_musd >= 0);
    memset(ret, 0, sizeof *ret);
    for (int p = 0; p < COST_PHASES_OF_JOB; p++) {
        ret->elapsed_ms[p] = t->elapsed_us[p] / USEC_PER_MSEC;
        all_us += t->billed_us[p];
    }
    for (int p = 0; p < COST_PHASES_OF_JOB && all_us > 0; p++) {
        upto_us += t->billed_us[p]; /* rounded sums, so that the shares add up */
        bool fits = muldiv_i64(billable_s, upto_us, all_us, &s) &&
                    muldiv_i64(cost_musd, upto_us, all_us, &musd);
        ASSERT(fits); /* upto_us <= all_us */
        ret->seconds[p] = s - given_s;
        ret->musd[p] = musd - given_musd;
        given_s = s;
        given_musd = musd;
    }
    ret->seconds[COST_PHASE_OTHER] = billable_s - given_s;
    ret->musd[COST_PHASE_OTHER] = cost_musd - given_musd;
}

void cost_phase_store(const struct cost_phase_sums *s, int64_t ret[static PHASE_FIGURES_N])
{
    for (int p = 0; p < COST_PHASES_OF_JOB; p++) {
        ret[3 * p] = s->elapsed_ms[p];
        ret[3 * p + 1] = s->seconds[p];
        ret[3 * p + 2] = s->musd[p];
    }
}

void cost_phase_share_again(int64_t stored[static PHASE_FIGURES_N], int64_t billable_s,
                            musd_t cost_musd)
{
    struct cost_phase_times t = {0};
    struct cost_phase_sums sums;
    for (int p = 0; p < COST_PHASES_OF_JOB; p++) {
        t.elapsed_us[p] = stored[3 * p] * USEC_PER_MSEC;
        t.billed_us[p] = stored[3 * p + 1]; /* seconds do as well: only their shares count */
    }
    cost_phase_split(&t, billable_s, cost_musd, &sums);
    cost_phase_store(&sums, stored);
}

void cost_phase_read(const int64_t stored[static PHASE_FIGURES_N], int64_t job_s, musd_t job_musd,
                     int64_t warm_s, musd_t warm_musd, struct cost_phase_sums *ret)
{
    memset(ret, 0, sizeof *ret);
    for (int p = 0; p < COST_PHASES_OF_JOB; p++) {
        ret->elapsed_ms[p] = stored[3 * p];
        ret->seconds[p] = stored[3 * p + 1];
        ret->musd[p] = stored[3 * p + 2];
        job_s -= ret->seconds[p];
        job_musd -= ret->musd[p];
    }
    ret->seconds[COST_PHASE_OTHER] = job_s;
    ret->musd[COST_PHASE_OTHER] = job_musd;
    ret->seconds[COST_PHASE_WARM_IDLE] = warm_s;
    ret->musd[COST_PHASE_WARM_IDLE] = warm_musd;
}

void cost_phase_add(struct cost_phase_sums *sum, const struct cost_phase_sums *s)
{
    for (int p = 0; p < COST_PHASE_COUNT; p++) {
        sum->elapsed_ms[p] += s->elapsed_ms[p];
        sum->seconds[p] += s->seconds[p];
        sum->musd[p] += s->musd[p];
    }
}

void cost_phase_add_service(struct cost_phase_sums *sum, enum cost_phase phase, int64_t seconds,
                            musd_t musd)
{
    ASSERT(phase == COST_PHASE_HOSTING || phase == COST_PHASE_STORAGE);
    sum->seconds[phase] += seconds;
    sum->musd[phase] += musd;
}

struct cost_phase_total cost_phase_total(const struct cost_phase_sums *s, bool idle)
{
    struct cost_phase_total sum = {0};
    for (int p = 0; p < COST_PHASE_COUNT; p++) {
        if (!idle || !phases[p].works) {
            sum.elapsed_ms += s->elapsed_ms[p];
            sum.seconds += s->seconds[p];
            sum.musd += s->musd[p];
        }
    }
    return sum;
}
