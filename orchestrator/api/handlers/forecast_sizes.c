/* See forecast_sizes.h. */
#include "forecast_sizes.h"
#include "core/forecast/size_classes.h"

#define FEW            16384
#define TARGET_FEW     262144
#define TARGET_ENTRIES 65536
#define SAMPLE         2048

static int64_t waiting_of(const struct stage_row *row)
{
    return row->counts[TASK_WAITING] + MAX(0, row->tasks - row->taken);
}

size_t forecast_sizes_entries(const struct stage_row *row, enum forecast_of of)
{
    bool target = of == FORECAST_OF_TARGET;
    return waiting_of(row) <= (target ? TARGET_FEW : FEW) ? 0 : target ? TARGET_ENTRIES : FEW;
}

/* Its place among the waiting parts, from that among the parts that were read: what does not wait
 * any more stood at the front. */
static int64_t place_of(const struct apidb_part_size *part, const struct apidb_part_size *sizes,
                        size_t n, const struct size_classes *c)
{
    size_t before = 0;
    while (before < n && (sizes[before].size > part->size ||
                          (sizes[before].size == part->size && sizes[before].seq < part->seq))) {
        before++;
    }
    double all = (double)before / (double)MAX(n, (size_t)1) * (double)c->tasks;
    return MAX(1, (int64_t)all + 1 - (c->tasks - c->waiting));
}

bool forecast_sizes_load(struct store *db, const struct stage_row *row, size_t entries,
                         const struct apidb_part_waiting *why, int64_t why_task_id, usec_t now_us,
                         struct forecast_sizes *ret, struct err *err)
{
    int32_t seqs[SAMPLE];
    struct apidb_part_size sizes[SAMPLE];
    uint32_t size_mb[SAMPLE];
    size_t n = 0;
    struct size_classes c = {
        .size_mb = size_mb, .tasks = row->tasks, .waiting = MIN(waiting_of(row), row->tasks)};
    for (int64_t i = 0; i < SAMPLE; i++) {
        seqs[i] = (int32_t)(row->tasks * i / SAMPLE);
    }
    if (!apidb_part_sizes(db, row->campaign_id, row->id, seqs, SAMPLE, sizes, &n, err)) {
        return false;
    }
    for (c.n = 0; c.n < n; c.n++) {
        size_mb[c.n] = size_mb_of(sizes[c.n].size);
    }
    if (c.n == 0) {
        size_mb[c.n++] = 0;
    }
    ret->parts = xmalloc((entries + 2) * sizeof *ret->parts);
    ret->times = xmalloc((entries + 2) * sizeof *ret->times);
    ret->n = entries;
    size_classes_spread(&c, entries, ret->parts, ret->times);
    if (why->stage_id == row->id) {
        struct forecast_part p = {.task_id = why_task_id,
                                  .not_before_us = why->not_before_us,
                                  .seq = (uint32_t)why->part.seq,
                                  .size_mb = size_mb_of(why->part.size)};
        bool late = why->not_before_us > now_us;
        size_classes_put(&p, late ? 0 : place_of(&why->part, sizes, n, &c), ret->parts, ret->times,
                         &ret->n);
    }
    return true;
}
