/* Whose X-Forwarded-For is believed: the address of a client behind a proxy. */
#pragma once
#include "common/err.h"
#include <sys/socket.h>

#define ADDRESS_TEXT_MAX 64

struct proxies;
/* "10.0.0.0/8, fd00::/8, 192.0.2.7"; "" or NULL: none. ERR_INVALID. proxies_free frees *ret. */
bool proxies_new(const char *list, struct proxies **ret, struct err *err) MUST_CHECK;
void proxies_free(struct proxies *p); /* NULL ignored */
/* Who comes by the socket of a file is one: its rights say who may. */
bool proxies_has(const struct proxies *p, const struct sockaddr *peer);
/* The client's address as text and whether it is this machine's own. `forwarded` is every
 * X-Forwarded-For of the request, joined by commas. It is read from the right, as long as the
 * address so far is a trusted proxy's. */
void proxies_client(const struct proxies *p, const struct sockaddr *peer, const char *forwarded,
                    char ret[static ADDRESS_TEXT_MAX], bool *ret_loopback);
