/* The window of slots and the three output files. */
#include "order.h"
#include "common/clock.h"
#include "common/log.h"
#include <pthread.h>

enum index_file { FILE_INDEX, FILE_SAMPLE, FILE_BROKEN, FILE_COUNT };
_Static_assert((int)FILE_COUNT == CHECKPOINT_FILES, "all files are saved");

struct order_slot {
    struct scan_out out;
    struct checkpoint_sums sums;
    bool done;
};
struct order {
    struct order_config config;
    pthread_mutex_t lock;
    pthread_cond_t moved;                  /* head, writing or stop changed */
    struct sink_stream *files[FILE_COUNT]; /* the file of broken pairs only when there are any */
    struct order_slot *slots;              /* shard i is in slots[i % config.slots] */
    size_t slots_n;
    size_t n, next, head;
    _Atomic int *stop;
    bool writing;
    struct err err; /* the first */
    /* Used by the writing thread only. */
    struct checkpoint done;
    bool partial;              /* the files already have lines of the head */
    bool saved;                /* a checkpoint exists, of this run or an earlier one */
    int64_t sizes[FILE_COUNT]; /* of the published ones; -1: not made */
    bool publishing;           /* the streams become the output: their state can be saved no more */
    int64_t next_save_us;
};

static const char *const names[] = {ORDER_INDEX_NAME, ORDER_SAMPLE_NAME, ORDER_BROKEN_NAME};

static bool open_file(struct order *o, enum index_file f, struct err *err)
{
    return o->files[f] != NULL ||
           sink_stream_begin(o->config.sink, names[f], "application/x-ndjson", &o->files[f], err);
}

/* Continue where an earlier run was stopped, else start at the beginning. */
static bool go_on(struct order *o, struct err *err)
{
    if (!checkpoint_load(o->config.sink, o->config.fingerprint, names, &o->done, o->files,
                         &o->saved, err)) {
        return false;
    }
    if (!o->saved) {
        (void)snprintf(o->done.fingerprint, sizeof o->done.fingerprint, "%s",
                       o->config.fingerprint);
        return true;
    }
    ASSERT((size_t)o->done.shards_done <= o->n); /* the fingerprint counts them */
    o->head = o->next = (size_t)o->done.shards_done;
    log_event(LOG_INFO, "resumed", LF_I("shards_kept", o->done.shards_done),
              LF_I("shards", (int64_t)o->n));
    return true;
}

bool order_new(const struct order_config *c, struct order **ret, struct err *err)
{
    ASSERT(c->slots > 0);
    struct order *o = xcalloc(1, sizeof *o);
    *o = (struct order){.config = *c, .n = c->n, .stop = c->stop, .slots_n = (size_t)c->slots};
    (void)pthread_mutex_init(&o->lock, NULL);
    (void)pthread_cond_init(&o->moved, NULL);
    for (size_t i = 0; i < FILE_COUNT; i++) {
        o->sizes[i] = -1;
    }
    o->slots = xcalloc(o->slots_n, sizeof *o->slots);
    for (size_t i = 0; i < o->slots_n; i++) {
        scan_out_init(&o->slots[i].out);
    }
    o->next_save_us = clock_mono_us() + c->save_every_us;
    if (!go_on(o, err) || !open_file(o, FILE_INDEX, err) ||
        (c->sample && !open_file(o, FILE_SAMPLE, err))) {
        order_free(o);
        return false;
    }
    *ret = o;
    return true;
}

void order_free(struct order *o)
{
    if (o == NULL) {
        return;
    }
    for (size_t i = 0; i < FILE_COUNT; i++) {
        sink_stream_abort(o->files[i]);
    }
    for (size_t i = 0; i < o->slots_n; i++) {
        scan_out_done(&o->slots[i].out);
    }
    free(o->slots);
    (void)pthread_mutex_destroy(&o->lock);
    (void)pthread_cond_destroy(&o->moved);
    free(o);
}

const struct checkpoint *order_done(const struct order *o)
{
    return &o->done;
}

static bool has_all_rows(const struct order *o)
{
    return o->config.rows > 0 && o->done.sums.counts.pairs[PAIR_WHOLE] >= o->config.rows;
}

bool order_complete(const struct order *o)
{
    return o->head == o->n || has_all_rows(o);
}

int64_t order_rows_left(const struct order *o)
{
    return o->config.rows > 0 ? o->config.rows - o->done.sums.counts.pairs[PAIR_WHOLE] : 0;
}

static struct order_slot *slot_of(struct order *o, size_t shard_i)
{
    return &o->slots[shard_i % o->slots_n];
}

bool order_claim(struct order *o, size_t *ret_shard_i, struct scan_out **ret)
{
    (void)pthread_mutex_lock(&o->lock);
    while (o->next < o->n && o->next >= o->head + o->slots_n && *o->stop == 0) {
        (void)pthread_cond_wait(&o->moved, &o->lock);
    }
    bool ok = o->next < o->n && *o->stop == 0 && !has_all_rows(o);
    if (ok) {
        struct order_slot *s = slot_of(o, o->next);
        ASSERT(s->out.lines.n == 0 && !s->done);
        *ret_shard_i = o->next++;
        *ret = &s->out;
    }
    (void)pthread_mutex_unlock(&o->lock);
    return ok;
}

static bool add(struct order *o, enum index_file f, const struct buf *b, struct err *err)
{
    if (b->overflow) {
        return err_set(err, ERR_INTERNAL, "more lines of '%s' at once than fit", names[f]);
    }
    return b->n == 0 || (open_file(o, f, err) && sink_stream_add(o->files[f], buf_str(b), err));
}

