/* See image_ref.h. */
#include "image_ref.h"
#include "common/str.h"
#include <stdio.h>

size_t image_ref_name_n(const char *uri)
{
    size_t n = strcspn(uri, "@");
    for (size_t i = n; i-- > 0 && uri[i] != '/';) {
        if (uri[i] == ':') {
            n = i;
        }
    }
    return n;
}

static bool copy(char *out, size_t size, struct str s)
{
    if (s.n == 0 || s.n >= size) {
        return false;
    }
    memcpy(out, s.p, s.n);
    out[s.n] = '\0';
    return true;
}

bool image_ref_parse(const char *uri, struct image_ref *ret)
{
    static const char after_account[] = ".dkr.ecr.", fips[] = ".dkr.ecr-fips.";
    size_t name_n = image_ref_name_n(uri);
    struct str name = {uri, name_n};
    struct str host = str_split(&name, '/');
    struct str tag = {uri + name_n, strcspn(uri + name_n, "@")};
    *ret = (struct image_ref){.pinned = strchr(uri, '@') != NULL};
    if (host.n <= ACCOUNT_DIGITS || strspn(host.p, "0123456789") != ACCOUNT_DIGITS) {
        return false;
    }
    struct str rest = {host.p + ACCOUNT_DIGITS, host.n - ACCOUNT_DIGITS};
    size_t skip = str_starts(rest, after_account) ? sizeof after_account - 1
                  : str_starts(rest, fips)        ? sizeof fips - 1
                                                  : 0;
    rest = (struct str){rest.p + skip, rest.n - skip};
    struct str region = str_split(&rest, '.');
    if (tag.n > 0) { /* ":" may stand alone, which is no tag */
        tag = (struct str){tag.p + 1, tag.n - 1};
    } else {
        tag = STR("latest");
    }
    return skip > 0 && rest.n > 0 &&
           copy(ret->account, sizeof ret->account, (struct str){host.p, ACCOUNT_DIGITS}) &&
           copy(ret->region, sizeof ret->region, region) &&
           copy(ret->repository, sizeof ret->repository, name) &&
           copy(ret->tag, sizeof ret->tag, tag);
}
