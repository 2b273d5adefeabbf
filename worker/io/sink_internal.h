/* Shared by sink.c, sink_gets.c, sink_sweep.c, sink_tree.c and sink_uploads.c. */
#pragma once
#include "common/s3.h"
#include "sink.h"

#define SINK_TMP_PREFIX ".tmp-"

struct sink_uploads;
struct sink {
    int dir_fd;      /* -1 for S3 */
    unsigned serial; /* of temporary names */
    struct s3_blocking *s3;
    int64_t patience_us;
    struct s3_uri base;           /* key ends with '/' or is empty */
    struct sink_uploads *uploads; /* NULL until needed */
    void (*uploads_free)(struct sink_uploads *u);
};

/* The object's URI. Names are our own and short, so they always fit. */
struct s3_uri sink_uri_of(const struct sink *s, const char *name);
/* One more connection to the sink's S3, for another thread. */
bool sink_s3_connect(const struct sink *s, struct s3_blocking **ret, struct err *err) MUST_CHECK;
bool sink_write_all(int fd, struct str data, const char *name, struct err *err) MUST_CHECK;
/* A new temporary file or folder, locked: the lock says that its writer is alive. Another writer
 * that sweeps may remove it before it is locked; it is then made once more. -1 with errno on
 * failure. */
int sink_create_tmp(struct sink *s, const char *name, bool folder, char *tmp, size_t tmp_n);
/* A folder of files only, with its files. An absent one is a success. */
bool sink_remove_folder(struct sink *s, const char *name, struct err *err) MUST_CHECK;

/* sink_uploads.c: requests about many small objects of one sink in S3, SINK_UPLOADS_N at a time,
 * each by a thread with a connection of its own. A group collects the outcome of its requests. */
#define SINK_UPLOADS_N         32
#define SINK_UPLOADS_BYTES_MAX ((size_t)32 << 20) /* waiting */
struct sink_uploads_group { /* zeroed but for err; guarded by a lock of the uploads */
    int64_t pending;
    struct err err;        /* the first failure */
    _Atomic int64_t *done; /* counts those that succeeded; NULL: nobody asks */
};
/* The uploads of the sink, with their threads; they live as long as the sink, and no group may be
 * pending at its end. */
bool sink_uploads_of(struct sink *s, struct sink_uploads **ret, struct err *err) MUST_CHECK;
/* Copies the data, and waits while too many bytes are waiting. content_type: a literal. */
void sink_uploads_put(struct sink_uploads *u, struct sink_uploads_group *g, const char *name,
                      struct str data, const char *content_type);
void sink_uploads_delete(struct sink_uploads *u, struct sink_uploads_group *g, const char *name);
/* Send no further request of the group, and wait for those under way. */
void sink_uploads_drop(struct sink_uploads *u, struct sink_uploads_group *g);
/* True when a request of the group has failed: the rest is not worth sending. */
bool sink_uploads_failed(struct sink_uploads *u, const struct sink_uploads_group *g);
/* Wait until the group has no request left. False with its first failure. */
bool sink_uploads_wait(struct sink_uploads *u, struct sink_uploads_group *g,
                       struct err *err) MUST_CHECK;
