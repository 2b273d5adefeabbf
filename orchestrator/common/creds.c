/* Credentials, region and endpoints, searched as the AWS SDKs do: one row per provider, the first
 * match wins. Error texts never contain secrets. */
#include "common/creds.h"
#include "common/cleanup.h"
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <unistd.h>

#define CREDS_FILE_BYTES_MAX ((size_t)1024 * 1024)
#define CREDS_REGION_N       33

static const char *env(const char *name)
{
    const char *v = getenv(name);
    return v != NULL && v[0] != '\0' ? v : NULL;
}

static const char *profile_name(void)
{
    const char *p = env("AWS_PROFILE");
    if (p == NULL) {
        p = env("AWS_DEFAULT_PROFILE");
    }
    return p != NULL ? p : "default";
}

/* Path of a profile file; caller frees. */
static char *profile_path(const char *variable, const char *dflt)
{
    const char *v = env(variable);
    if (v != NULL && v[0] != '~') {
        return xstrdup(v);
    }
    const char *home = env("HOME");
    if (home == NULL) {
        const struct passwd *pw = getpwuid(getuid());
        home = pw != NULL && pw->pw_dir != NULL ? pw->pw_dir : "";
    }
    return xasprintf("%s%s", home, v != NULL ? v + 1 : dflt);
}

/* The whole file; a missing one is an empty text. */
static bool read_file(const char *path, struct buf *out, struct err *err)
{
    AUTO_FILE FILE *f = fopen(path, "re");
    if (f == NULL) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return true;
        }
        return err_set_os(err, ERR_UNAUTHENTICATED, errno, "cannot open '%s'", path);
    }
    for (;;) {
        char *p = buf_reserve(out, 4096);
        if (p == NULL) {
            return err_set(err, ERR_TOO_LARGE, "'%s' is larger than %zu bytes", path, out->max);
        }
        size_t n = fread(p, 1, 4096, f);
        buf_commit(out, n);
        if (n < 4096) {
            break;
        }
    }
    return !ferror(f) || err_set(err, ERR_IO, "cannot read '%s'", path);
}

/* True for the profile's header line: "[name]" or, in the config file, "[profile name]". */
static bool is_section(struct str line, const char *profile, bool config_file)
{
    line.p++;
    line.n--;
    struct str name = str_trim(str_split(&line, ']'));
    if (config_file && !str_eq_cstr(name, "default")) {
        if (!str_starts(name, "profile") || name.n < 8 || !isspace((unsigned char)name.p[7])) {
            return false;
        }
        name = str_trim((struct str){name.p + 7, name.n - 7});
    }
    return str_eq_cstr(name, profile);
}

/* Value of a key in the profile's section. INI: comments are whole lines, indented lines belong to
 * the key before them, an inline comment needs white space before its sign. The last one wins. */
static bool ini_get(struct str text, const char *profile, bool config_file, const char *key,
                    struct str *ret)
{
    bool inside = false;
    bool found = false;
    while (text.n > 0) {
        struct str line = str_split(&text, '\n');
        if (line.n == 0 || line.p[0] == '#' || line.p[0] == ';' ||
            isspace((unsigned char)*line.p)) {
            continue;
        }
        if (line.p[0] == '[') {
            inside = is_section(line, profile, config_file);
            continue;
        }
        struct str name = str_trim(str_split(&line, '='));
        if (!inside || !str_ieq_cstr(name, key)) {
            continue;
        }
        struct str value = str_trim(line);
        for (size_t i = 1; i < value.n; i++) {
            if ((value.p[i] == '#' || value.p[i] == ';') &&
                isspace((unsigned char)value.p[i - 1])) {
                value = str_trim((struct str){value.p, i});
            }
        }
        *ret = value;
        found = value.n > 0;
    }
    return found;
}

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

