/* One shard: its members grouped to pairs as webdataset groups them (same name up to the first dot
 * of the last component, one after the other), each whole pair one line, each broken one counted
 * and told. A pair is whole with one picture that is not empty, and the .txt and .json asked for.
 */
#pragma once
#include "line.h"
#include "tarwalk.h"

#define SCAN_TXT_BYTES_MAX    ((int64_t)1 << 20)
#define SCAN_JSON_BYTES_MAX   ((int64_t)SOURCE_NEED_MAX)
#define SCAN_OUT_BYTES        ((size_t)1 << 20) /* lines handed on at a time */
#define SCAN_OUT_BYTES_MAX    ((size_t)16 << 20)
#define SCAN_BROKEN_LINES_MAX 1000 /* of one shard; all are counted */

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
/* "success" for a whole one, else what is wrong: "no txt". */
const char *pair_fault_text(enum pair_fault f);

struct scan_config { /* value */
    unsigned fields; /* enum line_field */
    bool need_txt, need_json;
    bool sample;
    uint64_t sample_below; /* hashes below go into the sample, too */
};
struct scan_counts {
    int64_t members; /* regular files */
    int64_t pairs[PAIR_FAULT_COUNT];
    int64_t sampled;
    int64_t others; /* members that belong to no pair */
    int64_t bad_tars;
};
int64_t scan_counts_pairs(const struct scan_counts *c); /* whole and broken */
void scan_counts_add(struct scan_counts *to, const struct scan_counts *c);

struct scan_out { /* of one shard, until it is handed on */
    struct buf lines;
    struct buf sample;
    struct buf broken;
};
void scan_out_init(struct scan_out *o);
void scan_out_done(struct scan_out *o);
void scan_out_reset(struct scan_out *o);

struct scan {
    const struct scan_config *config; /* borrowed, as are the next two */
    struct source *src;
    struct scan_out *out; /* may be changed between shards and by flush */
    /* Called when out has SCAN_OUT_BYTES or more: make room. False ends the scan. */
    bool (*flush)(void *ctx, struct err *err);
    void *ctx;
    struct scan_counts counts; /* since init */
    struct err fault;          /* of the last shard, when it was bad: what and where */
    int64_t fault_at;
    enum pair_fault first_broken; /* of the last shard; PAIR_WHOLE: none */
    int64_t first_broken_at;

    struct buf path_; /* escaped */
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
void scan_init(struct scan *s, const struct scan_config *config, struct source *src);
void scan_done(struct scan *s);
/* The shard that is open in src; path as the lines say it. True when done: also when the archive
 * is bad, which is counted, told in out->broken and in s->fault (else code NONE); pairs before
 * the fault are kept. False when bytes could not be had or flush said so. */
bool scan_shard(struct scan *s, struct str path, struct err *err) MUST_CHECK;
