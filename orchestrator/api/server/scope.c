/* See scope.h. */
#include "scope.h"
#include "parameters.h"
#include "router.h"
#include "store/api/tokens.h"

bool scope_allows(const struct api_principal *who, const char *project)
{
    struct str rest = str_of(who->projects);
    bool has = rest.n == 0; /* every project */
    while (rest.n > 0) {
        has |= str_eq_cstr(str_split(&rest, ','), project);
    }
    return has;
}

bool scope_has(const struct api_req *r, const char *project)
{
    return scope_allows(&r->who, project);
}

enum scope scope_of(const struct route *t)
{
    static const char *const things[] = {"{campaign}", "{operation}", "/v1/endpoints/{",
                                         "/v1/filesystems/{", "/v1/pools/{"};
    if ((t->flags & ROUTE_SCOPED) != 0) {
        return SCOPE_HANDLER;
    }
    for (size_t i = 0; i < ARRAY_LEN(things); i++) {
        if (strstr(t->pattern, things[i]) != NULL) {
            return SCOPE_CAMPAIGN;
        }
    }
    return strstr(t->query, "of_campaign") != NULL ? SCOPE_QUERY : SCOPE_ALL;
}

/* Whose project decides: ids, 0 for none, or the name of a thing. */
struct subject {
    int64_t campaign, operation;
    const char *name;
};

static bool subject_of(struct api_req *r, struct subject *ret, struct err *err)
{
    *ret = (struct subject){0};
    if (scope_of(r->route) == SCOPE_QUERY) {
        if (!parameters_check(r, err)) {
            return false;
        }
        ret->campaign = MAX(req_number(r, "campaign"), INT64_C(0));
        return true;
    }
    if (!parameters_check_path(r, err)) {
        return false;
    }
    if (strstr(r->route->pattern, "{campaign}") != NULL) {
        ret->campaign = req_id(r, 0);
    } else if (strstr(r->route->pattern, "{operation}") != NULL) {
        ret->operation = req_id(r, 0);
    } else {
        ret->name = arena_strndup(&r->arena, r->params[0].p, r->params[0].n);
    }
    return true;
}

bool scope_check(struct api_req *r, struct err *err)
{
    struct subject of;
    char project[128];
    enum scope scope = scope_of(r->route);
    if (r->who.projects[0] == '\0' || scope == SCOPE_HANDLER) {
        return true;
    }
    if (scope != SCOPE_ALL && !subject_of(r, &of, err)) {
        return false;
    }
    if (scope == SCOPE_ALL || (scope == SCOPE_QUERY && of.campaign == 0)) {
        return err_set(err, ERR_FORBIDDEN, "this is about every project%s; the token counts in: %s",
                       scope == SCOPE_QUERY ? " without ?campaign=" : "", r->who.projects);
    }
    if (!req_db(r, err) ||
        !apidb_project_of(r->db, of.campaign, of.operation, of.name, project, err)) {
        return false;
    }
    return scope_has(r, project) || err_set(err, ERR_NOT_FOUND, "there is no such %s",
                                            of.name != NULL ? "name" : "campaign or operation");
}
