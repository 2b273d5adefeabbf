/* Where output goes: a folder or an S3 prefix behind one interface. Names are relative, without
 * slashes. A sink belongs to one thread at a time; several may be open on the same place.
 *
 * Create-only means what If-None-Match: * means: when the name is there already, nothing is
 * written and the call fails with ERR_PRECONDITION. Nothing is ever seen half written. */
#pragma once
#include "common/buf.h"

#define SINK_NAME_BYTES_MAX 200
#define SINK_OBJECTS_MAX    2000000 /* of one output folder */

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
