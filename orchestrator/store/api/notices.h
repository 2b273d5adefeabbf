/* Notices and their deliveries, for the notifier; see orchestrator/notices/. What people read and
 * change of webhooks is in webhooks.h. Errors: those of query.h. */
#pragma once
#include "common/units.h"
#include "store/pg/connection.h"

struct notice_begin {
    int64_t event_id; /* events up to here are looked at */
    usec_t since_us;  /* of the oldest webhook; 0: there is none, or another notifier looks */
};
/* Keeps other notifiers from looking until the transaction ends. */
bool store_notice_begin(struct store *s, struct notice_begin *ret, struct err *err) MUST_CHECK;
struct notice_events {
    int64_t n, last_id;
    char *changed; /* ids of campaigns, by commas; the caller frees it */
};
/* Makes notices of at most `rows` events after those looked at; failures are collected for
 * collect_us. */
bool store_notice_events(struct store *s, const struct notice_begin *from, int64_t rows,
                         int64_t collect_us, struct notice_events *ret, struct err *err) MUST_CHECK;
/* Notices of budgets, also those of the campaigns `changed`. */
bool store_notice_budgets(struct store *s, const char *changed, struct err *err) MUST_CHECK;
/* Notices of campaigns that are stuck for stuck_us. */
bool store_notice_stuck(struct store *s, int64_t stuck_us, struct err *err) MUST_CHECK;
/* Notices of campaigns that have not ended by their deadline. */
bool store_notice_late(struct store *s, struct err *err) MUST_CHECK;
/* Calls cb for each that is due, with what is known of it as a JSON object. */
typedef bool (*notice_due_cb)(void *ctx, int64_t id, const char *kind, int64_t campaign_id,
                              const char *facts_json, struct err *err);
bool store_notice_due(struct store *s, int64_t event_id, notice_due_cb cb, void *ctx,
                      struct err *err) MUST_CHECK;
/* It is told, with these facts, to the webhooks that want it. */
bool store_notice_tell(struct store *s, int64_t id, int64_t event_id, const char *facts_json,
                       int64_t queue_max, struct err *err) MUST_CHECK;
bool store_notice_go_on(struct store *s, int64_t event_id, struct err *err) MUST_CHECK;
bool store_notice_forget(struct store *s, struct err *err) MUST_CHECK;

struct webhook_delivery {
    int64_t id, tries;
    usec_t at_us; /* of its notice */
    const char *url, *format, *message_id, *kind, *facts_json;
    const char *addresses_json; /* of a mail: those that need no further try, see mail_record.h */
    struct str secret;
};
/* Takes at most n deliveries, one a webhook, for hold_us and calls cb for each; what it gets is
 * borrowed for the call. */
bool store_delivery_take(struct store *s, int64_t n, int64_t hold_us,
                         void (*cb)(void *ctx, const struct webhook_delivery *d), void *ctx,
                         int *ret_n, struct err *err) MUST_CHECK;
struct delivery_result {
    int64_t id, tries;
    const char *state; /* delivered, failed, or waiting: again in again_us */
    int status;        /* of the answer; 0: none came */
    const char *problem;
    const char *addresses_json; /* NULL: as they were */
    int64_t took_us, again_us;
};
bool store_delivery_done(struct store *s, const struct delivery_result *r,
                         struct err *err) MUST_CHECK;
