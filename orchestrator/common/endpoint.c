/* Region and endpoints: see endpoint.h. Hosts as in the SDKs' endpoint rules; the test
 * tests/integration/common/creds_botocore.py compares every row. */
#include "endpoint.h"
#include "common/aws.h"
#include "common/cleanup.h"
#include "profiles.h"

#define REGION_N 33

static bool set_region(struct str v, const char *where, char *out, size_t out_n, struct err *err)
{
    bool ok = v.n > 0 && v.n < MIN(out_n, (size_t)REGION_N);
    for (size_t i = 0; ok && i < v.n; i++) {
        char c = v.p[i];
        ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && i > 0);
    }
    if (!ok) {
        return err_set(err, ERR_INVALID, "%s does not name a region: '%.*s'", where,
                       (int)MIN(v.n, (size_t)40), v.p);
    }
    memcpy(out, v.p, v.n);
    out[v.n] = '\0';
    return true;
}

static const char *profile_name(void)
{
    const char *chosen = profiles_chosen();
    return chosen != NULL ? chosen : "default";
}

bool endpoint_region(char *out, size_t out_n, struct err *err)
{
    static const char *const names[] = {"AWS_REGION", "AWS_DEFAULT_REGION"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (env_value(names[i]) != NULL) {
            return set_region(str_of(env_value(names[i])), names[i], out, out_n, err);
        }
    }
    struct profiles p;
    if (!profiles_load(&p, err)) {
        return false;
    }
    const char *v = profiles_value(&p, profile_name(), "region");
    AUTO_FREE char *where = xasprintf("'region' of profile '%.64s'", profile_name());
    bool ok = v != NULL
                  ? set_region(str_of(v), where, out, out_n, err)
                  : err_set(err, ERR_INVALID,
                            "no AWS region; set AWS_REGION, AWS_DEFAULT_REGION or 'region' in "
                            "profile '%.64s'",
                            profile_name());
    profiles_done(&p);
    return ok;
}

static const struct service {
    const char *name;
    const char *id;   /* the SDKs' service id, in AWS_ENDPOINT_URL_<ID> and services sections */
    const char *host; /* before ".<region>." */
    const char *signing;
    const char *fips; /* FIPS host in the partitions aws and aws-us-gov; NULL: host-fips */
    const char *dual; /* dual-stack host; NULL: host */
    bool gov_is_fips; /* in aws-us-gov the plain host is the FIPS host */
} services[] = {
    {"sagemaker", "SAGEMAKER", "api.sagemaker", "sagemaker", "api-fips.sagemaker", NULL, false},
    {"sagemaker-runtime", "SAGEMAKER_RUNTIME", "runtime.sagemaker", "sagemaker",
     "runtime-fips.sagemaker", NULL, true},
    {"s3", "S3", "s3", "s3", NULL, NULL, false},
    {"servicequotas", "SERVICE_QUOTAS", "servicequotas", "servicequotas", NULL, NULL, true},
    {"logs", "CLOUDWATCH_LOGS", "logs", "logs", NULL, NULL, true},
    {"logs", "LOGS", "logs", "logs", NULL, NULL, true}, /* a second name of the variable */
    {"sts", "STS", "sts", "sts", NULL, NULL, true},
    {"fsx", "FSX", "fsx", "fsx", NULL, NULL, false},
    {"pricing", "PRICING", "api.pricing", "pricing", NULL, NULL, false},
    {"sqs", "SQS", "sqs", "sqs", NULL, NULL, true},
    {"ecr", "ECR", "api.ecr", "ecr", "ecr-fips", "ecr", false},
    {"monitoring", "CLOUDWATCH", "monitoring", "monitoring", NULL, NULL, true},
    {"ec2", "EC2", "ec2", "ec2", NULL, NULL, true},
};

enum partition { PARTITION_AWS, PARTITION_GOV, PARTITION_OTHER };