/* Fill from three texts. A key id without a secret is an error, not a missing provider. */
static bool fill(struct str id, struct str secret, struct str token, const char *where,
                 struct aws_creds *ret, bool *ret_found, struct err *err)
{
    if (id.n == 0 && secret.n == 0) {
        return true;
    }
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
    *ret_found = true;
    return true;
}

static bool from_environment(struct aws_creds *ret, bool *ret_found, struct err *err)
{
    const char *token = env("AWS_SESSION_TOKEN");
    return fill(str_of(env("AWS_ACCESS_KEY_ID")), str_of(env("AWS_SECRET_ACCESS_KEY")),
                str_of(token != NULL ? token : env("AWS_SECURITY_TOKEN")), "the environment", ret,
                ret_found, err);
}

static bool from_profile(bool config_file, struct aws_creds *ret, bool *ret_found, struct err *err)
{
    AUTO_FREE char *path = config_file
                               ? profile_path("AWS_CONFIG_FILE", "/.aws/config")
                               : profile_path("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials");
    AUTO_BUF struct buf text = BUF_INIT(CREDS_FILE_BYTES_MAX);
    if (!read_file(path, &text, err)) {
        return false;
    }
    struct str id = {"", 0}, secret = {"", 0}, token = {"", 0};
    const char *profile = profile_name();
    (void)ini_get(buf_str(&text), profile, config_file, "aws_access_key_id", &id);
    (void)ini_get(buf_str(&text), profile, config_file, "aws_secret_access_key", &secret);
    (void)ini_get(buf_str(&text), profile, config_file, "aws_session_token", &token);
    AUTO_FREE char *where = xasprintf("profile '%s' in '%s'", profile, path);
    return fill(id, secret, token, where, ret, ret_found, err);
}

static bool from_credentials_file(struct aws_creds *ret, bool *ret_found, struct err *err)
{
    return from_profile(false, ret, ret_found, err);
}

static bool from_config_file(struct aws_creds *ret, bool *ret_found, struct err *err)
{
    return from_profile(true, ret, ret_found, err);
}

static const struct provider {
    const char *place;
    bool (*load)(struct aws_creds *ret, bool *ret_found, struct err *err);
} providers[] = {
    {"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", from_environment},
    {"AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials)", from_credentials_file},
    {"AWS_CONFIG_FILE (~/.aws/config)", from_config_file},
};

bool creds_load(struct aws_creds *ret, struct err *err)
{
    AUTO_BUF struct buf places = BUF_INIT(512);
    for (size_t i = 0; i < ARRAY_LEN(providers); i++) {
        bool found = false;
        if (!providers[i].load(ret, &found, err)) {
            return false;
        }
        if (found) {
            return true;
        }
        buf_addf(&places, "%s%s", i == 0 ? "" : ", ", providers[i].place);
    }
    return err_set(err, ERR_UNAUTHENTICATED,
                   "no AWS credentials for profile '%.64s'; looked at: %s", profile_name(),
                   buf_cstr(&places));
}

static bool set_region(struct str v, const char *where, char *out, size_t out_n, struct err *err)
{
    bool ok = v.n > 0 && v.n < MIN(out_n, (size_t)CREDS_REGION_N);
    for (size_t i = 0; ok && i < v.n; i++) {
        char c = v.p[i];
        ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && i > 0);
    }
    if (!ok) {
        return err_set(err, ERR_INVALID, "%s does not name a region: '%.40s'", where,
                       v.n > 0 ? v.p : "");
    }
    memcpy(out, v.p, v.n);
    out[v.n] = '\0';
    return true;
}

