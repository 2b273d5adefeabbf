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

bool scope_check(struct api_req *r, struct err *err)
{
    int64_t campaign = 0, operation = 0;
    char project[128];
    if (r->who.projects[0] == '\0' || (r->route->flags & ROUTE_SCOPED) != 0) {
        return true;
    }
    bool of_campaign = strstr(r->route->pattern, "{campaign}") != NULL;
    bool of_operation = strstr(r->route->pattern, "{operation}") != NULL;
    if (!of_campaign && !of_operation) {
        return err_set(err, ERR_FORBIDDEN,
                       "this is about every project, and the token counts in: %s", r->who.projects);
    }
    if (!parameters_check_path(r, err)) {
        return false;
    }
    *(of_campaign ? &campaign : &operation) = req_id(r, 0);
    if (!req_db(r, err) || !apidb_project_of(r->db, campaign, operation, project, err)) {
        return false;
    }
    return scope_has(r, project) ||
           err_set(err, ERR_NOT_FOUND, "there is no such campaign or operation");
}
