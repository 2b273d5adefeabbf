/* Logins; see logins.h. */
#include "logins.h"
#include "queries.h"
#include "store/pg/query.h"

#define LOGINS_MAX     5000 /* under way */
#define OF_ADDRESS_MAX 500

bool apidb_login_begin(struct store *s, const uint8_t browser[static 32], const char *return_to,
                       const char *address, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_bytes(&p, browser, 32);
    param_text(&p, return_to);
    param_text(&p, address);
    param_i64(&p, LOGIN_LIVES_S);
    param_i64(&p, LOGINS_MAX);
    param_i64(&p, OF_ADDRESS_MAX);
    AUTO_RESULT PGresult *res = NULL;
    return store_exec(s, QUERY(API_LOGIN_BEGIN), &p, &res, err) &&
           (row_count(res) > 0 ||
            err_set(err, ERR_THROTTLED, "too many logins are under way; try again in a minute"));
}

bool apidb_login_end(struct store *s, const uint8_t browser[static 32],
                     char ret_return_to[static LOGIN_RETURN_TEXT], struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_bytes(&p, browser, 32);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_LOGIN_END), &p, &res, err)) {
        return false;
    }
    if (row_count(res) == 0 || !row_bool(res, 0, 1)) {
        return err_set(err, ERR_NOT_FOUND, "this login has ended or has taken more than %d minutes",
                       LOGIN_LIVES_S / 60);
    }
    row_text_into(res, 0, 0, ret_return_to, LOGIN_RETURN_TEXT);
    return true;
}

bool apidb_person_put(struct store *s, const struct apidb_token_new *t, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, t->id);
    param_bytes(&p, t->hash, 32);
    param_text(&p, t->role);
    param_text(&p, t->name);
    param_text_array(&p, t->projects_n > 0 ? t->projects : NULL, t->projects_n);
    param_text(&p, t->by);
    AUTO_RESULT PGresult *res = NULL;
    return store_exec(s, QUERY(API_PERSON_PUT), &p, &res, err) &&
           (row_count(res) > 0 ||
            err_set(err, ERR_FORBIDDEN, "an admin of this droverd has ended your access (token %s)",
                    t->id));
}