bool creds_region(char *out, size_t out_n, struct err *err)
{
    static const char *const names[] = {"AWS_REGION", "AWS_DEFAULT_REGION"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (env(names[i]) != NULL) {
            return set_region(str_of(env(names[i])), names[i], out, out_n, err);
        }
    }
    for (int config = 1; config >= 0; config--) {
        AUTO_FREE char *path =
            config ? profile_path("AWS_CONFIG_FILE", "/.aws/config")
                   : profile_path("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials");
        AUTO_BUF struct buf text = BUF_INIT(CREDS_FILE_BYTES_MAX);
        struct str region = {"", 0};
        if (!read_file(path, &text, err)) {
            return false;
        }
        if (ini_get(buf_str(&text), profile_name(), config, "region", &region)) {
            AUTO_FREE char *copy = str_dup(region);
            return set_region(str_of(copy), path, out, out_n, err);
        }
    }
    return err_set(err, ERR_INVALID,
                   "no AWS region; set AWS_REGION, AWS_DEFAULT_REGION or 'region' in profile "
                   "'%.64s'",
                   profile_name());
}

static const struct service {
    const char *name;
    const char *variable; /* suffix of AWS_ENDPOINT_URL_: the SDKs' service id */
    const char *host;     /* before ".<region>." */
    const char *signing;
} services[] = {
    {"sagemaker", "SAGEMAKER", "api.sagemaker", "sagemaker"},
    {"sagemaker-runtime", "SAGEMAKER_RUNTIME", "runtime.sagemaker", "sagemaker"},
    {"s3", "S3", "s3", "s3"},
    {"servicequotas", "SERVICE_QUOTAS", "servicequotas", "servicequotas"},
    {"logs", "CLOUDWATCH_LOGS", "logs", "logs"},
    {"logs", "LOGS", "logs", "logs"}, /* a second name of the variable */
    {"sts", "STS", "sts", "sts"},
    {"fsx", "FSX", "fsx", "fsx"},
    {"pricing", "PRICING", "api.pricing", "pricing"},
    {"sqs", "SQS", "sqs", "sqs"},
    {"ecr", "ECR", "api.ecr", "ecr"},
    {"monitoring", "CLOUDWATCH", "monitoring", "monitoring"},
    {"ec2", "EC2", "ec2", "ec2"},
};

static const struct {
    const char *region_prefix;
    const char *suffix;
} partitions[] = {
    {"cn-", "amazonaws.com.cn"}, {"us-isob-", "sc2s.sgov.gov"}, {"us-iso-", "c2s.ic.gov"},
    {"eusc-", "amazonaws.eu"},   {"us-gov-", "amazonaws.com"},  {"", "amazonaws.com"},
};

/* Copy of a base URL without slashes at its end; caller frees. */
static char *base_url(const char *url)
{
    ASSERT(url != NULL);
    size_t n = strlen(url);
    while (n > 0 && url[n - 1] == '/') {
        n--;
    }
    return xstrndup(url, n);
}

char *creds_endpoint(const char *service, const char *region, bool *ret_custom)
{
    const char *host = service;
    const char *ignore = env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    bool use_env = ignore == NULL || strcmp(ignore, "true") != 0;
    for (size_t i = 0; i < ARRAY_LEN(services); i++) {
        if (strcmp(services[i].name, service) != 0) {
            continue;
        }
        host = services[i].host;
        AUTO_FREE char *name = xasprintf("AWS_ENDPOINT_URL_%s", services[i].variable);
        if (use_env && env(name) != NULL) {
            *ret_custom = true;
            return base_url(env(name));
        }
    }
    if (use_env && env("AWS_ENDPOINT_URL") != NULL) {
        *ret_custom = true;
        return base_url(env("AWS_ENDPOINT_URL"));
    }
    *ret_custom = false;
    size_t i = 0;
    while (!str_starts(str_of(region), partitions[i].region_prefix)) {
        i++; /* the last row matches every region */
    }
    return xasprintf("https://%s.%s.%s", host, region, partitions[i].suffix);
}

const char *creds_signing_name(const char *service)
{
    for (size_t i = 0; i < ARRAY_LEN(services); i++) {
        if (strcmp(services[i].name, service) == 0) {
            return services[i].signing;
        }
    }
    return service;
}
