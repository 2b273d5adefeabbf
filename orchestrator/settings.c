/* The table of droverd's settings, and the rules over several of them. */
#include "settings.h"
#include "api/server/listen.h"
#include "api/server/proxies.h"
#include "common/aws.h"
#include "common/cleanup.h"
#include "common/version.h"
#include "core/protocol/protocol.h"
#include "notices/mail.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#define SECRET_MAX     4096
#define PUBLIC_URL_MAX 200
#define SMTP_URL_MAX   300
#define AT(field)      offsetof(struct daemon_settings, field)

const struct config_row settings_rows[] = {
    {"database_url", "DROVER_DATABASE_URL", CONFIG_STR, "", 0, 0, AT(database_url),
     "PostgreSQL to use; empty needs --private-db"},
    {"database_wait_us", "DROVER_DATABASE_WAIT_US", CONFIG_I64, "300000000", 0, 86400000000,
     AT(database_wait_us), "how long the start waits for PostgreSQL to answer"},
    {"listen", "DROVER_LISTEN", CONFIG_STR, "127.0.0.1:8080", 0, 0, AT(listen),
     "address and port of the API and the dashboard; port 0: any"},
    {"plain_http", "DROVER_PLAIN_HTTP", CONFIG_BOOL, "false", 0, 0, AT(plain_http),
     "allow an address other than loopback without TLS in front"},
    {"secure_cookie", "DROVER_SECURE_COOKIE", CONFIG_BOOL, "false", 0, 0, AT(secure_cookie),
     "browsers reach us by https: mark the session cookie Secure"},
    {"public_url", "DROVER_PUBLIC_URL", CONFIG_STR, "", 0, 0, AT(public_url),
     "where browsers reach us, for links in mail and the provider of logins: "
     "https://drover.example.com"},
    {"oidc_issuer", "DROVER_OIDC_ISSUER", CONFIG_STR, "", 0, 0, AT(oidc_issuer),
     "provider of logins by OpenID Connect, as its discovery document says it; empty: none. Its "
     "redirect address is public_url/login/oidc/callback"},
    {"oidc_client_id", "DROVER_OIDC_CLIENT_ID", CONFIG_STR, "", 0, 0, AT(oidc_client_id),
     "what the provider calls us"},
    {"oidc_client_secret_file", "DROVER_OIDC_CLIENT_SECRET_FILE", CONFIG_SECRET_FILE, "", 0, 0,
     AT(oidc_client_secret_file), "file with our secret at the provider; empty: a public client"},
    {"oidc_name", "DROVER_OIDC_NAME", CONFIG_STR, "single sign-on", 0, 0, AT(oidc_name),
     "the provider's name on the button of the login page"},
    {"oidc_scopes", "DROVER_OIDC_SCOPES", CONFIG_STR, "openid profile email", 0, 0, AT(oidc_scopes),
     "what the provider is asked for; openid is one of them"},
    {"oidc_role_claim", "DROVER_OIDC_ROLE_CLAIM", CONFIG_STR, "groups", 0, 0, AT(oidc_role_claim),
     "claim of the ID token that login_roles looks at; dots lead into objects: realm_access.roles"},
    {"oidc_projects_claim", "DROVER_OIDC_PROJECTS_CLAIM", CONFIG_STR, "", 0, 0,
     AT(oidc_projects_claim),
     "claim with the names of a person's projects, at most 8, or *; empty: every project"},
    {"oidc_allow_net", "DROVER_OIDC_ALLOW_NET", CONFIG_STR, "", 0, 0, AT(oidc_allow_net),
     "private addresses the provider may have, ADDR[/LEN]:PORT by commas; only there http is "
     "taken: 10.1.2.0/24:443"},
    {"oidc_timeout_us", "DROVER_OIDC_TIMEOUT_US", CONFIG_I64, "5000000", 100000, 30000000,
     AT(oidc_timeout_us), "how long the provider may take to answer"},
    {"oidc_keep_us", "DROVER_OIDC_KEEP_US", CONFIG_I64, "3600000000", 1000, 86400000000,
     AT(oidc_keep_us),
     "how long the provider's document and keys are kept before they are read again"},
    {"sso_socket", "DROVER_SSO_SOCKET", CONFIG_STR, "", 0, 0, AT(sso_socket),
     "path of a socket for a proxy on this machine that says who asks; empty: none"},
    {"sso_user_header", "DROVER_SSO_USER_HEADER", CONFIG_STR, "X-Forwarded-User", 0, 0,
     AT(sso_user_header), "the proxy's header with who it is, believed by that socket only"},
    {"sso_groups_header", "DROVER_SSO_GROUPS_HEADER", CONFIG_STR, "X-Forwarded-Groups", 0, 0,
     AT(sso_groups_header), "the proxy's header with the groups, by commas, for login_roles"},
    {"login_roles", "DROVER_LOGIN_ROLES", CONFIG_STR,
     "admin=drover-admin, operator=drover-operator, viewer=drover-viewer", 0, 0, AT(login_roles),
     "which value of the claim gives which role, the highest counts; * is everybody"},
    {"token_file", "DROVER_TOKEN_FILE", CONFIG_STR, "", 0, 0, AT(token_file),
     "first admin token, made with mode 0600 when absent; empty: ~/.config/drover/token, where "
     "drover looks for it"},
    {"job_prefix", "DROVER_JOB_PREFIX", CONFIG_STR, "drover", 0, 0, AT(job_prefix),
     "first part of every job name; one installation, one prefix"},
    {"role_arn", "DROVER_ROLE_ARN", CONFIG_STR, "", 0, 0, AT(role_arn),
     "role of the jobs when a campaign file names none"},
    {"worker_image", "DROVER_WORKER_IMAGE", CONFIG_STR, "", 0, 0, AT(worker_image),
     "image of drover-worker, pinned to a digest"},
    {"bucket", "DROVER_BUCKET", CONFIG_STR, "", 0, 0, AT(bucket),
     "what {bucket} means when a campaign file does not say, and where sources go; empty: "
     "sagemaker-REGION-ACCOUNT"},
    {"bucket_kms_key", "DROVER_BUCKET_KMS_KEY", CONFIG_STR, "", 0, 0, AT(bucket_kms_key),
     "key of KMS, its id, ARN or alias/NAME, of what droverd and jobs of its worker put into "
     "bucket; output_kms_key of a campaign file comes first; empty: as the bucket encrypts"},
    {"prices_file", "DROVER_PRICES_FILE", CONFIG_STR, "", 0, 0, AT(prices_file),
     "JSON {\"ml.m5.large\":\"0.115\"}: prices in USD per hour that come before AWS Pricing's"},
    {"price_interval_us", "DROVER_PRICE_INTERVAL_US", CONFIG_I64, "86400000000", 0, 2592000000000,
     AT(price_interval_us), "read list prices of AWS Pricing this often; 0: never"},
    {"discount", "DROVER_DISCOUNT", CONFIG_STR, "0%", 0, 0, AT(discount),
     "what your contract takes off AWS Pricing's list prices: \"12.5%\""},
    {"spool_dir", "DROVER_SPOOL_DIR", CONFIG_STR, "/tmp", 0, 0, AT(spool_dir),
     "where big request bodies are spooled"},
    {"log_level", "DROVER_LOG_LEVEL", CONFIG_STR, "info", 0, 0, AT(log_level),
     "debug, info, warn or error"},
    {"tick_interval_us", "DROVER_TICK_INTERVAL_US", CONFIG_I64, "1000000", 10000, 60000000,
     AT(tick_interval_us), "look at the database at least this often"},
    {"observe_interval_us", "DROVER_OBSERVE_INTERVAL_US", CONFIG_I64, "10000000", 100000, 600000000,
     AT(observe_interval_us), "ListTrainingJobs this often while jobs live"},
    {"events_queue_url", "DROVER_EVENTS_QUEUE_URL", CONFIG_STR, "", 0, 0, AT(events_queue_url),
     "SQS queue of SageMaker's state changes: lists become rare while it tells; empty: lists "
     "alone"},
    {"lease_length_us", "DROVER_LEASE_LENGTH_US", CONFIG_I64, "10000000", 500000, 120000000,
     AT(lease_length_us), "a frozen leader is replaced after this"},
    {"lease_renew_us", "DROVER_LEASE_RENEW_US", CONFIG_I64, "3000000", 100000, 60000000,
     AT(lease_renew_us), "the lease is renewed this often"},
    {"signature_window_us", "DROVER_SIGNATURE_WINDOW_US", CONFIG_I64, "900000000", 100000,
     3600000000, AT(signature_window_us), "how long AWS may honour a signature after signing"},
    {"quota_interval_us", "DROVER_QUOTA_INTERVAL_US", CONFIG_I64, "300000000", 100000, 86400000000,
     AT(quota_interval_us), "read Service Quotas this often"},
    {"progress_interval_us", "DROVER_PROGRESS_INTERVAL_US", CONFIG_I64, "60000000", 100000,
     3600000000, AT(progress_interval_us), "look at the progress of each running part this often"},
    {"invocation_interval_us", "DROVER_INVOCATION_INTERVAL_US", CONFIG_I64, "60000000", 100000,
     3600000000, AT(invocation_interval_us),
     "ask CloudWatch for an endpoint's invocations at most this often"},
    {"invocation_delay_us", "DROVER_INVOCATION_DELAY_US", CONFIG_I64, "300000000", 0, 3600000000,
     AT(invocation_delay_us),
     "how late CloudWatch may count an invocation: so much longer an endpoint has to be idle"},
    {"create_rate_per_minute", "DROVER_CREATE_RATE_PER_MINUTE", CONFIG_I64, "60", 0, 6000000,
     AT(create_rate_per_minute),
     "CreateTrainingJob until Service Quotas tells its rate; 0: no limit, whatever it tells"},
    {"create_burst", "DROVER_CREATE_BURST", CONFIG_I64, "1", 1, 1000, AT(create_burst),
     "Creates that may be sent at once"},
    {"archive_after_days", "DROVER_ARCHIVE_AFTER_DAYS", CONFIG_I64, "0", 0, 36500,
     AT(archive_after_days),
     "archive campaigns this many days after their end; 0: only when asked"},
    {"api_threads", "DROVER_API_THREADS", CONFIG_I64, "8", 2, 64, AT(api_threads),
     "threads that run API handlers"},
    {"token_rate_per_s", "DROVER_TOKEN_RATE_PER_S", CONFIG_I64, "200", 0, 1000000,
     AT(token_rate_per_s), "requests a second a token may make; 0: no limit"},
    {"token_burst", "DROVER_TOKEN_BURST", CONFIG_I64, "400", 1, 1000000, AT(token_burst),
     "requests a token may make at once"},
    {"trusted_proxies", "DROVER_TRUSTED_PROXIES", CONFIG_STR, "", 0, 0, AT(trusted_proxies),
     "addresses and networks, by commas, whose X-Forwarded-For names the client"},
    {"streams_per_token", "DROVER_STREAMS_PER_TOKEN", CONFIG_I64, "16", 1, 1000,
     AT(streams_per_token), "event streams a token may have open"},
    {"streams_per_address", "DROVER_STREAMS_PER_ADDRESS", CONFIG_I64, "200", 1, 1000,
     AT(streams_per_address), "event streams an address other than loopback may have open"},
    {"notice_collect_us", "DROVER_NOTICE_COLLECT_US", CONFIG_I64, "30000000", 0, 3600000000,
     AT(notice_collect_us), "parts of a campaign that fail within this are one notice"},
    {"notice_stuck_us", "DROVER_NOTICE_STUCK_US", CONFIG_I64, "900000000", 0, 86400000000,
     AT(notice_stuck_us), "a campaign of which nothing has run for so long is stuck: a notice"},
    {"webhook_allow_net", "DROVER_WEBHOOK_ALLOW_NET", CONFIG_STR, "", 0, 0, AT(webhook_allow_net),
     "private addresses that webhooks may reach, ADDR[/LEN]:PORT by commas: 10.1.2.0/24:443"},
    {"webhook_timeout_us", "DROVER_WEBHOOK_TIMEOUT_US", CONFIG_I64, "10000000", 100000, 60000000,
     AT(webhook_timeout_us), "how long a webhook, or the server of mail, may take to answer"},
    {"webhook_retry_us", "DROVER_WEBHOOK_RETRY_US", CONFIG_I64, "5000000", 1000, 60000000,
     AT(webhook_retry_us),
     "pause after a first failed delivery; the later ones are 6 to 10,080 times as long"},
    {"smtp_url", "DROVER_SMTP_URL", CONFIG_STR, "", 0, 0, AT(smtp_url),
     "server that sends notices by mail: smtps://mail.example.com:465, or "
     "smtp://mail.example.com:587 "
     "that has to offer STARTTLS; empty: no mail"},
    {"smtp_from", "DROVER_SMTP_FROM", CONFIG_STR, "", 0, 0, AT(smtp_from),
     "address the mail is from: drover@example.com"},
    {"smtp_credentials_file", "DROVER_SMTP_CREDENTIALS_FILE", CONFIG_SECRET_FILE, "", 0, 0,
     AT(smtp_credentials_file), "file with USER:PASSWORD for smtp_url; empty: none are asked for"},
    {"smtp_ca_file", "DROVER_SMTP_CA_FILE", CONFIG_STR, "", 0, 0, AT(smtp_ca_file),
     "certificates that may vouch for smtp_url's; empty: the system's"},
};

