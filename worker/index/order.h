/* Many threads scan shards, one stream comes out, in shard order, in bounded memory. A thread
 * claims the next shard and fills a slot of its own. What the first unfinished shard (the head) has
 * goes out at once; others keep theirs until it is their turn: up to ORDER_WAIT_BYTES, then they
 * wait. No shard further than the number of slots ahead of the head is claimed. The head never
 * waits for anybody, so all come to an end.
 *
 * Writing is done by whoever finds something to write, one thread at a time, outside of the lock.
 */
#pragma once
#include "scan.h"
#include "sink.h"

#define ORDER_WAIT_BYTES ((size_t)2 << 20)

#define ORDER_INDEX_NAME  "index.jsonl"
#define ORDER_SAMPLE_NAME "sample.jsonl"
#define ORDER_BROKEN_NAME "broken.jsonl"

struct order;

/* n shards in all. stop is polled while waiting and set when writing fails. sink is borrowed and
 * used by the writing thread only. sample: there is a sample file. */
bool order_new(struct sink *sink, size_t n, int slots, bool sample, _Atomic int *stop,
               struct order **ret, struct err *err) MUST_CHECK;
/* What was not published is given up. NULL ignored. */
void order_free(struct order *o);
/* The next shard and where its lines go; false when there is none left or all stops. */
bool order_claim(struct order *o, size_t *ret_shard_i, struct scan_out **ret) MUST_CHECK;
/* The shard's lines have grown: write them if it is the head's turn, wait if they are too many.
 * False when stopping. */
bool order_flush(struct order *o, size_t shard_i) MUST_CHECK;
/* The shard is complete. */
void order_finish(struct order *o, size_t shard_i);
/* Remember the first error and stop all. */
void order_fail(struct order *o, const struct err *err);
/* Wake whoever waits: stop has been set. */
void order_wake(struct order *o);
/* After all threads have ended: the first error. */
bool order_check(const struct order *o, struct err *err) MUST_CHECK;
/* After that: create the files. */
bool order_publish(struct order *o, struct err *err) MUST_CHECK;
