/* URLs of strangers: what is accepted reads back as itself, has no user and no control bytes, and
 * a host that the C library would take for a refused address is one for us too. */
#include "common/addr.h"
#include "common/cleanup.h"
#include "download/fetch/robots.h"
#include "download/fetch/url.h"
#include "fuzz.h"
#include <netdb.h>

static void same_again(const struct url *u)
{
    struct url again;
    char why[URL_WHY_BYTES];
    bool ok = url_parse(str_of(u->text), &again, why);
    ASSERT(ok);
    ASSERT(strcmp(again.text, u->text) == 0);
    ASSERT(strcmp(again.host, u->host) == 0);
    ASSERT(again.port == u->port);
    url_done(&again);
}

static void no_hidden_address(const struct url *u)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct net_addr theirs;
    struct net_addr ours;
    int port;
    if (getaddrinfo(u->host, NULL, &hints, &found) != 0) {
        return;
    }
    if (addr_from_sockaddr(found->ai_addr, &theirs, &port)) {
        ASSERT(addr_parse_host(u->host, &ours));
        ASSERT(ours.family == theirs.family);
        ASSERT(memcmp(ours.b, theirs.b, ours.family == AF_INET ? 4 : 16) == 0);
    }
    freeaddrinfo(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str raw = {(const char *)data, size};
    struct url u;
    struct addr_rule rule;
    char why[URL_WHY_BYTES] = "";
    struct robots r = {.directives = {STR("noai")}, .n = 1, .token = STR("me")};
    (void)robots_forbids(&r, raw);
    if (addr_parse_rule(raw, &rule, NULL)) {
        ASSERT(rule.port >= 0 && rule.port <= 65535 && rule.len >= 0 && rule.len <= 128);
    }
    if (!url_parse(raw, &u, why)) {
        ASSERT(why[0] != '\0');
        return 0;
    }
    ASSERT(u.port >= 1 && u.port <= 65535);
    ASSERT(u.host[0] != '\0');
    for (const char *p = u.text; *p != '\0'; p++) {
        ASSERT(*p > 0x20 && *p < 0x7f);
    }
    same_again(&u);
    no_hidden_address(&u);
    url_done(&u);
    return 0;
}
