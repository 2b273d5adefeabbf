/* The search for credentials: see creds_plan.h. The order and the meaning of each key are those of
 * the AWS SDK for Python; tests/integration/common/creds_botocore.py compares the two. */
#include "creds_plan.h"
#include "common/cleanup.h"
#include "common/time_text.h"
#include "profiles.h"
#include <ctype.h>

#define CREDS_ROLE_SECONDS 3600

struct creds_search {
    struct creds_plan plan;
    struct profiles files;
    const char *profile; /* "default" when none was chosen */
    bool found;
};

static bool copy_field(char *out, size_t out_n, struct str v, const char *what, struct err *err)
{
    for (size_t i = 0; i < v.n; i++) {
        if ((unsigned char)v.p[i] <= 0x20 || (unsigned char)v.p[i] >= 0x7f) {
            return err_set(err, ERR_UNAUTHENTICATED, "%s has a byte that cannot be in it", what);
        }
    }
    if (v.n >= out_n) {
        return err_set(err, ERR_UNAUTHENTICATED, "%s is longer than %zu bytes", what, out_n - 1);
    }
    memcpy(out, v.p, v.n);
    out[v.n] = '\0';
    return true;
}

bool creds_set_keys(struct aws_creds *ret, struct str id, struct str secret, struct str token,
                    const char *where, struct err *err)
{
    if (id.n == 0 || secret.n == 0) {
        return err_set(err, ERR_UNAUTHENTICATED, "%s has an access key %s", where,
                       id.n == 0 ? "secret without its id" : "id without its secret");
    }
    struct aws_creds c = {.expires = USEC_NEVER};
    if (!copy_field(c.key_id, sizeof c.key_id, id, "the access key id", err) ||
        !copy_field(c.secret, sizeof c.secret, secret, "the secret access key", err) ||
        !copy_field(c.session_token, sizeof c.session_token, token, "the session token", err)) {
        return err_wrap(err, "%s", where);
    }
    *ret = c;
    return true;
}

static bool from_environment(struct creds_search *s, struct err *err)
{
    const char *id = env_value("AWS_ACCESS_KEY_ID");
    if (id == NULL) {
        return true;
    }
    const char *token = env_value("AWS_SECURITY_TOKEN");
    token = token != NULL ? token : env_value("AWS_SESSION_TOKEN");
    const char *expires = env_value("AWS_CREDENTIAL_EXPIRATION");
    s->found = true;
    s->plan.source = CREDS_KEYS;
    s->plan.place = "the environment";
    return creds_set_keys(&s->plan.keys, str_of(id), str_of(env_value("AWS_SECRET_ACCESS_KEY")),
                          str_of(token), s->plan.place, err) &&
           (expires == NULL || clock_parse_rfc3339(expires, &s->plan.keys.expires, err) ||
            err_wrap(err, "AWS_CREDENTIAL_EXPIRATION"));
}

/* A value without the comment that may follow it after white space. */
static struct str plain(const char *value)
{
    struct str v = str_trim(str_of(value));
    for (size_t i = 1; i < v.n; i++) {
        if ((v.p[i] == '#' || v.p[i] == ';') && isspace((unsigned char)v.p[i - 1])) {
            return str_trim((struct str){v.p, i});
        }
    }
    return v;
}

typedef const char *(*value_fn)(const struct profiles *p, const char *name, const char *key);

static bool from_file(struct creds_search *s, const char *name, value_fn value, const char *place,
                      const char *path, struct err *err)
{
    const char *id = value(&s->files, name, "aws_access_key_id");
    if (id == NULL) {
        return true;
    }
    const char *token = value(&s->files, name, "aws_security_token");
    token = token != NULL ? token : value(&s->files, name, "aws_session_token");
    AUTO_FREE char *where = xasprintf("profile '%.64s' in '%.200s'", name, path);
    s->found = true;
    s->plan.source = CREDS_KEYS;
    s->plan.place = place;
    return creds_set_keys(&s->plan.keys, plain(id),
                          plain(value(&s->files, name, "aws_secret_access_key")), plain(token),
                          where, err);
}

/* A setting of web identity: the environment's before the profile's. */
static const char *web_value(const struct creds_search *s, const char *name, const char *variable,
                             const char *key, bool use_env)
{
    const char *v = use_env ? getenv(variable) : NULL;
    return v != NULL ? v : profiles_value(&s->files, name, key);
}

static char *dup_or_null(const char *v)
{
    return v != NULL && v[0] != '\0' ? xstrdup(v) : NULL;
}