const size_t settings_rows_n = ARRAY_LEN(settings_rows);

/* "12.5%" in parts of a million. */
static bool read_percent(const char *text, int64_t *ret_ppm, struct err *err)
{
    struct str s = str_of(text);
    int64_t u; /* millionths of a percent */
    if (!str_ends(s, "%") || !parse_usd((struct str){s.p, s.n - 1}, &u, NULL) || u % 100 != 0 ||
        u >= 100 * INT64_C(1000000)) {
        return err_set(err, ERR_INVALID,
                       "discount '%.40s': write a share of less than 100%% like 12.5%%", text);
    }
    *ret_ppm = u / 100;
    return true;
}

int64_t settings_paid_ppm(const struct daemon_settings *s)
{
    int64_t off_ppm = 0;
    struct err err = ERR_INIT;
    bool ok = read_percent(s->discount, &off_ppm, &err);
    ASSERT(ok);
    return 1000000 - off_ppm;
}

struct sign_in_config settings_sign_in(const struct daemon_settings *s, const char *redirect_url,
                                       const char *client_secret)
{
    struct sign_in_config c = {.oidc = {.issuer = s->oidc_issuer[0] != '\0' ? s->oidc_issuer : NULL,
                                        .client_id = s->oidc_client_id,
                                        .client_secret = client_secret,
                                        .redirect_url = redirect_url,
                                        .scopes = s->oidc_scopes,
                                        .timeout_us = s->oidc_timeout_us,
                                        .keep_us = s->oidc_keep_us,
                                        .user_agent = "droverd/" DROVER_VERSION},
                               .name = s->oidc_name,
                               .proxy_socket = s->sso_socket[0] != '\0' ? s->sso_socket : NULL,
                               .user_header = s->sso_user_header,
                               .groups_header = s->sso_groups_header,
                               .rules = {.role_claim = s->oidc_role_claim,
                                         .roles = s->login_roles,
                                         .projects_claim = s->oidc_projects_claim}};
    struct err err = ERR_INIT;
    bool ok = addr_parse_rules(str_of(s->oidc_allow_net), &c.oidc.allow, &err);
    ASSERT(ok);
    return c;
}

