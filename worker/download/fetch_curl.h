/* Between fetch.c and curl: the fetch thread's state, and what curl is told and tells of one
 * transfer. Nobody else includes this. */
#pragma once
#include "fetch.h"
#include "fetch_io.h"
#include "transfer.h"

#define USER_AGENT_BYTES 400

struct fetch {
    struct run *run;
    struct fetch_io io;
    struct hosts *hosts;
    struct resolver *resolver;
    struct transfer *transfers; /* transfers[transfers_n] */
    int transfers_n;
    struct transfer *free;
    int active;
    int stalled;                 /* of active, at the last tick */
    struct transfer *privileged; /* may go over the byte budget, so that one always ends */
    _Atomic size_t bytes;        /* bodies held anywhere */
    _Atomic bool idle;
    bool unpark; /* some host may have room for a parked row */
    int64_t next_tick_us;
    int unreached_n;
    bool reached;        /* once somebody answered, the network is there */
    const char *ca_file; /* SSL_CERT_FILE, as OpenSSL's own programs read it; NULL: the system's */
    char user_agent[USER_AGENT_BYTES];
};

/* Begin to transfer t->url from t->addrs[t->addr_i]. */
void fetch_curl_start(struct fetch *f, struct transfer *t);