/* With the lock held and o->writing set by the caller: write what the slot has, unlocked. */
static void write_slot(struct order *o, struct order_slot *s)
{
    struct err err = ERR_INIT;
    (void)pthread_mutex_unlock(&o->lock);
    bool ok = add(o, FILE_INDEX, &s->out.lines, &err) &&
              add(o, FILE_SAMPLE, &s->out.sample, &err) &&
              add(o, FILE_BROKEN, &s->out.broken, &err);
    scan_out_reset(&s->out);
    (void)pthread_mutex_lock(&o->lock);
    if (!ok && o->err.code == ERR_NONE) {
        o->err = err;
        *o->stop = 1;
    }
}

bool order_flush(struct order *o, size_t shard_i)
{
    struct order_slot *s = slot_of(o, shard_i);
    (void)pthread_mutex_lock(&o->lock);
    while ((o->head != shard_i || o->writing) && s->out.lines.n >= ORDER_WAIT_BYTES &&
           *o->stop == 0) {
        (void)pthread_cond_wait(&o->moved, &o->lock);
    }
    if (o->head == shard_i && !o->writing && *o->stop == 0) {
        o->writing = true;
        o->partial = true;
        write_slot(o, s);
        o->writing = false;
        (void)pthread_cond_broadcast(&o->moved);
    }
    bool ok = *o->stop == 0;
    (void)pthread_mutex_unlock(&o->lock);
    return ok;
}

static void add_sums(struct checkpoint_sums *to, const struct checkpoint_sums *s)
{
    scan_counts_add(&to->counts, &s->counts);
    to->read_bytes += s->read_bytes;
    to->streamed += s->streamed;
    if (to->first_bad[0] == '\0') {
        memcpy(to->first_bad, s->first_bad, sizeof to->first_bad);
    }
}

/* Save a checkpoint between two shards. A failure is only logged: it matters only if the run is
 * stopped. */
static void save(struct order *o)
{
    struct err err = ERR_INIT;
    if (checkpoint_save(o->config.sink, &o->done, o->files, &err)) {
        o->saved = true;
    } else {
        log_event(LOG_WARN, "checkpoint_not_saved", LF_ERR(&err));
    }
    o->next_save_us = clock_mono_us() + o->config.save_every_us;
}

/* With the lock held and o->writing set: the head is written whole. */
static void write_head(struct order *o)
{
    struct order_slot *s = slot_of(o, o->head);
    o->partial = true;
    write_slot(o, s);
    if (o->err.code != ERR_NONE) {
        return; /* nothing is counted that could not be written */
    }
    o->partial = false;
    add_sums(&o->done.sums, &s->sums);
    o->done.shards_done++;
    if (*o->stop == 0 && clock_mono_us() >= o->next_save_us) {
        (void)pthread_mutex_unlock(&o->lock);
        save(o);
        (void)pthread_mutex_lock(&o->lock);
    }
}

void order_finish(struct order *o, size_t shard_i, const struct checkpoint_sums *sums)
{
    (void)pthread_mutex_lock(&o->lock);
    slot_of(o, shard_i)->sums = *sums;
    slot_of(o, shard_i)->done = true;
    while (!o->writing && o->head < o->next && slot_of(o, o->head)->done && *o->stop == 0) {
        o->writing = true;
        write_head(o);
        o->writing = false;
        slot_of(o, o->head)->done = false;
        o->head++;
        (void)pthread_cond_broadcast(&o->moved);
    }
    (void)pthread_mutex_unlock(&o->lock);
}

void order_fail(struct order *o, const struct err *err)
{
    (void)pthread_mutex_lock(&o->lock);
    if (o->err.code == ERR_NONE && *o->stop == 0) {
        o->err = *err;
    }
    *o->stop = 1;
    (void)pthread_cond_broadcast(&o->moved);
    (void)pthread_mutex_unlock(&o->lock);
}

void order_wake(struct order *o)
{
    (void)pthread_mutex_lock(&o->lock);
    (void)pthread_cond_broadcast(&o->moved);
    (void)pthread_mutex_unlock(&o->lock);
}

bool order_check(const struct order *o, struct err *err)
{
    if (o->err.code != ERR_NONE) {
        *err = o->err;
        return false;
    }
    return true;
}

bool order_publish(struct order *o, struct err *err)
{
    ASSERT(order_complete(o));
    if (o->saved) {
        /* all bytes are durable before the short time between removing the checkpoint and
         * publishing */
        save(o);
    }
    o->publishing = true;
    if (o->saved && !checkpoint_remove(o->config.sink, err)) {
        return false;
    }
    o->saved = false;
    for (size_t i = 0; i < FILE_COUNT; i++) {
        if (o->files[i] != NULL) {
            o->sizes[i] = sink_stream_size(o->files[i]);
        }
        if (o->files[i] != NULL && !sink_stream_finish(TAKE(o->files[i]), true, err)) {
            return err->code == ERR_PRECONDITION
                       ? err_wrap(err, "another writer is at work in the same output folder")
                       : false;
        }
    }
    return true;
}

int64_t order_size(const struct order *o, const char *name)
{
    for (size_t i = 0; i < FILE_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            return o->sizes[i];
        }
    }
    return -1;
}

bool order_leave(struct order *o)
{
    if (!o->publishing && !o->partial && o->err.code == ERR_NONE && o->done.shards_done > 0) {
        save(o);
    }
    for (size_t i = 0; o->saved && i < FILE_COUNT; i++) {
        sink_stream_leave(TAKE(o->files[i]));
    }
    return o->saved;
}

void order_give_up(struct order *o)
{
    struct err err = ERR_INIT;
    if (o->saved && !checkpoint_remove(o->config.sink, &err)) {
        log_event(LOG_WARN, "checkpoint_not_removed", LF_ERR(&err));
    }
}
