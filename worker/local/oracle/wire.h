/* The wire log: one line of JSON per request in ROOT/wire.log, written when the answer is decided
 * and before it is sent, so that everything that took effect is in it even if drover-local is
 * killed. A request whose effect comes after its connection was closed has a second line with the
 * same id; the last line of an id counts. */
#pragma once
#include "common/buf.h"
#include "common/units.h"

#define WIRE_ENTRIES_MAX 8000000

struct request;
struct wire_line { /* position of a request's line in the file */
    uint64_t id;
    usec_t arrival;
    int64_t offset;
    int32_t length;
};
struct wire_log {
    int fd;
    int64_t size;
    struct wire_line *lines;
    size_t n;
    size_t cap;
    uint64_t next_id;
};

/* Open ROOT/wire.log, index its lines, cut a torn last line. */
bool wire_open(struct wire_log *w, const char *root, struct err *err) MUST_CHECK;
void wire_close(struct wire_log *w);
uint64_t wire_next_id(struct wire_log *w);
/* Append the request in its current state; `replied`: a whole answer will be sent. */
void wire_write(struct wire_log *w, const struct request *r, bool replied);
/* True when the log is full: requests are refused until a reset. */
bool wire_full(const struct wire_log *w);
bool wire_has(const struct wire_log *w, uint64_t id);
/* {"requests":[...]} in order of arrival into out. */
bool wire_dump(const struct wire_log *w, struct buf *out, struct err *err) MUST_CHECK;
bool wire_reset(struct wire_log *w, struct err *err) MUST_CHECK;
