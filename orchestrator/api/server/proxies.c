/* Trusted proxies; see proxies.h. Every address is kept as IPv6, IPv4 in its mapped form. */
#include "proxies.h"
#include "common/cleanup.h"
#include "common/str.h"
#include <arpa/inet.h>

#define PROXIES_MAX 64

struct network {
    struct in6_addr addr;
    int bits;
};
struct proxies {
    struct network at[PROXIES_MAX];
    size_t n;
};

static void map_v4(const struct in_addr *v4, struct in6_addr *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->s6_addr[10] = ret->s6_addr[11] = 0xff;
    memcpy(&ret->s6_addr[12], v4, sizeof *v4);
}

static bool of_sockaddr(const struct sockaddr *sa, struct in6_addr *ret)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    if (sa->sa_family == AF_UNIX) {
        *ret = in6addr_loopback;
        return true;
    }
    if (sa->sa_family == AF_INET) {
        memcpy(&in, sa, sizeof in);
        map_v4(&in.sin_addr, ret);
        return true;
    }
    if (sa->sa_family == AF_INET6) {
        memcpy(&in6, sa, sizeof in6);
        *ret = in6.sin6_addr;
        return true;
    }
    return false;
}

/* ret_v4: written as IPv4, so that a prefix counts from bit 96. */
static bool of_text(struct str text, struct in6_addr *ret, bool *ret_v4)
{
    char s[INET6_ADDRSTRLEN];
    struct in_addr v4;
    if (text.n == 0 || text.n >= sizeof s) {
        return false;
    }
    memcpy(s, text.p, text.n);
    s[text.n] = '\0';
    *ret_v4 = inet_pton(AF_INET, s, &v4) == 1;
    if (*ret_v4) {
        map_v4(&v4, ret);
        return true;
    }
    return inet_pton(AF_INET6, s, ret) == 1;
}

static void to_text(const struct in6_addr *a, char ret[static ADDRESS_TEXT_MAX], bool *ret_loopback)
{
    if (IN6_IS_ADDR_V4MAPPED(a)) {
        (void)inet_ntop(AF_INET, &a->s6_addr[12], ret, ADDRESS_TEXT_MAX);
        *ret_loopback = a->s6_addr[12] == 127;
    } else {
        (void)inet_ntop(AF_INET6, a, ret, ADDRESS_TEXT_MAX);
        *ret_loopback = IN6_IS_ADDR_LOOPBACK(a);
    }
}

static bool trusted(const struct proxies *p, const struct in6_addr *a)
{
    for (size_t i = 0; i < p->n; i++) {
        int bits = p->at[i].bits;
        bool same = memcmp(a, &p->at[i].addr, (size_t)(bits / 8)) == 0;
        unsigned mask = (0xff00u >> (bits % 8)) & 0xffu;
        int k = bits / 8;
        if (same && (mask == 0 || ((a->s6_addr[k] ^ p->at[i].addr.s6_addr[k]) & mask) == 0)) {
            return true;
        }
    }
    return false;
}

static bool add(struct proxies *p, struct str word)
{
    struct str rest = word;
    struct str ip = str_split(&rest, '/');
    bool v4, prefix = ip.n < word.n;
    int64_t bits;
    if (p->n == ARRAY_LEN(p->at) || !of_text(ip, &p->at[p->n].addr, &v4)) {
        return false;
    }
    int64_t most = v4 ? 32 : 128;
    if (!prefix) {
        bits = most;
    } else if (!parse_i64(rest, 0, most, &bits, NULL)) {
        return false;
    }
    p->at[p->n++].bits = (int)(bits + (v4 ? 96 : 0));
    return true;
}

bool proxies_new(const char *list, struct proxies **ret, struct err *err)
{
    struct proxies *p = xcalloc(1, sizeof *p);
    struct str rest = str_trim(str_of(list));
    *ret = p;
    while (rest.n > 0) {
        struct str word = str_trim(str_split(&rest, ','));
        if (!add(p, word)) {
            proxies_free(p);
            *ret = NULL;
            return err_set(err, ERR_INVALID,
                           "trusted_proxies: '%.*s' is not an address or network; write "
                           "10.0.0.0/8, 192.0.2.7 (at most %d)",
                           (int)MIN(word.n, 64), word.p, PROXIES_MAX);
        }
    }
    return true;
}

void proxies_free(struct proxies *p)
{
    free(p);
}

bool proxies_has(const struct proxies *p, const struct sockaddr *peer)
{
    struct in6_addr a;
    return peer->sa_family == AF_UNIX || (of_sockaddr(peer, &a) && trusted(p, &a));
}

void proxies_client(const struct proxies *p, const struct sockaddr *peer, const char *forwarded,
                    char ret[static ADDRESS_TEXT_MAX], bool *ret_loopback)
{
    struct in6_addr a, next;
    bool v4;
    ret[0] = '\0';
    *ret_loopback = false;
    if (!of_sockaddr(peer, &a)) {
        return;
    }
    size_t n = strlen(forwarded);
    for (bool believed = proxies_has(p, peer); n > 0 && believed; believed = trusted(p, &a)) {
        size_t from = n;
        while (from > 0 && forwarded[from - 1] != ',') {
            from--;
        }
        if (!of_text(str_trim((struct str){forwarded + from, n - from}), &next, &v4)) {
            break; /* not understood: the last proxy stands for its clients */
        }
        a = next;
        n = from > 0 ? from - 1 : 0;
    }
    to_text(&a, ret, ret_loopback);
}