static bool from_web_identity(struct creds_search *s, const char *name, bool use_env,
                              struct err *err)
{
    const char *file =
        web_value(s, name, "AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file", use_env);
    if (file == NULL || file[0] == '\0') {
        return true;
    }
    const char *arn = web_value(s, name, "AWS_ROLE_ARN", "role_arn", use_env);
    if (arn == NULL || arn[0] == '\0') {
        return err_set(err, ERR_UNAUTHENTICATED,
                       "web identity for profile '%.64s' names a token file but no role: set "
                       "AWS_ROLE_ARN or role_arn",
                       name);
    }
    s->found = true;
    s->plan.source = CREDS_WEB_IDENTITY;
    s->plan.place = "web identity";
    s->plan.text = xstrdup(file);
    s->plan.web = (struct creds_role){
        .arn = xstrdup(arn),
        .session =
            dup_or_null(web_value(s, name, "AWS_ROLE_SESSION_NAME", "role_session_name", use_env)),
        .duration_s = CREDS_ROLE_SECONDS};
    return true;
}

static bool refuse_sso(const struct creds_search *s, const char *name, struct err *err)
{
    static const char *const keys[] = {"sso_account_id", "sso_role_name"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (profiles_value(&s->files, name, keys[i]) != NULL) {
            return err_set(err, ERR_UNAUTHENTICATED,
                           "profile '%.64s' signs in by SSO, which needs a person: use 'aws "
                           "configure export-credentials', credential_process or a role",
                           name);
        }
    }
    return true;
}

static bool from_process(struct creds_search *s, const char *name)
{
    const char *command = profiles_value(&s->files, name, "credential_process");
    if (command != NULL) {
        s->found = true;
        s->plan.source = CREDS_PROCESS;
        s->plan.place = "credential_process";
        s->plan.text = xstrdup(command);
    }
    return true;
}

/* What a profile offers besides role_arn. */
static bool from_profile(struct creds_search *s, const char *name, bool use_env, struct err *err)
{
    return from_web_identity(s, name, use_env, err) && (s->found || refuse_sso(s, name, err)) &&
           (s->found || from_file(s, name, profiles_credentials_value, "the credentials file",
                                  s->files.credentials_path, err)) &&
           (s->found || from_process(s, name)) &&
           (s->found || from_file(s, name, profiles_config_value, "the config file",
                                  s->files.config_path, err));
}

/* Length of the host at the start of an authority; 0: there is none or it has a user name. */
static size_t host_length(struct str rest)
{
    size_t n = 0;
    size_t end = 0;
    while (end < rest.n && strchr("/?#", rest.p[end]) == NULL) {
        if ((unsigned char)rest.p[end] <= 0x20 || strchr("@\\%", rest.p[end]) != NULL) {
            return 0;
        }
        end++;
    }
    if (rest.n > 0 && rest.p[0] == '[') {
        while (n < end && rest.p[n] != ']') {
            n++;
        }
        return n < end ? n + 1 : 0;
    }
    while (n < end && rest.p[n] != ':') {
        n++;
    }
    return n;
}

static bool is_loopback_ipv4(struct str host)
{
    int64_t parts[4];
    for (size_t i = 0; i < 4; i++) {
        if (!parse_i64(str_split(&host, '.'), 0, 255, &parts[i], NULL)) {
            return false;
        }
    }
    return host.n == 0 && parts[0] == 127;
}

static bool may_be_plain(struct str host)
{
    static const char *const hosts[] = {"localhost", "[::1]", "169.254.170.2", "169.254.170.23",
                                        "[fd00:ec2::23]"};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        if (str_ieq_cstr(host, hosts[i])) {
            return true;
        }
    }
    return is_loopback_ipv4(host);
}

bool creds_container_uri(const char *relative, const char *full, char **ret, struct err *err)
{
    const char *uri = relative != NULL ? relative : full;
    for (const char *p = uri; *p != '\0'; p++) {
        if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f) {
            return err_set(err, ERR_UNAUTHENTICATED,
                           "the container's credentials URI has a byte that cannot be in it");
        }
    }
    if (relative != NULL) {
        if (relative[0] != '/') {
            return err_set(err, ERR_UNAUTHENTICATED,
                           "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with '/'");
        }
        *ret = xasprintf("http://169.254.170.2%s", relative);
        return true;
    }
    bool https = str_starts(str_of(full), "https://");
    if (!https && !str_starts(str_of(full), "http://")) {
        return err_set(err, ERR_UNAUTHENTICATED,
                       "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither http nor https");
    }
    struct str rest = str_of(full + (https ? 8 : 7));
    struct str host = {rest.p, host_length(rest)};
    if (host.n == 0 || (!https && !may_be_plain(host))) {
        return err_set(err, ERR_UNAUTHENTICATED,
                       "AWS_CONTAINER_CREDENTIALS_FULL_URI: plain http is allowed to loopback and "
                       "the addresses of ECS and EKS only, not to '%.*s'",
                       (int)MIN(host.n, (size_t)100), host.p);
    }
    *ret = xstrdup(full);
    return true;
}

