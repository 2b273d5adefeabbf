/* Many threads scan shards; one stream is written, in shard order, in bounded memory. A thread
 * claims the next shard and fills its slot. Lines of the first unfinished shard (the head) are
 * written at once; other shards keep theirs until they become the head: up to ORDER_WAIT_BYTES,
 * then their threads wait. No shard further ahead of the head than the number of slots is claimed.
 * The head never waits for another shard, so there is no deadlock.
 *
 * The thread that finds something to write writes it, one thread at a time, outside the lock. It
 * also saves a checkpoint from time to time between two shards (checkpoint.h). */
#pragma once
#include "checkpoint.h"

#define ORDER_WAIT_BYTES ((size_t)2 << 20)

#define ORDER_INDEX_NAME  "index.jsonl"
#define ORDER_SAMPLE_NAME "sample.jsonl"
#define ORDER_BROKEN_NAME "broken.jsonl"

struct order;

struct order_config {  /* value */
    struct sink *sink; /* borrowed; used by the writing thread only */
    size_t n;          /* total number of shards */
    int slots;
    bool sample;             /* write a sample file */
    int64_t rows;            /* complete pairs after which no shard is claimed; 0: no such limit */
    const char *fingerprint; /* of the run; identifies the checkpoint of an earlier run */
    int64_t save_every_us;
    _Atomic int *stop; /* polled while waiting and set when writing fails */
};
/* Continues where an earlier run with the same fingerprint was stopped. */
bool order_new(const struct order_config *c, struct order **ret, struct err *err) MUST_CHECK;
/* Discards what was neither published nor left. NULL ignored. */
void order_free(struct order *o);
/* The finished shards and their counts. Not while threads run. */
const struct checkpoint *order_done(const struct order *o);
/* True when the output is complete: every shard is in it, or all rows asked for. Not while threads
 * run. */
bool order_complete(const struct order *o);
/* Complete pairs that the next shard may add; 0: no limit. Only where one thread claims and
 * finishes. */
int64_t order_rows_left(const struct order *o);
/* Claim the next shard and its output; false when no shard is left or the run stops. */
bool order_claim(struct order *o, size_t *ret_shard_i, struct scan_out **ret) MUST_CHECK;
/* The shard has more lines: write them if it is the head, wait if there are too many. False when
 * stopping. */
bool order_flush(struct order *o, size_t shard_i) MUST_CHECK;
/* The shard is complete; sums are its counts. */
void order_finish(struct order *o, size_t shard_i, const struct checkpoint_sums *sums);
/* Keep the first error and stop all threads. */
void order_fail(struct order *o, const struct err *err);
/* Wake all waiting threads after stop was set. */
void order_wake(struct order *o);
/* After all threads have ended: false with the first error. */
bool order_check(const struct order *o, struct err *err) MUST_CHECK;
/* Then one of three: create the files, */
bool order_publish(struct order *o, struct err *err) MUST_CHECK;
/* (then the bytes of one; -1: it was not made) */
int64_t order_size(const struct order *o, const char *name);
/* or leave the state for the next run, saved once more where possible; false when there is none,
 * as after order_publish, */
bool order_leave(struct order *o);
/* or discard it, so that no run continues it. */
void order_give_up(struct order *o);
