/* Checks the output and writes the manifest last. */
#include "finish.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "incremental_mode.h"
#include "job/manifest.h"
#include "worker_protocol.h"

/* Count the shards of our share: kept, written, and written by another writer first. */
static bool count_share(const struct finish *f, struct sink *sink, struct stats *total,
                        struct err *err)
{
    const int64_t *lost;
    size_t lost_n = writer_lost(f->writer, &lost);
    stats_merge(total, &f->resume->total);
    stats_merge(total, writer_total(f->writer));
    return resume_add_lost(sink, f->run, lost, lost_n, total, err);
}

static bool check_count(const struct stats *total, int64_t rows, struct err *err)
{
    return total->count == rows || err_set(err, ERR_INTERNAL, "%lld rows came out of %lld",
                                           (long long)total->count, (long long)rows);
}

bool finish_can_be_checked(const struct pipeline *run, const char *attempt, int64_t first,
                           struct err *err)
{
    int64_t shards = first + pipeline_shards(run);
    int64_t pieces = (int64_t)output_pieces(run->o->output)->n;
    return manifest_can_be_checked(attempt, shards * pieces, 0, err);
}

bool finish_share(const struct finish *f, struct err *err)
{
    struct stats total = {0};
    const struct shard_sizes *sizes;
    size_t sizes_n = writer_written(f->writer, &sizes);
    struct sink *sink = part_hosts_sink(f->hosts);
    bool ok = count_share(f, sink, &total, err) &&
              resume_check_share(sink, f->run, sizes, sizes_n, err) &&
              check_count(&total, f->run->share_rows, err) &&
              part_hosts_put(f->hosts, &total, f->started_us, err);
    stats_done(&total);
    return ok;
}

/* Another host of this job may have been first. */
static bool put_manifest(const struct finish *f, const struct manifest *m, struct err *err)
{
    /* An extending run replaces the earlier manifest and includes its objects. One that appeared
     * meanwhile it has not read: the next attempt does. */
    bool create_only = f->run->o->mode != MODE_EXTEND || !f->extend->there;
    AUTO_JSON json_t *there = NULL;
    struct err e = ERR_INIT;
    if (manifest_put(f->sink, m, create_only, err)) {
        return true;
    }
    if (err->code != ERR_PRECONDITION) {
        return false;
    }
    if (f->hosts != NULL && manifest_load(f->sink, &there, &e) && manifest_is_of(there, f->task)) {
        return true;
    }
    return err_wrap(err, "another writer finished this part first");
}

static bool write_manifest(const struct finish *f, struct stats *total, usec_t started_us,
                           const struct sink_listing *objects, struct err *err)
{
    stats_sort(total);
    struct manifest m = {.task = f->task,
                         .attempt = f->attempt,
                         .rows_in = f->run->rows,
                         .rows_out = total->count,
                         .total = *total,
                         .started_us = started_us,
                         .ended_us = clock_wall_us(),
                         .objects = objects->objects,
                         .objects_n = objects->n,
                         .earlier = f->extend->earlier,
                         .earlier_bytes = f->extend->bytes,
                         .first_shard = f->run->format.first_shard};
    return put_manifest(f, &m, err) && incremental_mode_end(f->sink, f->run->o, f->task, err);
}

/* Count all rows. A host that begins again withdraws what it said before it changes a shard, so
 * what is read after the shards were listed is about those. */
static bool count_all(const struct finish *f, struct stats *total, usec_t *started_us,
                      bool *ret_whole, struct err *err)
{
    *started_us = f->started_us;
    if (f->hosts == NULL) {
        return count_share(f, f->sink, total, err);
    }
    part_hosts_forget(f->hosts);
    if (!part_hosts_collect(f->hosts, ret_whole, err)) {
        return false;
    }
    if (*ret_whole) {
        part_hosts_total(f->hosts, total, started_us);
    }
    return true;
}

bool finish_part(const struct finish *f, struct stats *ret_total, bool *ret_whole, struct err *err)
{
    struct stats total = {0};
    struct sink_listing objects = {0};
    const struct shard_sizes *sizes;
    size_t sizes_n = writer_written(f->writer, &sizes);
    usec_t started_us;
    *ret_whole = true;
    if (f->hosts != NULL && !part_hosts_collect(f->hosts, ret_whole, err)) {
        return false;
    }
    if (!*ret_whole) {
        return true;
    }
    bool ok = resume_check(f->sink, f->run, sizes, sizes_n, &objects, err) &&
              count_all(f, &total, &started_us, ret_whole, err);
    if (ok && *ret_whole) {
        ok = check_count(&total, f->run->rows, err);
        resume_abort_uploads(f->sink);
        manifest_extend_merge(f->extend, &objects);
        ok = ok && write_manifest(f, &total, started_us, &objects, err);
    }
    if (ok && *ret_whole && f->hosts != NULL) {
        part_hosts_clean(f->sink, f->run->host, f->late);
    }
    sink_listing_done(&objects);
    if (ok) {
        *ret_total = total;
    } else {
        stats_done(&total);
    }
    return ok;
}
