/* Which addresses a worker and a webhook may connect to. URLs come from outside and we run inside a
 * private network: private, local, metadata and special ranges are refused unless opened by a rule.
 * Sources: IANA special-purpose address registries, RFC 6890. */
#pragma once
#include "common/str.h"
#include <netinet/in.h>
#include <sys/socket.h>

#define ADDR_RULES_MAX  64
#define ADDR_TEXT_BYTES 64

struct net_addr {  /* value */
    int family;    /* AF_INET or AF_INET6 */
    uint8_t b[16]; /* network order; 4 bytes used for AF_INET */
};
struct addr_rule { /* ADDR[/LEN]:PORT; port 0 = any ("*") */
    struct net_addr net;
    int len;
    int port;
};
struct addr_rules {
    struct addr_rule at[ADDR_RULES_MAX];
    int n;
};

/* True for an address in a refused range. IPv4-mapped, NAT64, 6to4 and Teredo forms are always
 * refused. Pure. */
bool addr_is_blocked(const struct net_addr *a);
/* True for ports of services other than web servers (mail, shells, databases). Pure. */
bool addr_port_is_blocked(int port);
/* True when a connection to a:port is allowed. */
bool addr_is_allowed(const struct addr_rules *rules, const struct net_addr *a, int port);
/* Parse a host that is an address in any form the C library accepts: dotted, decimal, octal, hex,
 * short forms, and [IPv6]. False: it is a name. */
bool addr_parse_host(const char *host, struct net_addr *ret);
bool addr_from_sockaddr(const struct sockaddr *sa, struct net_addr *ret, int *ret_port);
/* The address as text, like "127.0.2.1" or "::1". */
void addr_format(const struct net_addr *a, char out[static ADDR_TEXT_BYTES]);
/* Parse "127.0.2.0/24:8080", "[::1]:80", "10.0.0.0/8:*". */
bool addr_parse_rule(struct str text, struct addr_rule *ret, struct err *err) MUST_CHECK;
/* The same, joined by commas; "" gives none. */
bool addr_parse_rules(struct str text, struct addr_rules *ret, struct err *err) MUST_CHECK;
