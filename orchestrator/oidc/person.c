/* See person.h. */
#include "person.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include <stdio.h>

#define NAME_CHARS 64

static const char *const role_names[] = {"viewer", "operator", "admin"}; /* upwards */

/* The next "role=value" of the rules; false at the end. *ret_role: of role_names, -1: no role. */
static bool rule_next(struct str *rest, int *ret_role, struct str *ret_value)
{
    struct str word = str_trim(str_split(rest, ','));
    if (word.n == 0) {
        return false;
    }
    struct str role = str_trim(str_split(&word, '='));
    *ret_value = str_trim(word);
    *ret_role = -1;
    for (size_t i = 0; i < ARRAY_LEN(role_names); i++) {
        if (str_eq_cstr(role, role_names[i])) {
            *ret_role = (int)i;
        }
    }
    return true;
}

bool person_rules_check(const struct person_rules *rules, struct err *err)
{
    struct str rest = str_of(rules->roles), value;
    int role, n = 0;
    bool ok = true;
    while (ok && rule_next(&rest, &role, &value)) {
        ok = role >= 0 && value.n > 0;
        n++;
    }
    return (ok && rest.n == 0 && n > 0) ||
           err_set(err, ERR_INVALID,
                   "login_roles '%.80s': write admin=GROUP, operator=GROUP, viewer=GROUP; * is "
                   "everybody",
                   rules->roles);
}

/* The member of that name, else what the path of names joined by dots leads to; NULL: nothing. */
static const json_t *claim_of(const json_t *claims, const char *name)
{
    const json_t *v = json_object_get(claims, name);
    struct str rest = str_of(name);
    if (v != NULL) {
        return v;
    }
    for (v = claims; v != NULL && rest.n > 0;) {
        struct str one = str_split(&rest, '.');
        AUTO_FREE char *key = str_dup(one);
        v = json_object_get(v, key);
    }
    return v == claims ? NULL : v;
}

/* Value i of a claim that is a text or an array of texts; NULL: there are no more. */
static const char *value_at(const json_t *claim, size_t i)
{
    return json_is_array(claim) ? json_string_value(json_array_get(claim, i))
           : i == 0             ? json_string_value(claim)
                                : NULL;
}

static int role_of(const struct person_rules *rules, const json_t *claims)
{
    struct str rest = str_of(rules->roles), value;
    const json_t *claim = claim_of(claims, rules->role_claim);
    int role, best = -1;
    while (rule_next(&rest, &role, &value)) {
        bool has = str_eq_cstr(value, "*");
        for (size_t i = 0; !has && value_at(claim, i) != NULL; i++) {
            has = str_eq_cstr(value, value_at(claim, i));
        }
        best = has ? MAX(best, role) : best;
    }
    return best;
}

static bool is_project(const char *name)
{
    static const char alnum[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(name);
    return n > 0 && n <= 64 && strchr(alnum, name[0]) != NULL && strspn(name, all) == n;
}

static bool projects_of(const struct person_rules *rules, const json_t *claims, struct person *ret,
                        struct err *err)
{
    if (rules->projects_claim[0] == '\0') {
        return true;
    }
    const json_t *claim = claim_of(claims, rules->projects_claim);
    const char *one;
    for (size_t i = 0; (one = value_at(claim, i)) != NULL; i++) {
        if (strcmp(one, "*") == 0) {
            ret->projects_n = 0;
            return true;
        }
        if (!is_project(one)) {
            return err_set(err, ERR_FORBIDDEN, "'%.64s' in your claim '%s' is no name of a project",
                           one, rules->projects_claim);
        }
        if (ret->projects_n == PERSON_PROJECTS_MAX) {
            return err_set(err, ERR_FORBIDDEN,
                           "your claim '%s' names more than %d projects; for every project it has "
                           "to be *",
                           rules->projects_claim, PERSON_PROJECTS_MAX);
        }
        ret->projects[ret->projects_n++] = one;
    }
    return ret->projects_n > 0 ||
           err_set(err, ERR_FORBIDDEN,
                   "you have no project here: your claim '%s' names none; ask who runs the "
                   "provider of logins",
                   rules->projects_claim);
}

/* The first claim that says what people call this one, cut to NAME_CHARS characters. */
static void name_of(const json_t *claims, char ret[static PERSON_NAME_TEXT])
{
    static const char *const names[] = {"preferred_username", "email", "name", "sub"};
    const char *name = NULL;
    for (size_t i = 0; i < ARRAY_LEN(names) && (name == NULL || name[0] == '\0'); i++) {
        name = json_string_value(json_object_get(claims, names[i]));
    }
    size_t n = 0, chars = 0;
    for (; name[n] != '\0'; n++) {
        bool begins = ((unsigned char)name[n] & 0xc0) != 0x80;
        if (begins && chars++ == NAME_CHARS) {
            break;
        }
        ret[n] = (unsigned char)name[n] < ' ' ? ' ' : name[n];
    }
    ret[n] = '\0';
}

void person_id(const char *issuer, const char *sub, char ret[static PERSON_ID_TEXT])
{
    char hex[SHA256_HEX_N];
    AUTO_FREE char *whole = xasprintf("%s\n%s", issuer, sub);
    hash_sha256_hex(whole, strlen(whole), hex);
    (void)snprintf(ret, PERSON_ID_TEXT, PERSON_ID_BEGINS "%.24s", hex);
}

bool person_read(const struct person_rules *rules, const char *issuer, const json_t *claims,
                 struct person *ret, struct err *err)
{
    const char *sub = json_string_value(json_object_get(claims, "sub"));
    ASSERT(sub != NULL);
    *ret = (struct person){.projects_n = 0};
    person_id(issuer, sub, ret->id);
    name_of(claims, ret->name);
    int role = role_of(rules, claims);
    if (role < 0) {
        return err_set(err, ERR_FORBIDDEN,
                       "%.64s has no role here: no value of the claim '%s' is one of login_roles; "
                       "ask who runs this droverd",
                       ret->name, rules->role_claim);
    }
    ret->role = role_names[role];
    return projects_of(rules, claims, ret, err);
}
