/* See body.h. */
#include "body.h"
#include "common/clock.h"
#include "common/log.h"
#include "router.h"
#include "server_state.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define GRACE_US    (60 * USEC_PER_SEC)
#define BYTES_PER_S 500
#define BODY_US     (600 * USEC_PER_SEC)
#define BULK_US     (7200 * USEC_PER_SEC)

int64_t body_max(const struct api_req *r)
{
    if (r->route == NULL || strcmp(r->route->method, "GET") == 0) {
        return 0;
    }
    if (r->route->role == API_PUBLIC) {
        return API_PUBLIC_BODY_MAX;
    }
    if ((r->route->flags & ROUTE_SOURCE) != 0) {
        return API_SOURCE_MAX;
    }
    return (r->route->flags & ROUTE_BULK) != 0 ? API_BULK_MAX : API_BODY_MAX;
}

bool body_is_empty(const struct api_req *r)
{
    const char *length = req_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
    bool chunked = req_header(r, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
    return !chunked && (length == NULL || strcmp(length, "0") == 0);
}

/* A temporary file without a name; closing its descriptor deletes it. */
static bool spool_open(struct api_req *r)
{
    const char *dir = r->api->cfg.spool_dir != NULL ? r->api->cfg.spool_dir : "/tmp";
    r->spool_fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (r->spool_fd < 0 && log_allow("spool_failed")) {
        log_event(LOG_ERROR, "spool_failed", LF_S("dir", dir), LF_I("errno", errno));
    }
    return r->spool_fd >= 0;
}

/* Takes n bytes of what all requests share; busy when there are none left. */
static bool share_take(struct api_req *r, _Atomic int64_t *total, int64_t *held, int64_t max,
                       size_t n)
{
    *held += (int64_t)n;
    if (atomic_fetch_add(total, (int64_t)n) + (int64_t)n > max) {
        r->busy = true;
        body_done(r);
    }
    return !r->busy;
}

static bool spool_add(struct api_req *r, const char *p, size_t n)
{
    int64_t max = r->api->cfg.spooled_max > 0 ? r->api->cfg.spooled_max : SPOOLED_MAX;
    if (!share_take(r, &r->api->spooled, &r->spool_held, max, n)) {
        return true;
    }
    if (r->spool_fd < 0 && !spool_open(r)) {
        return false;
    }
    while (n > 0) {
        ssize_t done = write(r->spool_fd, p, n);
        if (done < 0 && errno != EINTR) {
            if (log_allow("spool_failed")) {
                log_event(LOG_ERROR, "spool_failed", LF_I("errno", errno));
            }
            return false;
        }
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
    return true;
}

static void memory_add(struct api_req *r, const char *p, size_t n)
{
    int64_t max = r->api->cfg.bodies_max > 0 ? r->api->cfg.bodies_max : BODIES_MAX;
    if (share_take(r, &r->api->bodies, &r->body_held, max, n)) {
        buf_add(&r->body, p, n);
    }
}

static int64_t time_max(const struct api_req *r)
{
    bool bulk = r->route != NULL && (r->route->flags & ROUTE_BULK) != 0;
    return r->api->cfg.body_us > 0 ? r->api->cfg.body_us : bulk ? BULK_US : BODY_US;
}

bool body_take(struct api_req *r, const char *data, size_t n)
{
    int64_t max = body_max(r), took_us = clock_mono_us() - r->begun_us;
    r->body_n += (int64_t)n;
    if (took_us > time_max(r) ||
        (took_us > GRACE_US && r->body_n * USEC_PER_SEC / took_us < BYTES_PER_S)) {
        return false;
    }
    if (r->refused || r->busy || max == 0) {
        return r->body_n <= max + BODY_THROWN_AWAY_MAX;
    }
    if (r->too_large || r->body_n > max) {
        r->too_large = true;
        body_done(r);
        return r->body_n <= max + BODY_THROWN_AWAY_MAX;
    }
    if ((r->route->flags & ROUTE_BULK) != 0) {
        return spool_add(r, data, n);
    }
    memory_add(r, data, n);
    return true;
}

void body_done(struct api_req *r)
{
    if (r->spool_fd >= 0) {
        (void)close(r->spool_fd);
        r->spool_fd = -1;
    }
    buf_done(&r->body);
    (void)atomic_fetch_sub(&r->api->bodies, r->body_held);
    (void)atomic_fetch_sub(&r->api->spooled, r->spool_held);
    r->body_held = r->spool_held = 0;
}
