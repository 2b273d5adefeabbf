/* One URL being fetched: its state, and the meaning of its end. No I/O; fetch.c drives it. */
#pragma once
#include "download/part/sample.h"
#include "hosts.h"
#include "resolve.h"
#include "robots.h"
#include "url.h"
#include <curl/curl.h>

#define TRANSFER_BLOCKED_TEXT "<urlopen error address not allowed>"

enum transfer_state { TRANSFER_IDLE, TRANSFER_RESOLVING, TRANSFER_RUNNING };
struct fetch;
struct transfer {
    struct fetch *fetch;
    struct transfer *next; /* in the free list */
    struct sample *sample;
    CURL *easy; /* of this hop */
    struct curl_slist *connect_to;
    enum transfer_state state;
    struct host *host; /* NULL: not counted with a host */
    struct url url;    /* of this hop */
    struct net_addr addrs[RESOLVE_ADDRS_MAX];
    int addrs_n, addr_i;
    /* Monotonic, 0: not set. */
    int64_t begun_us, deadline_us; /* of the hop with this host; of the try */
    /* begun_us: never extended; the time its host was last heard */
    int64_t hop_us, heard_us;
    int64_t first_byte_us, paused_us; /* of the hop */
    int64_t retry_after_us;           /* Retry-After */
    int64_t excused_us;               /* of the attempt: this thread's own time */
    bool heard;                       /* since the last tick */
    struct buf body;
    size_t discarded;
    size_t header_n, pieces_n;
    int status;                          /* of the last status line */
    char reason[SAMPLE_ERROR_BYTES_MAX]; /* its reason phrase, in UTF-8 */
    bool forbidden;                      /* by X-Robots-Tag */
    bool too_large;
    bool blocked; /* by the address rules, at the socket */
};

enum verdict_kind { VERDICT_OK, VERDICT_REDIRECT, VERDICT_TRANSIENT, VERDICT_FAILED };
/* What an end says about our own network. */
enum verdict_reach {
    REACH_UNTRIED, /* nothing: it ended before a connection was tried (URL, name, address rules) */
    REACH_NO,      /* no answer: DNS, route or connection failed */
    REACH_YES,     /* a connection, a status, or a port that refuses */
};
struct verdict {
    enum verdict_kind kind;
    enum verdict_reach reach;
    bool silent;          /* the host did not answer in time */
    bool drips;           /* the answer was useless */
    bool refused;         /* silent: the connection was refused */
    const char *location; /* VERDICT_REDIRECT: borrowed from curl until the handle is used again */
    char text[SAMPLE_ERROR_BYTES_MAX];
};
/* Reset the fields of one hop. */
void transfer_reset_hop(struct transfer *t);
/* Process one header line of the answer. */
void transfer_header(struct transfer *t, struct str line, const struct robots *robots);
/* Judge curl's result and the answer, in the words of Python's urllib. Counts redirects. */
void transfer_judge(struct transfer *t, CURLcode rc, struct verdict *ret);
const char *transfer_resolve_text(enum resolve_status status);
/* True when the body has been slower than FETCH_SPEED_MIN for too long. */
bool transfer_is_slow(const struct transfer *t, int64_t now_us);
/* True when the body comes in such small pieces that receiving them dominates the cost. */
bool transfer_is_crumbs(const struct transfer *t);
/* True when it has made almost no progress for a second: name, connection or body. */
bool transfer_is_stalled(const struct transfer *t, int64_t now_us);
/* The attempt failed and may be repeated: use up one of the row's `retries`. False: none is left. A
 * request for a pause uses up none for the row's first HOST_PAUSES_MAX ones: a host that pauses is
 * probed by one row, often the same. A row without retries never waits. */
bool transfer_take_retry(struct transfer *t, int64_t retries);
/* Move the deadlines of the transfer by a time that was not the host's fault. */
void transfer_excuse(struct transfer *t, int64_t us);
