/* See resource_sweep.h. */
#include "resource_sweep.h"
#include "adoption.h"
#include "call_again.h"
#include "common/retry.h"
#include "core/spec/spec.h"
#include "endpoint_intent.h"
#include "filesystem_intent.h"
#include <stdio.h>
#include <stdlib.h>

void resource_sweep_clear(struct resource_sweep *w)
{
    name_set_clear(&w->others);
    free(w->found);
    *w = (struct resource_sweep){.n = 0};
}

enum resource_kind resource_sweep_list_due(struct resource_sweep *w, int64_t boot_us,
                                           int64_t *wake_us)
{
    if (w->list == RESOURCE_KIND_COUNT && boot_us >= w->due_us) {
        w->list = RESOURCE_ENDPOINT;
    }
    int64_t due_us = w->list == RESOURCE_KIND_COUNT ? w->due_us : w->list_us;
    if (boot_us < due_us) {
        *wake_us = MIN(*wake_us, due_us);
        return RESOURCE_KIND_COUNT;
    }
    return w->list;
}

static void list_next(struct resource_sweep *w, int64_t boot_us)
{
    w->failures = 0;
    w->list_us = 0;
    if (++w->list == RESOURCE_KIND_COUNT) {
        w->due_us = boot_us + RESOURCE_SWEEP_US;
    }
}

void resource_sweep_unlisted(struct resource_sweep *w, const struct aws_failure *f, int64_t boot_us)
{
    if (f->outcome == AWS_REFUSED) {
        list_next(w, boot_us);
        return;
    }
    w->failures = MIN(w->failures + 1, 1000);
    w->list_us = boot_us + retry_step_us(AGAIN_US, AGAIN_MAX_US, w->failures - 1);
}

static const struct resource_stray_row *stray_row(const struct leader_state *s, const char *name)
{
    for (size_t i = 0; i < s->resource_strays_n; i++) {
        if (strcmp(s->resource_strays[i].row.name, name) == 0) {
            return &s->resource_strays[i].row;
        }
    }
    return NULL;
}

/* NULL: it is known, by a row or already in this sweep, or there is no room. A stray of which less
 * is thought to be left, its endpoint gone by then, is not known for what is there. */
static struct resource_found *add(struct resource_sweep *w, const struct leader_state *s,
                                  const char *name, const char *token)
{
    if (w->n >= RESOURCE_FOUND_MAX || leader_has_resource(s, name, token)) {
        return NULL;
    }
    const struct resource_stray_row *stray = stray_row(s, name);
    if (stray != NULL && stray->kind <= w->list) {
        return NULL;
    }
    for (size_t i = 0; i < w->n; i++) {
        if (strcmp(w->found[i].name, name) == 0) {
            return NULL;
        }
    }
    w->found = xrealloc(w->found, (w->n + 1) * sizeof *w->found);
    struct resource_found *u = &w->found[w->n++];
    *u = (struct resource_found){.kind = w->list};
    (void)snprintf(u->name, sizeof u->name, "%s", name);
    (void)snprintf(u->token, sizeof u->token, "%s", token);
    return u;
}

void resource_sweep_hosting(struct resource_sweep *w, const struct leader_state *s,
                            const char *job_prefix, const struct hosting_summary *rows, size_t n,
                            int64_t boot_us)
{
    for (size_t i = 0; i < n; i++) {
        if (!adoption_like_ours(job_prefix, rows[i].name) ||
            name_set_has(&w->others, rows[i].name)) {
            continue;
        }
        struct resource_found *u = add(w, s, rows[i].name, "");
        if (u != NULL) {
            (void)snprintf(u->arn, sizeof u->arn, "%s", rows[i].arn);
        }
    }
    list_next(w, boot_us);
}

void resource_sweep_filesystems(struct resource_sweep *w, const struct leader_state *s,
                                const struct filesystem_description *rows, size_t n,
                                int64_t boot_us)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].owner, s->install_id) != 0) {
            continue;
        }
        struct resource_found *u = add(w, s, rows[i].id, rows[i].token);
        if (u != NULL) {
            u->ours = true;
            (void)snprintf(u->arn, sizeof u->arn, "%s", rows[i].arn);
        }
    }
    list_next(w, boot_us);
}

size_t resource_sweep_due(const struct resource_sweep *w, int64_t boot_us, int64_t *wake_us)
{
    for (size_t i = 0; i < w->n; i++) {
        if (boot_us >= w->found[i].next_us) {
            return i;
        }
        *wake_us = MIN(*wake_us, w->found[i].next_us);
    }
    return w->n;
}

enum resource_ask resource_sweep_question(const struct resource_found *u)
{
    return !u->ours ? RESOURCE_ASK_TAG : u->seen ? RESOURCE_ASK_CONFIG : RESOURCE_ASK_DESCRIBE;
}

enum resource_then resource_sweep_tag(struct resource_found *u, const char *value,
                                      const char *install_id, const struct aws_failure *f)
{
    if (f != NULL) { /* a refusal says nothing of whose it is: the next sweep asks again */
        return f->outcome == AWS_REFUSED ? RESOURCE_DECIDED : RESOURCE_LATER;
    }
    u->ours = strcmp(value, install_id) == 0;
    return u->ours ? RESOURCE_ON : RESOURCE_FOREIGN;
}

