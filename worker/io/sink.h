/* Output to a folder or an S3 prefix behind one interface. Names are relative, without slashes. A
 * sink belongs to one thread at a time; several sinks may be open on the same location. S3 encrypts
 * what is written with the key of KMS that WP_ENV_OUTPUT_KMS_KEY names, if any.
 *
 * Create-only means what If-None-Match: * means: when the name exists, nothing is written and the
 * call fails with ERR_PRECONDITION. A partly written object is never visible. */
#pragma once
#include "common/buf.h"
#include "common/units.h"
#include <jansson.h>

#define SINK_NAME_BYTES_MAX 200
/* part size of a stream to S3, larger after S3_PARTS_SAME; each stream holds a part in memory */
#define SINK_PART_BYTES     ((size_t)8 << 20)
#define S3_TRIES            6 /* of each call to S3 of a job */
#define SINK_S3_PATIENCE_US (120 * USEC_PER_SEC)
#define SINK_OBJECTS_MAX    2000000 /* maximum objects in an output folder */

struct sink;
struct sink_object { /* value */
    char *name;
    int64_t size;
    char etag[72]; /* "" for a folder */
};
struct sink_listing {
    struct sink_object *objects; /* objects[n], by name, bytewise */
    size_t n;
};

/* uri: s3://bucket/prefix, file:///folder or a folder, which is created. The caller frees the
 * sink. */
bool sink_is_s3(const char *uri);
bool sink_open(const char *uri, struct sink **ret, struct err *err) MUST_CHECK;
void sink_free(struct sink *s);
/* For how long requests are tried again while S3 reports failures; SINK_S3_PATIENCE_US unless this
 * is called. Nothing to do for a folder. */
void sink_be_patient(struct sink *s, int64_t patience_us);
/* List the objects directly below, and the folders (see sink_tree.h) as "name/" of size 0;
 * sink_listing_done frees the result. */
bool sink_list(struct sink *s, struct sink_listing *ret, struct err *err) MUST_CHECK;
void sink_listing_done(struct sink_listing *l);
const struct sink_object *sink_listing_find(const struct sink_listing *l, const char *name);
/* ERR_NOT_FOUND when absent; appends to ret. */
bool sink_get(struct sink *s, const char *name, struct buf *ret, struct err *err) MUST_CHECK;
/* Read many objects, MANY_N (many.h) at once. All functions are called by any of those threads; the
 * first failure ends it. */
struct sink_gets { /* value; all borrowed */
    size_t n;
    size_t bytes_max; /* of one */
    void (*name)(void *ctx, size_t i, char out[static SINK_NAME_BYTES_MAX + 1]);
    bool (*take)(void *ctx, size_t i, struct str text, struct err *err);
    void *ctx;
};
bool sink_get_many(struct sink *s, const struct sink_gets *of, struct err *err) MUST_CHECK;
/* -1 when absent. */
bool sink_size(struct sink *s, const char *name, int64_t *ret, struct err *err) MUST_CHECK;
bool sink_put(struct sink *s, const char *name, struct str body, const char *content_type,
              bool create_only, struct err *err) MUST_CHECK;
/* An absent object is a success. */
bool sink_delete(struct sink *s, const char *name, struct err *err) MUST_CHECK;
/* Objects, no folders, MANY_N at once; counts in *done. The first failure ends it. */
bool sink_delete_many(struct sink *s, const char *const *names, size_t n, _Atomic int64_t *done,
                      struct err *err) MUST_CHECK;

/* Remove temporary files a killed worker left in a folder; nothing to do for S3. */
bool sink_sweep(struct sink *s, struct err *err) MUST_CHECK;
/* As sink_sweep, but keep the files of saved streams: keep[keep_n], texts of sink_stream_kept. */
bool sink_sweep_but(struct sink *s, const char *const *keep, size_t keep_n,
                    struct err *err) MUST_CHECK;
/* As sink_sweep, but only the files that would have become names that `ours` accepts: in a folder
 * where others leave theirs to go on with. */
bool sink_sweep_ours(struct sink *s, bool (*ours)(void *ctx, const char *name), void *ctx,
                     struct err *err) MUST_CHECK;
/* Abort the multipart uploads of names directly below that `ours` accepts; nothing to do for a
 * folder. For the end of a run, when any such upload is too late. A failure is only logged: the
 * output is complete, abandoned parts only cost storage. */
void sink_abort_uploads(struct sink *s, bool (*ours)(void *ctx, const char *name), void *ctx);

/* An object of unknown size. Either finish or abort must be called; both free it. */
struct sink_stream;
bool sink_stream_begin(struct sink *s, const char *name, const char *content_type,
                       struct sink_stream **ret, struct err *err) MUST_CHECK;
bool sink_stream_add(struct sink_stream *t, struct str data, struct err *err) MUST_CHECK;
bool sink_stream_finish(struct sink_stream *t, bool create_only, struct err *err) MUST_CHECK;
void sink_stream_abort(struct sink_stream *t);
/* Bytes added so far. */
int64_t sink_stream_size(const struct sink_stream *t);

/* Streams that another process can continue after a stop or kill.\nsave: makes the bytes so far
 * durable, writes its state as members of the object open in w, and appends bytes stored nowhere
 * else to tail; may be called repeatedly. leave: frees the stream and keeps what was
 * saved.\nrestore: reopens the stream saved in o, with its bytes from the front of tail, at its
 * saved length. ERR_NOT_FOUND when it is gone, ERR_CONFLICT when the process that saved it is still
 * alive, ERR_MALFORMED when o is invalid. */
struct json_out;
bool sink_stream_save(struct sink_stream *t, struct json_out *w, struct buf *tail,
                      struct err *err) MUST_CHECK;
void sink_stream_leave(struct sink_stream *t);
bool sink_stream_restore(struct sink *s, const char *name, const char *content_type,
                         const json_t *o, struct str *tail, struct sink_stream **ret,
                         struct err *err) MUST_CHECK;
/* The temporary file of a saved stream; "" when it has none. Borrowed from o. */
const char *sink_stream_kept(const json_t *o);
