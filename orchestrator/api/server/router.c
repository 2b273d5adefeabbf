/* Finds the row of routes.def for a method and a path. */
#include "router.h"
#include "request.h"
#include "routes.h"
#include <stdio.h>

const struct route route_table[] = {
#define X(method, pattern, role, flags, handler, query, body, answers, errors, summary)            \
    {method, pattern, API_##role, flags, #handler, handler, query, body, answers, errors, summary},
#include "routes.def"
#undef X
};
const size_t route_table_n = ARRAY_LEN(route_table);

static bool is_param_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

/* "{x}" matches one or more of [A-Za-z0-9_-], "{project}" and "{quota}" dots as well: a name in a
 * campaign file, an instance type. Everything else is literal. */
static bool route_match(const char *pattern, const char *path, struct str params[API_PARAMS_MAX])
{
    int n = 0;
    while (*pattern != '\0') {
        if (*pattern != '{') {
            if (*pattern++ != *path++) {
                return false;
            }
            continue;
        }
        ASSERT(n < API_PARAMS_MAX);
        const char *begin = path;
        bool dots = strncmp(pattern, "{project}", strlen("{project}")) == 0 ||
                    strncmp(pattern, "{quota}", strlen("{quota}")) == 0;
        while (is_param_char(*path) || (dots && *path == '.')) {
            path++;
        }
        if (path == begin) {
            return false;
        }
        params[n++] = (struct str){begin, (size_t)(path - begin)};
        pattern = strchr(pattern, '}') + 1;
    }
    return *path == '\0';
}

const struct route *route_find(const char *method, const char *path,
                               struct str params[API_PARAMS_MAX])
{
    if (strcmp(method, "HEAD") == 0) {
        method = "GET";
    }
    for (size_t i = 0; i < route_table_n; i++) {
        const struct route *t = &route_table[i];
        if (strcmp(t->method, method) == 0 && route_match(t->pattern, path, params)) {
            return t;
        }
    }
    return NULL;
}

void route_methods(const char *path, char ret[static ROUTE_METHODS_MAX])
{
    struct str params[API_PARAMS_MAX];
    size_t n = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < route_table_n; i++) {
        const struct route *t = &route_table[i];
        if (route_match(t->pattern, path, params)) {
            bool get = strcmp(t->method, "GET") == 0;
            int w = snprintf(ret + n, ROUTE_METHODS_MAX - n, "%s%s%s", n > 0 ? ", " : "", t->method,
                             get ? ", HEAD" : "");
            ASSERT(w > 0 && (size_t)w < ROUTE_METHODS_MAX - n);
            n += (size_t)w;
        }
    }
}
