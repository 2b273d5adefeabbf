/* What a Pipe channel sends: objects, or the lines of an augmented manifest, and their order in
 * each epoch. */
#pragma once
#include "common/json.h"

struct feed_plan {
    const char *name;         /* of the channel; of the request, as `attributes` */
    const json_t *attributes; /* AttributeNames; NULL: units are objects, else lines */
    struct buf units;         /* s3:// URIs or lines of JSON, each ended by a NUL */
    size_t *at;               /* where each begins; at[n] */
    size_t n;
    size_t cap;
    bool gzip;     /* objects are decompressed */
    bool recordio; /* each object or attribute is one record */
    bool sharded;
    bool shuffled;
    uint64_t seed;
};

/* An empty plan of a channel of InputDataConfig, which must outlive it. */
void feed_plan_init(struct feed_plan *p, const json_t *channel);
void feed_plan_done(struct feed_plan *p);
void feed_plan_add(struct feed_plan *p, struct str unit);
const char *feed_plan_unit(const struct feed_plan *p, size_t i);
/* Numbers of the units that host k (from 1) of `hosts` gets in an epoch, in their order; the caller
 * frees them. All hosts shuffle alike, so a sharded channel gives each unit to one of them. */
size_t *feed_plan_order(const struct feed_plan *p, int64_t epoch, int k, int hosts, size_t *ret_n);

/* The value of one attribute of a line (`parsed` is the line's JSON). *ret_object: it is the URI of
 * an object, since the name ends with -ref. Strings come without quotes, other values as they stand
 * in the line. The caller frees *ret. */
bool feed_plan_value(struct str line, const json_t *parsed, const char *name, bool *ret_object,
                     char **ret, struct err *err) MUST_CHECK;
