/* Reads the conditions that stop a stage or a part: limits, canary, breaker, quarantine,
 * hang. */
#include "core/failure/breaker.h"
#include "core/failure/hang_detector.h"
#include "spec_read.h"

bool spec_is_off(const struct spec_node *p)
{
    bool boolean =
        p->node->kind == YAML_BOOL || (p->node->kind == YAML_STRING && p->node->maybe_bool);
    return boolean && !p->node->b;
}

/* A number, or `off`, which gives 0. */
static void read_number_or_off(struct spec_reader *r, const struct spec_node *p, const char *key,
                               int64_t max, int *ret)
{
    struct spec_node at;
    int64_t n;
    if (!spec_child(r, p, key, false, &at)) {
        return;
    }
    if (spec_is_off(&at)) {
        *ret = 0;
    } else if (at.node->kind == YAML_STRING) {
        spec_fault(r, &at, "type", "a whole number, or off", "'%.40s' is no number", at.node->text);
    } else if (spec_i64(r, &at, 1, max, &n)) {
        *ret = (int)n;
    }
}

/* off, or {same: 3, of: 10} */
static void read_breaker(struct spec_reader *r, const struct spec_node *p, struct spec_guard *g)
{
    struct spec_node at;
    int64_t same = g->breaker_same;
    int64_t of = g->breaker_of;
    if (spec_is_off(p)) {
        g->breaker_same = g->breaker_of = 0;
        return;
    }
    if (!spec_is_map(r, p, "off, or {same: 3, of: 10}")) {
        return;
    }
    spec_check_map(r, p, SPEC_MAP_BREAKER);
    bool good = !spec_child(r, p, "same", false, &at) || spec_i64(r, &at, 1, BREAKER_OF_MAX, &same);
    if (spec_child(r, p, "of", false, &at)) {
        good = spec_i64(r, &at, 1, BREAKER_OF_MAX, &of) && good;
        if (good && of < same) {
            spec_fault(r, &at, "range", "at least 'same'",
                       "%lld failures of one kind cannot be among %lld ends", (long long)same,
                       (long long)of);
            return;
        }
    } else {
        of = MAX(of, same);
    }
    if (good) {
        g->breaker_same = (int)same;
        g->breaker_of = (int)of;
    }
}

/* off, or {silent: 15m, standstill: 30m, start: 30m}; each is a duration or off */
static void read_hang(struct spec_reader *r, const struct spec_node *p, struct spec_guard *g)
{
    static const char *const keys[] = {"silent", "standstill", "start"};
    int64_t *const rules[] = {&g->hang_silent_s, &g->hang_standstill_s, &g->hang_start_s};
    bool off = spec_is_off(p);
    if (!off && !spec_is_map(r, p, "off, or {silent: 15m, standstill: 30m, start: 30m}")) {
        return;
    }
    if (!off) {
        spec_check_map(r, p, SPEC_MAP_HANG);
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct spec_node at;
        int64_t seconds;
        if (off) {
            *rules[i] = 0;
        } else if (spec_child(r, p, keys[i], false, &at)) {
            if (spec_is_off(&at)) {
                *rules[i] = 0;
            } else if (spec_duration(r, &at, 1, SPEC_RUNTIME_S_MAX, &seconds)) {
                *rules[i] = seconds;
            }
        }
    }
}

static void read_limits(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    if (!spec_is_map(r, p, "{parts: 16}")) {
        return;
    }
    spec_check_map(r, p, SPEC_MAP_STAGE_LIMITS);
    if (spec_child(r, p, "parts", false, &at)) {
        (void)spec_i64(r, &at, 1, 1000000, &s->parts_limit);
    }
}

void spec_guard_read(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    const struct hang_detector_rules hang = HANG_DETECTOR_RULES_DEFAULT;
    s->guard = (struct spec_guard){.canary = 3,
                                   .breaker_same = 3,
                                   .breaker_of = 10,
                                   .quarantine = 3,
                                   .hang_silent_s = hang.silent_us / USEC_PER_SEC,
                                   .hang_standstill_s = hang.standstill_us / USEC_PER_SEC,
                                   .hang_start_s = hang.start_us / USEC_PER_SEC};
    if (spec_child(r, p, "limits", false, &at)) {
        read_limits(r, &at, s);
    }
    read_number_or_off(r, p, "canary", SPEC_CANARY_MAX, &s->guard.canary);
    read_number_or_off(r, p, "quarantine", SPEC_QUARANTINE_MAX, &s->guard.quarantine);
    if (spec_child(r, p, "breaker", false, &at)) {
        read_breaker(r, &at, &s->guard);
    }
    if (spec_child(r, p, "hang", false, &at)) {
        read_hang(r, &at, &s->guard);
    }
}