static const struct partition_row {
    const char *region_prefix, *name;
    enum partition kind;
    const char *suffix, *dual_suffix;
} partitions[] = {
    {"cn-", "aws-cn", PARTITION_OTHER, "amazonaws.com.cn", "api.amazonwebservices.com.cn"},
    {"us-isob-", "aws-iso-b", PARTITION_OTHER, "sc2s.sgov.gov", "api.aws.scloud"},
    {"us-isof-", "aws-iso-f", PARTITION_OTHER, "csp.hci.ic.gov", "api.aws.hci.ic.gov"},
    {"us-iso-", "aws-iso", PARTITION_OTHER, "c2s.ic.gov", "api.aws.ic.gov"},
    {"eu-isoe-", "aws-iso-e", PARTITION_OTHER, "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"},
    {"eusc-", "aws-eusc", PARTITION_OTHER, "amazonaws.eu", "api.amazonwebservices.eu"},
    {"us-gov-", "aws-us-gov", PARTITION_GOV, "amazonaws.com", "api.aws"},
    {"", "aws", PARTITION_AWS, "amazonaws.com", "api.aws"},
};

static const struct partition_row *partition_of(const char *region)
{
    const struct partition_row *p = partitions;
    while (!str_starts(str_of(region), p->region_prefix)) {
        p++; /* the last row matches every region */
    }
    return p;
}

const char *aws_partition(const char *region)
{
    return partition_of(region)->name;
}

bool aws_region(char *out, size_t out_n, struct err *err)
{
    return endpoint_region(out, out_n, err);
}

/* Copy of a base URL without slashes at its end; caller frees. */
static char *base_url(struct str url)
{
    while (url.n > 0 && url.p[url.n - 1] == '/') {
        url.n--;
    }
    return str_dup(url);
}

/* A switch that is "true" in the environment or the profile. */
static bool is_on(const struct profiles *p, const char *variable, const char *key)
{
    const char *v = env_value(variable);
    v = v != NULL ? v : profiles_value(p, profile_name(), key);
    return v != NULL && strcasecmp(v, "true") == 0;
}

/* The URL given for a service; NULL: none. The caller frees. */
static char *given_url(const struct profiles *p, const char *service)
{
    if (is_on(p, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "ignore_configured_endpoint_urls")) {
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(services); i++) {
        AUTO_FREE char *name = xasprintf("AWS_ENDPOINT_URL_%s", services[i].id);
        if (strcmp(services[i].name, service) == 0 && env_value(name) != NULL) {
            return base_url(str_of(env_value(name)));
        }
    }
    if (env_value("AWS_ENDPOINT_URL") != NULL) {
        return base_url(str_of(env_value("AWS_ENDPOINT_URL")));
    }
    const char *section = profiles_value(p, profile_name(), "services");
    for (size_t i = 0; section != NULL && i < ARRAY_LEN(services); i++) {
        if (strcmp(services[i].name, service) == 0) {
            AUTO_FREE char *key = xstrdup(services[i].id);
            for (char *c = key; *c != '\0'; c++) {
                *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
            }
            struct str url = ini_nested(profiles_service_value(p, section, key), "endpoint_url");
            if (url.n > 0) {
                return base_url(url);
            }
        }
    }
    const char *all = profiles_value(p, profile_name(), "endpoint_url");
    return all != NULL && all[0] != '\0' ? base_url(str_of(all)) : NULL;
}

/* Host of a service in a region; the caller frees. */
static char *host_of(const struct service *s, const char *region, bool fips, bool dual)
{
    const struct partition_row *p = partition_of(region);
    bool s3 = strcmp(s->name, "s3") == 0;
    if (s3) {
        return xasprintf("s3%s%s.%s.%s", fips ? "-fips" : "", dual ? ".dualstack" : "", region,
                         p->suffix);
    }
    const char *host = dual && s->dual != NULL ? s->dual : s->host;
    const char *mark = fips ? "-fips" : "";
    if (fips && !dual && p->kind == PARTITION_GOV && s->gov_is_fips) {
        mark = "";
    } else if (fips && !dual && p->kind != PARTITION_OTHER && s->fips != NULL) {
        host = s->fips;
        mark = "";
    }
    return xasprintf("%s%s.%s.%s", host, mark, region, dual ? p->dual_suffix : p->suffix);
}

