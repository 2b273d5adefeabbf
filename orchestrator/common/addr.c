/* Address ranges and rules. */
#include "common/addr.h"
#include "common/cleanup.h"
#include <arpa/inet.h>
#include <stdio.h>

struct addr_range {
    uint8_t b[16];
    int len;
};

static const struct addr_range blocked4[] = {
    {{0}, 8},
    {{10}, 8},
    {{100, 64}, 10},
    {{127}, 8},
    {{169, 254}, 16},
    {{172, 16}, 12},
    {{192, 0, 0}, 24},
    {{192, 0, 2}, 24},
    {{192, 88, 99}, 24},
    {{192, 168}, 16},
    {{198, 18}, 15},
    {{198, 51, 100}, 24},
    {{203, 0, 113}, 24},
    {{224}, 4},
    {{240}, 4},
};
static const struct addr_range blocked6[] = {
    {{0}, 8},                          /* ::, ::1, ::ffff:0:0/96 */
    {{0, 0x64, 0xff, 0x9b}, 96},       /* NAT64 */
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48}, /* NAT64, local use */
    {{0x01}, 64},                      /* discard */
    {{0x20, 0x01}, 23},                /* Teredo and others */
    {{0x20, 0x01, 0x0d, 0xb8}, 32},    /* documentation */
    {{0x20, 0x02}, 16},                /* 6to4 */
    {{0x3f, 0xff}, 20},                /* documentation */
    {{0x5f}, 16},                      /* segment routing */
    {{0xfc}, 7},                       /* unique local */
    {{0xfe, 0x80}, 10},                /* link local */
    {{0xfe, 0xc0}, 10},                /* site local, old */
    {{0xff}, 8},                       /* multicast */
};

static bool in_range(const uint8_t *a, const uint8_t *net, int len)
{
    int whole = len / 8;
    if (memcmp(a, net, (size_t)whole) != 0) {
        return false;
    }
    int rest = len % 8;
    return rest == 0 || ((a[whole] ^ net[whole]) >> (8 - rest)) == 0;
}

bool addr_is_blocked(const struct net_addr *a)
{
    ASSERT(a->family == AF_INET || a->family == AF_INET6);
    const struct addr_range *r = a->family == AF_INET ? blocked4 : blocked6;
    size_t n = a->family == AF_INET ? ARRAY_LEN(blocked4) : ARRAY_LEN(blocked6);
    for (size_t i = 0; i < n; i++) {
        if (in_range(a->b, r[i].b, r[i].len)) {
            return true;
        }
    }
    return false;
}

bool addr_port_is_blocked(int port)
{
    /* The "bad ports" of the Fetch standard that are still in use, and common databases. */
    static const int ports[] = {
        1,    7,    9,    11,   13,   15,   17,   19,   20,   21,   22,   23,   25,    37,   42,
        43,   53,   69,   79,   87,   95,   101,  102,  103,  104,  109,  110,  111,   113,  115,
        117,  119,  123,  135,  137,  139,  143,  161,  179,  389,  427,  465,  512,   513,  514,
        515,  526,  530,  531,  532,  540,  548,  554,  556,  563,  587,  601,  636,   989,  990,
        993,  995,  1719, 1720, 1723, 2049, 2375, 2376, 2379, 3306, 3389, 3659, 4045,  5060, 5061,
        5432, 5900, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 9200, 11211, 27017};
    if (port < 1 || port > 65535) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
        if (ports[i] == port) {
            return true;
        }
    }
    return false;
}

bool addr_is_allowed(const struct addr_rules *rules, const struct net_addr *a, int port)
{
    for (int i = 0; i < rules->n; i++) {
        const struct addr_rule *r = &rules->at[i];
        if (r->net.family == a->family && (r->port == 0 || r->port == port) &&
            in_range(a->b, r->net.b, r->len)) {
            return true;
        }
    }
    return !addr_is_blocked(a) && !addr_port_is_blocked(port);
}

bool addr_parse_host(const char *host, struct net_addr *ret)
{
    struct net_addr a = {0};
    struct in_addr v4;
    if (inet_aton(host, &v4) != 0) {
        a.family = AF_INET;
        memcpy(a.b, &v4, 4);
        *ret = a;
        return true;
    }
    char text[ADDR_TEXT_BYTES];
    size_t n = strlen(host);
    if (n >= 2 && host[0] == '[' && host[n - 1] == ']') {
        host++;
        n -= 2;
    }
    if (n >= sizeof text) {
        return false;
    }
    memcpy(text, host, n);
    text[n] = '\0';
    text[strcspn(text, "%")] = '\0'; /* ignore the zone */
    if (inet_pton(AF_INET6, text, a.b) != 1) {
        return false;
    }
    a.family = AF_INET6;
    *ret = a;
    return true;
}

bool addr_from_sockaddr(const struct sockaddr *sa, struct net_addr *ret, int *ret_port)
{
    struct net_addr a = {.family = sa->sa_family};
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, sa, sizeof in);
        memcpy(a.b, &in.sin_addr, 4);
        *ret_port = ntohs(in.sin_port);
    } else if (sa->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, sa, sizeof in);
        memcpy(a.b, &in.sin6_addr, 16);
        *ret_port = ntohs(in.sin6_port);
    } else {
        return false;
    }
    *ret = a;
    return true;
}

void addr_format(const struct net_addr *a, char out[static ADDR_TEXT_BYTES])
{
    if (inet_ntop(a->family, a->b, out, ADDR_TEXT_BYTES) == NULL) {
        (void)snprintf(out, ADDR_TEXT_BYTES, "?");
    }
}

bool addr_parse_rule(struct str text, struct addr_rule *ret, struct err *err)
{
    AUTO_FREE char *all = str_dup(text);
    char *colon = strrchr(all, ':');
    struct addr_rule r = {0};
    if (colon == NULL) {
        goto bad;
    }
    *colon = '\0';
    int64_t v = 0;
    if (strcmp(colon + 1, "*") != 0 && !parse_i64(str_of(colon + 1), 1, 65535, &v, NULL)) {
        goto bad;
    }
    r.port = (int)v;
    char *slash = strchr(all, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    if (!addr_parse_host(all, &r.net)) {
        goto bad;
    }
    int64_t bits = r.net.family == AF_INET ? 32 : 128;
    v = bits;
    if (slash != NULL && !parse_i64(str_of(slash + 1), 0, bits, &v, NULL)) {
        goto bad;
    }
    r.len = (int)v;
    *ret = r;
    return true;
bad:
    return err_set(err, ERR_INVALID,
                   "'" STR_FMT "' is not ADDR[/LEN]:PORT, as in 127.0.2.0/24:8080", STR_ARG(text));
}

bool addr_parse_rules(struct str text, struct addr_rules *ret, struct err *err)
{
    struct addr_rules rules = {.n = 0};
    for (struct str rest = str_trim(text); rest.n > 0;) {
        struct str one = str_trim(str_split(&rest, ','));
        if (rules.n == ADDR_RULES_MAX) {
            return err_set(err, ERR_TOO_LARGE, "more than %d addresses", ADDR_RULES_MAX);
        }
        if (!addr_parse_rule(one, &rules.at[rules.n++], err)) {
            return false;
        }
    }
    *ret = rules;
    return true;
}
