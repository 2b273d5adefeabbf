/* Many threads scan shards, one stream comes out, in shard order, in bounded memory. A thread
 * claims the next shard and fills a slot of its own. What the first unfinished shard (the head) has
 * goes out at once; others keep theirs until it is their turn: up to ORDER_WAIT_BYTES, then they
 * wait. No shard further than the number of slots ahead of the head is claimed. The head never
 * waits for anybody, so all come to an end.
 *
 * Writing is done by whoever finds something to write, one thread at a time, outside of the lock;
 * and so is, now and then between two shards, saving how far things are (checkpoint.h). */
#pragma once
#include "checkpoint.h"

#define ORDER_WAIT_BYTES ((size_t)2 << 20)

#define ORDER_INDEX_NAME  "index.jsonl"
#define ORDER_SAMPLE_NAME "sample.jsonl"
#define ORDER_BROKEN_NAME "broken.jsonl"

struct order;

struct order_config {  /* value */
    struct sink *sink; /* borrowed; used by the writing thread only */
    size_t n;          /* shards in all */
    int slots;
    bool sample;             /* there is a sample file */
    const char *fingerprint; /* of the run, for what an earlier one left */
    int64_t save_every_us;
    _Atomic int *stop; /* polled while waiting and set when writing fails */
};
/* Goes on where an earlier run with the same fingerprint was stopped. */
bool order_new(const struct order_config *c, struct order **ret, struct err *err) MUST_CHECK;
/* What was neither published nor left is given up. NULL ignored. */
void order_free(struct order *o);
/* What is done: the first shards_done shards and what is in them. Not while threads run. */
const struct checkpoint *order_done(const struct order *o);
/* The next shard and where its lines go; false when there is none left or all stops. */
bool order_claim(struct order *o, size_t *ret_shard_i, struct scan_out **ret) MUST_CHECK;
/* The shard's lines have grown: write them if it is the head's turn, wait if they are too many.
 * False when stopping. */
bool order_flush(struct order *o, size_t shard_i) MUST_CHECK;
/* The shard is complete; what was counted in it. */
void order_finish(struct order *o, size_t shard_i, const struct checkpoint_sums *sums);
/* Remember the first error and stop all. */
void order_fail(struct order *o, const struct err *err);
/* Wake whoever waits: stop has been set. */
void order_wake(struct order *o);
/* After all threads have ended: the first error. */
bool order_check(const struct order *o, struct err *err) MUST_CHECK;
/* After that: create the files. */
bool order_publish(struct order *o, struct err *err) MUST_CHECK;
/* Or: leave what there is for the next run; saved once more where possible. */
void order_leave(struct order *o);
/* Or: nobody is to go on with this. */
void order_give_up(struct order *o);