bool settings_read_secret(const char *file, char **ret, struct err *err)
{
    *ret = NULL;
    if (file[0] == '\0') {
        return true;
    }
    AUTO_FILE FILE *f = fopen(file, "re");
    AUTO_BUF struct buf text = BUF_INIT(SECRET_MAX);
    if (f == NULL || !buf_add_file(&text, f)) {
        return text.overflow
                   ? err_set(err, ERR_INVALID, "'%s' has more than %d bytes", file, SECRET_MAX)
                   : err_set_os(err, ERR_IO, errno, "cannot read '%s'", file);
    }
    struct str secret = str_trim(buf_str(&text));
    if (secret.n == 0 || memchr(secret.p, '\0', secret.n) != NULL) {
        return err_set(err, ERR_INVALID, "'%s' holds no secret", file);
    }
    *ret = str_dup(secret);
    return true;
}

static bool is_public_url(const char *url)
{
    bool https = strncmp(url, "https://", 8) == 0;
    const char *host = url + (https ? 8 : 7);
    return (https || strncmp(url, "http://", 7) == 0) && host[0] != '\0' &&
           strlen(url) <= PUBLIC_URL_MAX && strpbrk(host, " \"<>?#/") == NULL;
}

static bool check_logins(const struct daemon_settings *s, struct err *err)
{
    struct addr_rules rules;
    const struct person_rules person = {.role_claim = s->oidc_role_claim,
                                        .roles = s->login_roles,
                                        .projects_claim = s->oidc_projects_claim};
    if (s->public_url[0] != '\0' && !is_public_url(s->public_url)) {
        return err_set(err, ERR_INVALID,
                       "public_url '%.80s': write https://drover.example.com, without a path",
                       s->public_url);
    }
    if (strlen(s->sso_socket) > LISTEN_PATH_MAX || s->sso_user_header[0] == '\0') {
        return err_set(err, ERR_INVALID,
                       "sso_socket: a path of up to %d bytes, and sso_user_header with it",
                       LISTEN_PATH_MAX);
    }
    if (!addr_parse_rules(str_of(s->oidc_allow_net), &rules, err)) {
        return err_wrap(err, "oidc_allow_net");
    }
    if (!person_rules_check(&person, err)) {
        return false;
    }
    if (s->oidc_issuer[0] == '\0') {
        return true;
    }
    if (!oidc_issuer_check(s->oidc_issuer, err)) {
        return false;
    }
    if (strncmp(s->oidc_issuer, "http:", 5) == 0 && rules.n == 0) {
        return err_set(err, ERR_INVALID,
                       "oidc_issuer '%.80s': write https; http is for private addresses that "
                       "oidc_allow_net names",
                       s->oidc_issuer);
    }
    return (s->public_url[0] != '\0' && s->oidc_client_id[0] != '\0' &&
            s->oidc_role_claim[0] != '\0') ||
           err_set(err, ERR_INVALID,
                   "oidc_issuer needs public_url, oidc_client_id and oidc_role_claim");
}

