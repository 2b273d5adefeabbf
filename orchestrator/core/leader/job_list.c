/* See job_list.h. */
#include "job_list.h"
#include "adoption.h"
#include "attempt_answer.h"
#include "pool_life.h"
#include "strays.h"
#include <stdio.h>
#include <stdlib.h>

#define LIST_MARGIN_US (900 * USEC_PER_SEC) /* our clock and that of AWS differ */

void leader_list_watch(struct leader_state *s, usec_t from_us, int64_t until_us, int64_t boot_us)
{
    s->watch_from_us = boot_us < s->watch_until_us ? MIN(s->watch_from_us, from_us) : from_us;
    s->watch_until_us = MAX(s->watch_until_us, until_us);
}

void leader_list_moved(struct leader_state *s, const struct live_attempt *a,
                       const struct protocol_effect *e, int64_t f_us, int64_t signature_window_us)
{
    if (e->changed && a->p.state == ATTEMPT_VOID) {
        leader_list_watch(s, a->row.intended_us, f_us + signature_window_us, f_us);
    }
}

usec_t leader_list_since(const struct leader_state *s, int64_t boot_us)
{
    usec_t oldest = boot_us < s->watch_until_us ? s->watch_from_us : USEC_NEVER;
    for (size_t i = 0; i < s->attempts_n; i++) {
        oldest = MIN(oldest, s->attempts[i]->row.intended_us);
    }
    for (size_t i = 0; i < s->pools_n; i++) {
        oldest = MIN(oldest, s->pools[i]->row.intended_us);
    }
    for (size_t i = 0; i < s->strays_n; i++) {
        oldest = MIN(oldest, s->strays[i].row.created_us);
    }
    return oldest == USEC_NEVER ? USEC_NEVER : MAX(0, oldest - LIST_MARGIN_US);
}

usec_t leader_list_from(usec_t since_us, int64_t skew_us)
{
    if (since_us == USEC_NEVER || skew_us >= 0) {
        return since_us;
    }
    return skew_us < -since_us ? 0 : since_us + skew_us;
}

void leader_list_prefix(const char *job_prefix, char ret[static JOB_PREFIX_MAX + 2])
{
    char prefix[JOB_PREFIX_MAX + 1];
    protocol_job_prefix(job_prefix, prefix);
    (void)snprintf(ret, JOB_PREFIX_MAX + 2, "%s-", prefix);
}

bool leader_listed(struct leader_state *s, const struct job_summary *job, int64_t boot_us,
                   struct live_attempt **ret_attempt, struct fact *ret)
{
    *ret_attempt = leader_state_attempt_named(s, job->name);
    if (*ret_attempt == NULL) {
        leader_pool_listed(s, job->name, job->pool.status);
        leader_stray_listed(s, job->name, job->status);
        return false;
    }
    *ret = (struct fact){.kind = FACT_LISTED,
                         .at_us = boot_us,
                         .job = leader_job_seen(job->status, job->secondary, job->modified)};
    return true;
}

/* FNV-1a; 0 is an empty slot. */
static uint64_t name_hash(const char *name)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (const char *p = name; *p != '\0'; p++) {
        h = (h ^ (uint8_t)*p) * UINT64_C(1099511628211);
    }
    return h != 0 ? h : 1;
}

/* The slot of h, or the empty one where it belongs. cap > n, a power of two. */
static size_t slot_of(const struct name_set *set, uint64_t h)
{
    size_t i = (size_t)h & (set->cap - 1);
    while (set->slots[i] != 0 && set->slots[i] != h) {
        i = (i + 1) & (set->cap - 1);
    }
    return i;
}

static void grow(struct name_set *set)
{
    struct name_set more = {.n = set->n, .cap = MAX(set->cap * 2, (size_t)256)};
    more.slots = xcalloc(more.cap, sizeof *more.slots);
    for (size_t i = 0; i < set->cap; i++) {
        if (set->slots[i] != 0) {
            more.slots[slot_of(&more, set->slots[i])] = set->slots[i];
        }
    }
    free(set->slots);
    *set = more;
}

void name_set_add(struct name_set *set, const char *name)
{
    if (2 * set->n >= set->cap) {
        grow(set);
    }
    size_t i = slot_of(set, name_hash(name));
    set->n += set->slots[i] == 0;
    set->slots[i] = name_hash(name);
}

bool name_set_has(const struct name_set *set, const char *name)
{
    return set->cap > 0 && set->slots[slot_of(set, name_hash(name))] != 0;
}

void name_set_clear(struct name_set *set)
{
    free(set->slots);
    *set = (struct name_set){.n = 0};
}

size_t leader_unknown_names(const struct leader_state *s, const char *job_prefix,
                            const struct name_set *decided, const struct job_summary *jobs,
                            size_t n, const char **ret, size_t max)
{
    size_t found = 0;
    for (size_t i = 0; i < n && found < max; i++) {
        if (!name_set_has(decided, jobs[i].name) && adoption_like_ours(job_prefix, jobs[i].name) &&
            leader_state_attempt_named(s, jobs[i].name) == NULL) {
            ret[found++] = jobs[i].name;
        }
    }
    return found;
}
