/* Where the credentials come from, decided from the environment and the profile files in the order
 * of the AWS SDKs; the first that is configured wins:
 *  1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
 *  2. a profile with role_arn (source_profile or credential_source)
 *  3. web identity: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or in the profile
 *  4. the credentials file, credential_process, the config file (SSO is refused)
 *  5. the container's endpoint
 *  6. the instance metadata service, unless AWS_EC2_METADATA_DISABLED is true
 * No network, no process: creds_fetch.h carries the plan out. */
#pragma once
#include "common/sigv4.h"

#define CREDS_ROLES_MAX 8

enum creds_source {
    CREDS_KEYS,         /* `keys`, from the environment or a file */
    CREDS_WEB_IDENTITY, /* `web`, with the token in file `text` */
    CREDS_PROCESS,      /* the output of command `text` */
    CREDS_CONTAINER,    /* GET `text` */
    CREDS_INSTANCE,     /* the instance metadata service at `text` */
};
struct creds_role {
    char *arn;
    char *session;     /* NULL: a name of our own */
    char *external_id; /* NULL: none */
    int64_t duration_s;
};
struct creds_plan {
    enum creds_source source;
    const char *place; /* for people, a literal: "the environment" */
    struct aws_creds keys;
    char *text;
    struct creds_role web;
    struct creds_role roles[CREDS_ROLES_MAX]; /* assumed one after the other, roles[0] first */
    size_t roles_n;
};

/* ERR_UNAUTHENTICATED names every place that was searched, or the fault of the one that is
 * configured. Never a secret. creds_plan_done frees. */
bool creds_plan_make(struct creds_plan *ret, struct err *err) MUST_CHECK;
void creds_plan_done(struct creds_plan *p);
/* True when the keys expire or can be renewed: not plain keys of the environment or a file. */
bool creds_plan_renews(const struct creds_plan *p);
/* Address of the container's endpoint from the values of AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and
 * _FULL_URI (NULL: unset). Plain http is allowed to loopback and the addresses of ECS and EKS only.
 * The caller frees. */
bool creds_container_uri(const char *relative, const char *full, char **ret,
                         struct err *err) MUST_CHECK;
/* Fill from three texts; `where` is for the message. */
bool creds_set_keys(struct aws_creds *ret, struct str id, struct str secret, struct str token,
                    const char *where, struct err *err) MUST_CHECK;
