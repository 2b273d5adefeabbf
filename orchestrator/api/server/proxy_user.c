/* See proxy_user.h. */
#include "proxy_user.h"
#include "server_state.h"

#define USER_MAX 255

struct proxy_header {
    const char *name, *value;
    int n;
};

static enum MHD_Result each_header(void *ctx, enum MHD_ValueKind kind, const char *key,
                                   const char *value)
{
    struct proxy_header *f = ctx;
    (void)kind;
    if (strcasecmp(key, f->name) == 0) {
        f->value = value;
        f->n++;
    }
    return MHD_YES;
}

/* A header that a proxy adds to the one a client sent is no word of the proxy alone. */
static const char *only_header(const struct api_req *r, const char *name)
{
    struct proxy_header f = {.name = name};
    (void)MHD_get_connection_values(r->conn, MHD_HEADER_KIND, each_header, &f);
    return f.n == 1 ? f.value : NULL;
}

const char *proxy_user(const struct api_req *r)
{
    const struct sign_in_config *cfg = &r->api->cfg.sign_in;
    const char *user = r->by_proxy ? only_header(r, cfg->user_header) : NULL;
    bool good =
        user != NULL && user[0] != '\0' && strlen(user) <= USER_MAX && str_is_utf8(str_of(user));
    return good ? user : NULL;
}

bool proxy_user_fits(const struct api_req *r, const char *token_id)
{
    const char *user = proxy_user(r);
    char id[PERSON_ID_TEXT];
    if (user == NULL || strncmp(token_id, PERSON_ID_BEGINS, strlen(PERSON_ID_BEGINS)) != 0) {
        return true;
    }
    person_id(PROXY_ISSUER, user, id);
    return strcmp(id, token_id) == 0;
}

bool proxy_user_claims(const struct api_req *r, json_t **ret, struct err *err)
{
    const struct sign_in_config *cfg = &r->api->cfg.sign_in;
    const char *user = proxy_user(r);
    struct str rest = str_of(only_header(r, cfg->groups_header));
    if (user == NULL) {
        return err_set(err, ERR_UNAUTHENTICATED,
                       "the proxy does not say who you are: it has to set the header %s, and to "
                       "remove that of the client",
                       cfg->user_header);
    }
    json_t *groups = json_array();
    while (rest.n > 0) {
        struct str one = str_trim(str_split(&rest, ','));
        (void)json_array_append_new(groups, json_stringn(one.p, one.n)); /* no UTF-8: left out */
    }
    *ret = json_object();
    (void)json_object_set_new(*ret, "sub", json_string(user));
    (void)json_object_set_new(*ret, PROXY_CLAIM, groups);
    return true;
}
