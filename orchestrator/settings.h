/* Settings of droverd, from its file and the environment. */
#pragma once
#include "api/server/server.h"
#include "common/addr.h"
#include "common/config.h"
#include "common/err.h"
#include "common/log.h"

struct daemon_settings {
    char *database_url, *listen, *token_file, *job_prefix, *role_arn, *worker_image, *bucket;
    char *prices_file, *discount, *log_level, *spool_dir, *trusted_proxies, *webhook_allow_net;
    char *events_queue_url, *bucket_kms_key;
    char *smtp_url, *smtp_from, *smtp_credentials_file, *smtp_ca_file;
    char *public_url, *oidc_issuer, *oidc_client_id, *oidc_client_secret_file, *oidc_name;
    char *sso_socket, *sso_user_header, *sso_groups_header;
    char *oidc_scopes, *oidc_role_claim, *oidc_projects_claim, *oidc_allow_net, *login_roles;
    int64_t tick_interval_us, observe_interval_us, lease_length_us, lease_renew_us;
    int64_t invocation_interval_us, invocation_delay_us;
    int64_t signature_window_us, quota_interval_us, database_wait_us;
    int64_t progress_interval_us, price_interval_us;
    int64_t archive_after_days;
    int64_t create_rate_per_minute, create_burst, api_threads, token_rate_per_s, token_burst;
    int64_t notice_collect_us, notice_stuck_us, webhook_retry_us, webhook_timeout_us;
    int64_t oidc_timeout_us, oidc_keep_us;
    int64_t streams_per_token, streams_per_address;
    bool plain_http, secure_cookie;
};
extern const struct config_row settings_rows[];
extern const size_t settings_rows_n;
/* What webhook_allow_net says; settings_check has checked it. */
struct addr_rules settings_webhook_allow(const struct daemon_settings *s);
/* How people sign in besides by token; settings_check has checked it. Everything is borrowed. */
struct sign_in_config settings_sign_in(const struct daemon_settings *s, const char *redirect_url,
                                       const char *client_secret);
/* The secret in a file without white space around it, which the caller frees; NULL when file is "".
 * ERR_IO, ERR_INVALID. */
bool settings_read_secret(const char *file, char **ret, struct err *err) MUST_CHECK;
/* The credentials of smtp_url, "USER:PASSWORD", which the caller frees; NULL: none. ERR_IO,
 * ERR_INVALID. */
bool settings_mail(const struct daemon_settings *s, char **ret_credentials,
                   struct err *err) MUST_CHECK;
/* What is paid of AWS' list prices, in parts of a million: 1,000,000 without a discount;
 * settings_check has checked it. */
int64_t settings_paid_ppm(const struct daemon_settings *s);
/* Rules that no single row can say. ERR_INVALID naming the setting and what to write. */
bool settings_check(const struct daemon_settings *s, struct err *err) MUST_CHECK;