char *endpoint_url(const char *service, const char *region, bool *ret_custom)
{
    struct profiles p = {.config_path = NULL};
    (void)!profiles_load(&p, NULL); /* what is wrong with them is said where keys are searched */
    char *given = given_url(&p, service);
    *ret_custom = given != NULL;
    if (given == NULL) {
        struct service other = {.name = service, .host = service};
        const struct service *s = &other;
        for (size_t i = ARRAY_LEN(services); i > 0; i--) {
            s = strcmp(services[i - 1].name, service) == 0 ? &services[i - 1] : s;
        }
        AUTO_FREE char *host =
            host_of(s, region, is_on(&p, "AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint"),
                    is_on(&p, "AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint"));
        given = xasprintf("https://%s", host);
    }
    profiles_done(&p);
    return given;
}

char *endpoint_ca_bundle(void)
{
    struct profiles p = {.config_path = NULL};
    (void)!profiles_load(&p, NULL); /* what is wrong with them is said where keys are searched */
    const char *v = env_value("AWS_CA_BUNDLE");
    v = v != NULL ? v : profiles_value(&p, profile_name(), "ca_bundle");
    char *path = v != NULL && v[0] != '\0' ? xstrdup(v) : NULL;
    profiles_done(&p);
    return path;
}

/* False when the variable, or else the profile's key, is when_required. */
static bool when_supported(const char *variable, const char *key)
{
    struct profiles p = {.config_path = NULL};
    (void)!profiles_load(&p, NULL); /* what is wrong with them is said where keys are searched */
    const char *v = env_value(variable);
    v = v != NULL ? v : profiles_value(&p, profile_name(), key);
    bool wants = v == NULL || strcasecmp(v, "when_required") != 0;
    profiles_done(&p);
    return wants;
}

bool endpoint_wants_checksums(void)
{
    return when_supported("AWS_REQUEST_CHECKSUM_CALCULATION", "request_checksum_calculation");
}

bool endpoint_wants_compared(void)
{
    return when_supported("AWS_RESPONSE_CHECKSUM_VALIDATION", "response_checksum_validation");
}

bool endpoint_parse(struct endpoint *e, struct err *err)
{
    struct str url = str_of(e->url);
    struct str default_port;
    if (str_starts(url, "https://")) {
        e->scheme = STR("https://");
        default_port = STR(":443");
    } else if (str_starts(url, "http://")) {
        e->scheme = STR("http://");
        default_port = STR(":80");
    } else {
        return err_set(err, ERR_INVALID, "endpoint '%.200s' is neither http nor https", e->url);
    }
    struct str rest = {url.p + e->scheme.n, url.n - e->scheme.n};
    size_t host_n = 0;
    while (host_n < rest.n && rest.p[host_n] != '/') {
        unsigned char ch = (unsigned char)rest.p[host_n++];
        if (ch <= 0x20 || ch >= 0x7f || strchr("@?#\\%", ch) != NULL) {
            return err_set(err, ERR_INVALID, "endpoint '%.200s' has no plain host name", e->url);
        }
    }
    e->host = (struct str){rest.p, host_n};
    e->base = (struct str){rest.p + host_n, rest.n - host_n};
    if (str_ends(e->host, default_port.p)) {
        e->host.n -= default_port.n;
    }
    return e->host.n > 0 || err_set(err, ERR_INVALID, "endpoint '%.200s' has no host", e->url);
}

bool endpoint_is_aws_host(struct str host)
{
    host = str_split(&host, ':');
    for (size_t i = 0; i < ARRAY_LEN(partitions); i++) {
        const char *suffixes[] = {partitions[i].suffix, partitions[i].dual_suffix};
        for (size_t j = 0; j < ARRAY_LEN(suffixes); j++) {
            size_t n = strlen(suffixes[j]);
            if (host.n > n && host.p[host.n - n - 1] == '.' && str_ends(host, suffixes[j])) {
                return true;
            }
        }
    }
    return false;
}

const char *endpoint_signing_name(const char *service)
{
    for (size_t i = 0; i < ARRAY_LEN(services); i++) {
        if (strcmp(services[i].name, service) == 0) {
            return services[i].signing;
        }
    }
    return service;
}
