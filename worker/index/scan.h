/* Scans one shard: members are grouped into pairs as webdataset groups them (same name up to the
 * first dot of the last component, adjacent). Each complete pair gives one line; each broken pair
 * is counted and listed. A pair is complete with exactly one non-empty picture, and the .txt and
 * .json required. */
#pragma once
#include "line.h"
#include "tarwalk.h"

#define SCAN_TXT_BYTES_MAX    ((int64_t)1 << 20)
#define SCAN_JSON_BYTES_MAX   ((int64_t)SOURCE_NEED_MAX)
#define SCAN_OUT_BYTES        ((size_t)1 << 20) /* flush the lines at this size */
#define SCAN_OUT_BYTES_MAX    ((size_t)16 << 20)
#define SCAN_BROKEN_LINES_MAX 1000 /* listed per shard; all are counted */

enum pair_fault {
    PAIR_WHOLE,
    PAIR_NO_IMAGE,
    PAIR_NO_TXT,
    PAIR_NO_JSON,
    PAIR_EMPTY_IMAGE,
    PAIR_TWICE,
    PAIR_TOO_LARGE,
    PAIR_BAD_JSON,
    PAIR_NO_SIZE,
    PAIR_FAULT_COUNT
};
/* "success" for a complete pair, else the fault: "no txt". */
const char *pair_fault_text(enum pair_fault f);

struct scan_config { /* value */
    unsigned fields; /* enum line_field */
    bool need_txt, need_json;
    bool sample;
    uint64_t sample_below; /* pairs with a smaller hash are also in the sample */
    int64_t rows;          /* of the whole index: complete pairs, at most; 0: all */
};
struct scan_counts {
    int64_t members; /* regular files */
    int64_t pairs[PAIR_FAULT_COUNT];
    int64_t sampled;
    int64_t others; /* members that belong to no pair */
    int64_t bad_tars;
};
int64_t scan_counts_pairs(const struct scan_counts *c); /* complete and broken */
/* Adds c to *to. */
void scan_counts_add(struct scan_counts *to, const struct scan_counts *c);

struct scan_out { /* the output of one shard until it is flushed */
    struct buf lines;
    struct buf sample;
    struct buf broken;
};
/* Empty buffers; done frees them, reset empties them. */
void scan_out_init(struct scan_out *o);
void scan_out_done(struct scan_out *o);
void scan_out_reset(struct scan_out *o);

struct scan {
    const struct scan_config *config; /* borrowed, as are the next two */
    struct source *src;
    struct scan_out *out; /* may be changed between shards and by flush */
    /* Called when out has SCAN_OUT_BYTES or more, to empty it. False ends the scan. */
    bool (*flush)(void *ctx, struct err *err);
    void *ctx;
    struct scan_counts counts; /* since init */
    struct err fault;          /* of the last shard, when it was bad: the fault and its position */
    int64_t fault_at;
    enum pair_fault first_broken; /* of the last shard; PAIR_WHOLE: no broken pair */
    int64_t first_broken_at;

    int64_t rows_max; /* complete pairs of the next shard; 0: all of them */

    struct buf path_;     /* escaped */
    int64_t shard_whole_; /* complete pairs of this shard */
    int64_t broken_n_;
    char key_[TARWALK_NAME_MAX + 1];
    char suffix_[8];
    struct buf caption_; /* escaped */
    size_t key_n_;
    bool open_, image_, txt_, json_;
    enum pair_fault fault_;
    int64_t first_at_; /* of the first member */
    struct line_pair pair_;
};
/* Borrows config and src until scan_done. */
void scan_init(struct scan *s, const struct scan_config *config, struct source *src);
void scan_done(struct scan *s);
/* Scan the shard that is open in src; path as written in the lines. True when finished. A bad
 * archive also returns true: it is counted and described in out->broken and s->fault (else its code
 * is NONE), and pairs before the fault are kept. False when bytes could not be read or flush
 * returned false. */
bool scan_shard(struct scan *s, struct str path, struct err *err) MUST_CHECK;
