/* Hung jobs and stragglers. A verdict needs a whole period without progress, so a late listing or
 * one lost object is never taken for a hang. */
#include "hang_detector.h"

static bool grew(const struct hang_detector_seen *from, const struct hang_detector_seen *to)
{
    return to->rows_done > from->rows_done || to->bytes > from->bytes ||
           to->shards_done > from->shards_done || to->prepared > from->prepared;
}

void hang_detector_saw(struct hang_detector_state *h, const struct hang_detector_seen *seen,
                       usec_t now_us)
{
    if (seen == NULL || seen->at_us <= 0 || seen->rows_done < 0 || seen->rows_total < 0 ||
        seen->bytes < 0 || seen->shards_done < 0 || seen->prepared < 0 ||
        seen->at_us < h->last.at_us) {
        return;
    }
    bool begins = h->last.at_us == 0 || seen->rows_done < h->last.rows_done ||
                  (h->last.prepares && !seen->prepares);
    if (begins) {
        h->first = *seen;
    }
    if (begins || grew(&h->last, seen)) {
        h->moved_us = now_us;
    }
    h->last = *seen;
}

static bool passed(usec_t since_us, int64_t period_us, usec_t now_us)
{
    return period_us > 0 && now_us > since_us && now_us - since_us >= period_us;
}

/* A preparation is what start_us is for: one large object to read, rows to count, and no figure
 * that grows meanwhile. */
static int64_t standstill_us(const struct hang_detector_state *h,
                             const struct hang_detector_rules *r)
{
    if (!h->last.prepares) {
        return r->standstill_us;
    }
    bool off = r->start_us == 0 || r->standstill_us == 0;
    return off ? 0 : MAX(r->start_us, r->standstill_us);
}

enum hang_detector_verdict hang_detector_check(const struct hang_detector_state *h,
                                               const struct hang_detector_rules *r,
                                               usec_t running_since_us, usec_t now_us)
{
    if (h->last.at_us == 0 || h->last.at_us < running_since_us) {
        return passed(running_since_us, r->start_us, now_us) ? HANG_DETECTOR_NEVER_STARTED
                                                             : HANG_DETECTOR_NONE;
    }
    if (passed(h->last.at_us, r->silent_us, now_us)) {
        return HANG_DETECTOR_SILENT;
    }
    usec_t moved_us = MAX(h->moved_us, running_since_us);
    return passed(moved_us, standstill_us(h, r), now_us) ? HANG_DETECTOR_STANDSTILL
                                                         : HANG_DETECTOR_NONE;
}

usec_t hang_detector_expected_end_us(const struct hang_detector_state *h, usec_t running_since_us,
                                     usec_t now_us)
{
    const struct hang_detector_seen *last = &h->last;
    if (last->at_us == 0 || last->at_us < running_since_us || last->rows_total <= 0) {
        return USEC_NEVER;
    }
    if (last->rows_done >= last->rows_total) {
        return MAX(last->at_us, now_us);
    }
    /* The rate between the first and the last object, so that rows done by an earlier try and the
     * time before the work do not count. Until there are two objects the start is used. */
    bool two = last->at_us > h->first.at_us && last->rows_done > h->first.rows_done;
    int64_t rows = last->rows_done - (two ? h->first.rows_done : 0);
    int64_t took_us = last->at_us - (two ? h->first.at_us : running_since_us);
    int64_t left_us;
    if (rows <= 0 || took_us <= 0 ||
        !muldiv_i64(last->rows_total - last->rows_done, took_us, rows, &left_us)) {
        return USEC_NEVER;
    }
    usec_t end_us;
    return add_i64(last->at_us, left_us, &end_us) ? MAX(end_us, now_us) : USEC_NEVER;
}

const char *hang_detector_verdict_name(enum hang_detector_verdict v)
{
    switch (v) {
    case HANG_DETECTOR_NONE:
        return "none";
    case HANG_DETECTOR_SILENT:
        return "silent";
    case HANG_DETECTOR_STANDSTILL:
        return "standstill";
    case HANG_DETECTOR_NEVER_STARTED:
        return "never_started";
    }
    return "none";
}
