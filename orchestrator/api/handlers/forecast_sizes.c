/* See forecast_sizes.h. */
#include "forecast_sizes.h"
#include "core/forecast/size_classes.h"
#include "store/api/stage_history.h"

#define OTHERS_ONE_BY_ONE 16384
#define TARGET_ONE_BY_ONE 262144
#define TARGET_ENTRIES    65536
#define SAMPLE            2048

static int64_t waiting_of(const struct stage_row *row)
{
    return row->counts[TASK_WAITING] + MAX(0, row->tasks - row->taken);
}

size_t forecast_sizes_entries(const struct stage_row *row, bool target)
{
    int64_t one_by_one = target ? TARGET_ONE_BY_ONE : OTHERS_ONE_BY_ONE;
    return waiting_of(row) <= one_by_one ? 0 : target ? TARGET_ENTRIES : OTHERS_ONE_BY_ONE;
}

bool forecast_sizes_load(struct store *db, const struct stage_row *row, size_t entries,
                         struct forecast_part **ret_parts, uint32_t **ret_times, struct err *err)
{
    int32_t seqs[SAMPLE];
    int64_t sizes[SAMPLE];
    uint32_t size_mb[SAMPLE];
    struct size_classes c = {
        .size_mb = size_mb, .tasks = row->tasks, .waiting = MIN(waiting_of(row), row->tasks)};
    for (int64_t i = 0; i < SAMPLE; i++) {
        seqs[i] = (int32_t)(row->tasks * i / SAMPLE);
    }
    if (!apidb_part_sizes(db, row->campaign_id, row->id, seqs, SAMPLE, sizes, &c.n, err)) {
        return false;
    }
    for (size_t i = 0; i < c.n; i++) {
        size_mb[i] = size_mb_of(sizes[i]);
    }
    if (c.n == 0) {
        size_mb[c.n++] = 0;
    }
    *ret_parts = xmalloc(entries * sizeof **ret_parts);
    *ret_times = xmalloc(entries * sizeof **ret_times);
    size_classes_spread(&c, entries, *ret_parts, *ret_times);
    return true;
}
