/* Webhooks and the log of what was sent to them. */
#pragma once
#include "store/pg/connection.h"

#define WEBHOOK_KINDS_MAX 8
#define WEBHOOKS_MAX      100 /* as api_webhook_new says */

struct apidb_webhook_new {
    const char *name, *url, *format, *by;
    const char *project; /* NULL: every one */
    const char *kinds[WEBHOOK_KINDS_MAX];
    size_t kinds_n;
    struct str secret;               /* 32 bytes */
    int64_t quiet_from, quiet_until; /* minutes of the day, UTC; -1: none */
};
/* ERR_NOT_FOUND: no such project; ERR_CONFLICT: there are as many as there may be. */
bool apidb_webhook_new(struct store *s, const struct apidb_webhook_new *w, int64_t *ret_id,
                       struct err *err) MUST_CHECK;
/* The project it is of, "" for every one. ERR_NOT_FOUND. */
bool apidb_webhook_project(struct store *s, int64_t id, char ret[static 128],
                           struct err *err) MUST_CHECK;
/* A JSON list. id 0: all; projects by commas, "": of every one. */
bool apidb_webhooks(struct store *s, int64_t id, const char *projects, struct buf *ret_json,
                    struct err *err) MUST_CHECK;
/* A text that changes exactly when what people set does. "" of none. */
bool apidb_webhook_tag(struct store *s, int64_t id, struct buf *ret_text,
                       struct err *err) MUST_CHECK;
/* Until the transaction ends nobody else changes it; none: nothing is locked. */
bool apidb_webhook_lock(struct store *s, int64_t id, struct err *err) MUST_CHECK;
struct apidb_webhook_change {
    const char *name, *url, *format; /* NULL: as it is */
    const char *kinds[WEBHOOK_KINDS_MAX];
    size_t kinds_n; /* 0: as they are */
    bool set_quiet;
    int64_t quiet_from, quiet_until; /* -1: none */
};
bool apidb_webhook_change(struct store *s, int64_t id, const struct apidb_webhook_change *c,
                          struct err *err) MUST_CHECK;
bool apidb_webhook_delete(struct store *s, int64_t id, struct err *err) MUST_CHECK;
/* Queues a message that says it is a test. ERR_CONFLICT: enough of them wait. */
bool apidb_webhook_test(struct store *s, int64_t id, int64_t *ret_delivery,
                        struct err *err) MUST_CHECK;
/* Sends one that has ended once more. ERR_CONFLICT: it has not, or is not there. */
bool apidb_delivery_resend(struct store *s, int64_t id, int64_t delivery,
                           struct err *err) MUST_CHECK;
/* A JSON list, newest first. delivery 0: all. */
bool apidb_deliveries(struct store *s, int64_t id, int64_t delivery, int64_t n,
                      struct buf *ret_json, struct err *err) MUST_CHECK;
