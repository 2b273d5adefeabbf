/* DNS: c-ares in the fetch thread with our own cache and at most RESOLVE_LOOKUPS_MAX open queries
 * (a busy resolver drops more). IPv6 is queried only when a name has no IPv4 address. Belongs to
 * one thread. */
#pragma once
#include "common/addr.h"
#include "common/loop.h"
#include "common/units.h"

#define RESOLVE_ADDRS_MAX   8
#define RESOLVE_LOOKUPS_MAX 256
#define RESOLVE_ENTRIES_MAX 32768
#define RESOLVE_FDS_MAX     64

enum resolve_status { RESOLVE_OK, RESOLVE_NO_NAME, RESOLVE_NO_ADDRESS, RESOLVE_TEMPORARY };
struct resolve_answer { /* valid during the callback */
    enum resolve_status status;
    struct net_addr addrs[RESOLVE_ADDRS_MAX];
    int n;
};
typedef void (*resolve_fn)(void *ctx, const struct resolve_answer *answer);
struct resolver;

/* servers: "ADDR:PORT[,...]" or NULL for the system's. The loop is borrowed. */
bool resolver_new(struct loop *loop, const char *servers, struct resolver **ret,
                  struct err *err) MUST_CHECK;
void resolver_free(struct resolver *r);
/* Resolve a name. fn gets the answer, possibly before this call returns. */
void resolver_lookup(struct resolver *r, const char *host, resolve_fn fn, void *ctx);
/* Drop a query: no callback with this ctx follows. */
void resolver_cancel(struct resolver *r, const char *host, void *ctx);
/* True while the query is not sent, because others are open. */
bool resolver_is_queued(struct resolver *r, const char *host);
/* Arm the loop for the next query that may time out; call in each pass before it waits. */
void resolver_arm(struct resolver *r);