/* smtps://HOST[:PORT] or smtp://HOST[:PORT]. */
static bool is_smtp_url(const char *url)
{
    struct str rest = str_of(url);
    bool ok = str_starts(rest, "smtp://") || str_starts(rest, "smtps://");
    const char *host = ok ? strstr(url, "://") + 3 : "";
    return ok && host[0] != '\0' && strlen(url) <= SMTP_URL_MAX &&
           strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]") ==
               strlen(host);
}

static bool check_mail(const struct daemon_settings *s, struct err *err)
{
    if (s->smtp_url[0] == '\0') {
        return true;
    }
    if (!is_smtp_url(s->smtp_url)) {
        return err_set(err, ERR_INVALID,
                       "smtp_url '%.80s': write smtps://mail.example.com:465 or "
                       "smtp://mail.example.com:587; user and password stand in "
                       "smtp_credentials_file",
                       strchr(s->smtp_url, '@') == NULL ? s->smtp_url : "smtp://...@...");
    }
    return mail_address_ok(str_of(s->smtp_from)) ||
           err_set(err, ERR_INVALID,
                   "smtp_from '%.80s': smtp_url needs an address like drover@example.com",
                   s->smtp_from);
}

bool settings_mail(const struct daemon_settings *s, char **ret_credentials, struct err *err)
{
    *ret_credentials = NULL;
    if (s->smtp_url[0] != '\0' &&
        !settings_read_secret(s->smtp_credentials_file, ret_credentials, err)) {
        return err_wrap(err, "smtp_credentials_file");
    }
    return *ret_credentials == NULL ||
           (strchr(*ret_credentials, ':') != NULL && strpbrk(*ret_credentials, "\r\n") == NULL) ||
           err_set(err, ERR_INVALID, "smtp_credentials_file: write one line USER:PASSWORD");
}