static bool from_container(struct creds_search *s, struct err *err)
{
    const char *relative = env_value("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = env_value("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (relative == NULL && full == NULL) {
        return true;
    }
    s->found = true;
    s->plan.source = CREDS_CONTAINER;
    s->plan.place = "the container's endpoint";
    return creds_container_uri(relative, full, &s->plan.text, err);
}

static void from_instance(struct creds_search *s)
{
    const char *disabled = env_value("AWS_EC2_METADATA_DISABLED");
    if (disabled != NULL && strcasecmp(disabled, "true") == 0) {
        return;
    }
    const char *url = env_value("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *mode = env_value("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    if (url == NULL) {
        url = profiles_value(&s->files, s->profile, "ec2_metadata_service_endpoint");
    }
    if (mode == NULL) {
        mode = profiles_value(&s->files, s->profile, "ec2_metadata_service_endpoint_mode");
    }
    if (url == NULL) {
        bool v6 = mode != NULL && strcasecmp(mode, "ipv6") == 0;
        url = v6 ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
    }
    size_t n = strlen(url);
    while (n > 0 && url[n - 1] == '/') {
        n--;
    }
    s->found = true;
    s->plan.source = CREDS_INSTANCE;
    s->plan.place = "the instance metadata service";
    s->plan.text = xstrndup(url, n);
}

static bool has_static(const struct creds_search *s, const char *name)
{
    return profiles_value(&s->files, name, "aws_access_key_id") != NULL ||
           profiles_value(&s->files, name, "aws_secret_access_key") != NULL;
}

static bool has_role(const struct creds_search *s, const char *name)
{
    return profiles_value(&s->files, name, "role_arn") != NULL &&
           profiles_value(&s->files, name, "web_identity_token_file") == NULL;
}

/* The role of a profile, added behind those that are assumed with it. */
static bool add_role(struct creds_search *s, const char *name, struct err *err)
{
    if (profiles_value(&s->files, name, "mfa_serial") != NULL) {
        return err_set(
            err, ERR_UNAUTHENTICATED,
            "profile '%.64s' asks for a code of an MFA device (mfa_serial), which only a "
            "person can give: use a role without it",
            name);
    }
    if (s->plan.roles_n == CREDS_ROLES_MAX) {
        return err_set(err, ERR_UNAUTHENTICATED, "more than %d roles in a chain of profiles",
                       CREDS_ROLES_MAX);
    }
    const char *seconds = profiles_value(&s->files, name, "duration_seconds");
    struct creds_role *r = &s->plan.roles[s->plan.roles_n++];
    *r = (struct creds_role){
        .arn = xstrdup(profiles_value(&s->files, name, "role_arn")),
        .session = dup_or_null(profiles_value(&s->files, name, "role_session_name")),
        .external_id = dup_or_null(profiles_value(&s->files, name, "external_id"))};
    if (seconds == NULL || !parse_i64(str_of(seconds), 1, 43200, &r->duration_s, NULL)) {
        r->duration_s = CREDS_ROLE_SECONDS;
    }
    return true;
}

static bool from_credential_source(struct creds_search *s, const char *name, const char *source,
                                   struct err *err)
{
    bool ok = true;
    if (strcmp(source, "Environment") == 0) {
        ok = from_environment(s, err);
    } else if (strcmp(source, "EcsContainer") == 0) {
        ok = from_container(s, err);
    } else if (strcmp(source, "Ec2InstanceMetadata") == 0) {
        from_instance(s);
    } else {
        return err_set(err, ERR_UNAUTHENTICATED,
                       "profile '%.64s': credential_source '%.64s' is not Environment, "
                       "EcsContainer or Ec2InstanceMetadata",
                       name, source);
    }
    return ok && (s->found || err_set(err, ERR_UNAUTHENTICATED,
                                      "profile '%.64s': credential_source '%.64s' has no "
                                      "credentials",
                                      name, source));
}

/* Checks the source_profile of `name`; visited[n] are the profiles of the chain so far. */
static bool source_check(const struct creds_search *s, const char *name, const char *source,
                         const char *const *visited, size_t n, struct err *err)
{
    if (!profiles_has(&s->files, source)) {
        return err_set(err, ERR_UNAUTHENTICATED,
                       "profile '%.64s': its source_profile '%.64s' does not exist", name, source);
    }
    for (size_t i = 0; i < n; i++) {
        bool itself = strcmp(source, name) == 0 && has_static(s, source);
        if (strcmp(visited[i], source) == 0 && !itself) {
            return err_set(err, ERR_UNAUTHENTICATED,
                           "profile '%.64s': its source_profile '%.64s' leads back to itself", name,
                           source);
        }
    }
    return true;
}

/* Follow source_profile from profile to profile down to the keys the first role is assumed with. */
static bool from_roles(struct creds_search *s, struct err *err)
{
    const char *visited[CREDS_ROLES_MAX + 1];
    const char *name = s->profile;
    for (size_t n = 0;;) {
        visited[n++] = name;
        const char *from = profiles_value(&s->files, name, "credential_source");
        const char *source = profiles_value(&s->files, name, "source_profile");
        if ((from == NULL) == (source == NULL)) {
            return err_set(err, ERR_UNAUTHENTICATED,
                           "profile '%.64s' has a role_arn and %s source_profile %s "
                           "credential_source",
                           name, from != NULL ? "both" : "neither", from != NULL ? "and" : "nor");
        }
        if (source != NULL && !source_check(s, name, source, visited, n, err)) {
            return false;
        }
        if (!add_role(s, name, err)) {
            return false;
        }
        if (from != NULL) {
            return from_credential_source(s, name, from, err);
        }
        if (has_static(s, source) || !has_role(s, source)) {
            return from_profile(s, source, false, err) &&
                   (s->found || err_set(err, ERR_UNAUTHENTICATED,
                                        "the source_profile '%.64s' has no credentials", source));
        }
        name = source;
    }
}

static bool search(struct creds_search *s, struct err *err)
{
    const char *chosen = profiles_chosen();
    s->profile = chosen != NULL ? chosen : "default";
    if (!profiles_load(&s->files, err)) {
        return false;
    }
    if (chosen != NULL && !profiles_has(&s->files, chosen)) {
        return err_set(err, ERR_UNAUTHENTICATED,
                       "profile '%.64s' is neither in '%.200s' nor in '%.200s'", chosen,
                       s->files.config_path, s->files.credentials_path);
    }
    bool ok = from_environment(s, err);
    if (ok && !s->found && has_role(s, s->profile)) {
        ok = from_roles(s, err);
    }
    ok = ok && (s->found || from_profile(s, s->profile, true, err)) &&
         (s->found || from_container(s, err));
    if (ok && !s->found) {
        from_instance(s);
    }
    return ok &&
           (s->found ||
            err_set(err, ERR_UNAUTHENTICATED,
                    "no AWS credentials for profile '%.64s'; looked at: AWS_ACCESS_KEY_ID, "
                    "AWS_WEB_IDENTITY_TOKEN_FILE, '%.150s', '%.150s', "
                    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and _FULL_URI; the instance metadata "
                    "service is switched off",
                    s->profile, s->files.credentials_path, s->files.config_path));
}

static void role_done(struct creds_role *r)
{
    free(r->arn);
    free(r->session);
    free(r->external_id);
}

bool creds_plan_make(struct creds_plan *ret, struct err *err)
{
    struct creds_search s = {.found = false};
    bool ok = search(&s, err);
    profiles_done(&s.files);
    if (!ok) {
        creds_plan_done(&s.plan);
        return false;
    }
    for (size_t i = 0, n = s.plan.roles_n; i < n / 2; i++) { /* the innermost role comes first */
        struct creds_role outer = s.plan.roles[i];
        s.plan.roles[i] = s.plan.roles[n - 1 - i];
        s.plan.roles[n - 1 - i] = outer;
    }
    *ret = s.plan;
    return true;
}

void creds_plan_done(struct creds_plan *p)
{
    free(p->text);
    role_done(&p->web);
    for (size_t i = 0; i < p->roles_n; i++) {
        role_done(&p->roles[i]);
    }
    explicit_bzero(p, sizeof *p);
}

bool creds_plan_renews(const struct creds_plan *p)
{
    return p->source != CREDS_KEYS || p->roles_n > 0;
}
