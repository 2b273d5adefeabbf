/* Where output goes: a folder or an S3 prefix behind one interface. Names are relative, without
 * slashes. A sink belongs to one thread at a time; several may be open on the same place.
 *
 * Create-only means what If-None-Match: * means: when the name is there already, nothing is
 * written and the call fails with ERR_PRECONDITION. Nothing is ever seen half written. */
#pragma once
#include "common/buf.h"
#include <jansson.h>

#define SINK_NAME_BYTES_MAX 200
#define SINK_PART_BYTES     ((size_t)8 << 20) /* of a stream to S3: so much of each is in memory */
#define SINK_OBJECTS_MAX    2000000           /* of one output folder */

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

/* uri: s3://bucket/prefix, file:///folder or a folder, which is made. Caller frees. */
bool sink_is_s3(const char *uri);
bool sink_open(const char *uri, struct sink **ret, struct err *err) MUST_CHECK;
void sink_free(struct sink *s);
/* What lies directly below; sink_listing_done frees it. */
bool sink_list(struct sink *s, struct sink_listing *ret, struct err *err) MUST_CHECK;
void sink_listing_done(struct sink_listing *l);
const struct sink_object *sink_listing_find(const struct sink_listing *l, const char *name);
/* ERR_NOT_FOUND when absent; appends to ret. */
bool sink_get(struct sink *s, const char *name, struct buf *ret, struct err *err) MUST_CHECK;
bool sink_put(struct sink *s, const char *name, struct str body, const char *content_type,
              bool create_only, struct err *err) MUST_CHECK;
/* Absent is success. */
bool sink_delete(struct sink *s, const char *name, struct err *err) MUST_CHECK;

/* Remove temporary files a killed worker left in a folder; nothing to do for S3. */
bool sink_sweep(struct sink *s, struct err *err) MUST_CHECK;
/* The same, but leave the one a stream was saved in: keep[keep_n], texts of sink_stream_kept. */
bool sink_sweep_but(struct sink *s, const char *const *keep, size_t keep_n,
                    struct err *err) MUST_CHECK;
/* Abort the multipart uploads of names directly below that `ours` accepts; nothing to do for a
 * folder. For the end of a run: whoever is still uploading such a name can only come too late. A
 * failure is warned of: the output is whole, parts nobody completes only cost. */
void sink_abort_uploads(struct sink *s, bool (*ours)(void *ctx, const char *name), void *ctx);

/* An object of unknown size. Either finish or abort must be called; both free it. */
struct sink_stream;
bool sink_stream_begin(struct sink *s, const char *name, const char *content_type,
                       struct sink_stream **ret, struct err *err) MUST_CHECK;
bool sink_stream_add(struct sink_stream *t, struct str data, struct err *err) MUST_CHECK;
bool sink_stream_finish(struct sink_stream *t, bool create_only, struct err *err) MUST_CHECK;
void sink_stream_abort(struct sink_stream *t);

/* A stream another process may go on with, for a worker that is stopped or killed. save makes what
 * came so far durable and adds what it takes to members of the object open in w, and bytes that are
 * nowhere else to tail; it may be called again and again. leave frees the stream, what was saved
 * stays. restore takes the saved object o (its bytes from the beginning of tail) and gives a
 * stream that is as long as it was then. ERR_NOT_FOUND when it is gone, ERR_CONFLICT when the
 * process that saved it lives still, ERR_MALFORMED when o makes no sense. */
struct json_out;
bool sink_stream_save(struct sink_stream *t, struct json_out *w, struct buf *tail,
                      struct err *err) MUST_CHECK;
void sink_stream_leave(struct sink_stream *t);
bool sink_stream_restore(struct sink *s, const char *name, const char *content_type,
                         const json_t *o, struct str *tail, struct sink_stream **ret,
                         struct err *err) MUST_CHECK;
/* The temporary file of a saved stream, "" when there is none; borrowed from o. */
const char *sink_stream_kept(const json_t *o);