/* A role of another partition can be passed to no job of this region. */
static bool check_role(const struct daemon_settings *s, struct err *err)
{
    char region[64];
    struct err none = ERR_INIT; /* without a region AWS is not asked for anything */
    if (strncmp(s->role_arn, "arn:", 4) != 0 || !aws_region(region, sizeof region, &none)) {
        return true;
    }
    const char *partition = aws_partition(region);
    size_t n = strlen(partition);
    return (strncmp(s->role_arn + 4, partition, n) == 0 && s->role_arn[4 + n] == ':') ||
           err_set(err, ERR_INVALID,
                   "role_arn '%.80s' is of another partition than the region %s: write "
                   "arn:%s:iam::ACCOUNT:role/NAME",
                   s->role_arn, region, partition);
}

static bool check_kms_key(const char *key, struct err *err)
{
    for (const char *c = key; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && strchr(":/_-", *c) == NULL) {
            return err_set(err, ERR_INVALID,
                           "bucket_kms_key '%.80s': write alias/NAME, a key's id or its ARN", key);
        }
    }
    return true;
}

bool settings_check(const struct daemon_settings *s, struct err *err)
{
    enum log_level level;
    int64_t off_ppm;
    if (!read_percent(s->discount, &off_ppm, err)) {
        return false;
    }
    if (!log_parse_level(s->log_level, &level)) {
        return err_set(err, ERR_INVALID, "log_level '%.40s': write debug, info, warn or error",
                       s->log_level);
    }
    if (s->lease_renew_us >= s->lease_length_us / 2) {
        return err_set(err, ERR_INVALID,
                       "lease_renew_us %lld: must be less than half of lease_length_us (%lld), or "
                       "one late renewal loses the leadership",
                       (long long)s->lease_renew_us, (long long)s->lease_length_us);
    }
    char prefix[JOB_PREFIX_MAX + 1];
    protocol_job_prefix(s->job_prefix, prefix);
    if (strcmp(prefix, s->job_prefix) != 0) {
        return err_set(err, ERR_INVALID,
                       "job_prefix '%.40s': jobs would be named %s-...; write job_prefix '%s'",
                       s->job_prefix, prefix, prefix);
    }
    if (s->events_queue_url[0] != '\0' &&
        (strncmp(s->events_queue_url, "http", 4) != 0 || strlen(s->events_queue_url) > 512)) {
        return err_set(err, ERR_INVALID,
                       "events_queue_url '%.40s': write https://sqs.REGION.amazonaws.com/ACCOUNT/"
                       "NAME",
                       s->events_queue_url);
    }
    struct proxies *proxies = NULL;
    struct addr_rules rules;
    bool ok = proxies_new(s->trusted_proxies, &proxies, err);
    proxies_free(proxies);
    return ok && check_role(s, err) && check_kms_key(s->bucket_kms_key, err) &&
           check_logins(s, err) && check_mail(s, err) &&
           (addr_parse_rules(str_of(s->webhook_allow_net), &rules, err) ||
            err_wrap(err, "webhook_allow_net"));
}

struct addr_rules settings_webhook_allow(const struct daemon_settings *s)
{
    struct addr_rules rules;
    struct err err = ERR_INIT;
    bool ok = addr_parse_rules(str_of(s->webhook_allow_net), &rules, &err);
    ASSERT(ok);
    return rules;
}