enum resource_then resource_sweep_described(struct resource_found *u,
                                            const struct endpoint_description *d,
                                            const struct aws_failure *f)
{
    if (f != NULL) {
        return RESOURCE_LATER;
    }
    if (d == NULL || strcmp(d->status, "Deleting") == 0) {
        return RESOURCE_DECIDED; /* what is left of its name is found by the next sweep */
    }
    u->shown = *d;
    u->seen = true;
    return u->kind == RESOURCE_ENDPOINT ? RESOURCE_ON : RESOURCE_HOLD;
}

enum resource_then resource_sweep_filesystem(struct resource_found *u,
                                             const struct filesystem_description *d,
                                             const struct aws_failure *f)
{
    if (f != NULL) {
        return RESOURCE_LATER;
    }
    if (d == NULL || strcmp(d->lifecycle, "DELETING") == 0) {
        return RESOURCE_DECIDED;
    }
    u->fs = *d;
    u->seen = true;
    return RESOURCE_HOLD;
}

enum resource_then resource_sweep_config(struct resource_found *u,
                                         const struct endpoint_description *d,
                                         const struct aws_failure *f)
{
    if (f != NULL && f->outcome != AWS_REFUSED) {
        return RESOURCE_LATER;
    }
    if (d != NULL) {
        memcpy(u->shown.instance_type, d->instance_type, sizeof u->shown.instance_type);
    }
    return RESOURCE_HOLD;
}

static void put_hosting(const struct leader_state *s, const struct resource_found *u,
                        struct resource_stray_row *ret)
{
    const struct endpoint_description *d = &u->shown;
    (void)snprintf(ret->status, sizeof ret->status, "%s", d->status);
    (void)snprintf(ret->instance_type, sizeof ret->instance_type, "%s", d->instance_type);
    ret->instances = MIN(MAX(1, d->instances), INT32_MAX);
    ret->price_musd_per_hour = MAX(0, leader_hosting_price(s, d->instance_type));
    ret->created_us = d->created;
    ret->started_us = strcmp(d->status, "InService") == 0 ? MAX(d->modified, d->created) : 0;
}

static void put_filesystem(const struct leader_state *s, const struct resource_found *u,
                           struct resource_stray_row *ret)
{
    const struct filesystem_description *d = &u->fs;
    char tier[SPEC_STORAGE_TIER_MAX];
    (void)snprintf(ret->status, sizeof ret->status, "%s", d->lifecycle);
    spec_storage_tier(d->deployment_type, d->throughput_per_unit, tier);
    (void)snprintf(ret->instance_type, sizeof ret->instance_type, "%s", tier);
    ret->instances = 1;
    ret->size_gib = MAX(0, d->capacity_gib);
    ret->price_musd_per_hour = MAX(0, leader_storage_price(s, tier, &(bool){false}));
    ret->created_us = d->created;
    ret->started_us = strcmp(d->lifecycle, "AVAILABLE") == 0 ? d->created : 0;
}

bool resource_sweep_row(const struct leader_state *s, const struct resource_found *u,
                        struct resource_stray_row *ret)
{
    *ret = (struct resource_stray_row){.kind = u->kind};
    memcpy(ret->name, u->name, sizeof ret->name);
    memcpy(ret->arn, u->arn, sizeof ret->arn);
    memcpy(ret->token, u->token, sizeof ret->token);
    if (u->kind == RESOURCE_FILE_SYSTEM) {
        put_filesystem(s, u, ret);
    } else {
        put_hosting(s, u, ret);
    }
    const struct resource_stray_row *stray = stray_row(s, u->name);
    if (stray != NULL) { /* it goes on: billed since it was first in service */
        ret->started_us = stray->started_us > 0 ? stray->started_us : ret->started_us;
        ret->stop_asked = stray->stop_asked;
    }
    return !leader_has_resource(s, u->name, u->token) && (stray == NULL || stray->kind > u->kind);
}

musd_t resource_sweep_price(const struct leader_state *s, const struct resource_stray_row *row)
{
    if (row->price_musd_per_hour > 0) {
        return row->price_musd_per_hour;
    }
    return MAX(0, row->kind == RESOURCE_FILE_SYSTEM
                      ? leader_storage_price(s, row->instance_type, &(bool){false})
                      : leader_hosting_price(s, row->instance_type));
}

musd_t resource_sweep_price_told(const struct leader_state *s, const struct resource_stray_row *row,
                                 const struct resource_fact *fact)
{
    struct resource_stray_row told = *row;
    if (fact->act == RESOURCE_ACT_CONFIG && fact->said == RESOURCE_SAID_YES) {
        (void)snprintf(told.instance_type, sizeof told.instance_type, "%s", fact->instance_type);
    }
    return resource_sweep_price(s, &told);
}

enum resource_then resource_sweep_held(enum tx_meaning meaning)
{
    return meaning == TX_LOST   ? RESOURCE_STOP
           : meaning == TX_BUSY ? RESOURCE_LATER
                                : RESOURCE_DECIDED;
}

void resource_sweep_apply(struct resource_sweep *w, size_t at, enum resource_then then,
                          int64_t boot_us)
{
    struct resource_found *u = &w->found[at];
    switch (then) {
    case RESOURCE_LATER:
        u->seen = false; /* what was seen is old by then */
        u->failures = MIN(u->failures + 1, 1000);
        u->next_us = boot_us + retry_step_us(AGAIN_US, AGAIN_MAX_US, u->failures - 1);
        break;
    case RESOURCE_FOREIGN:
        name_set_add(&w->others, u->name);
        *u = w->found[--w->n];
        break;
    case RESOURCE_DECIDED:
        *u = w->found[--w->n];
        break;
    case RESOURCE_ON:
    case RESOURCE_HOLD:
    case RESOURCE_STOP:
        break;
    }
}
