/* The notifier: a thread of droverd that tells people what happened, by webhooks and
 * mail. It works while
 * this droverd leads, on a connection, a loop and an HTTP client of its own, so that no receiver
 * and no lock of its rows can delay the leader.
 *
 * 1. A notice is written in one transaction with the cursor over the events it was made of: none is
 *    lost or made twice, whatever dies when.
 * 2. A delivery that was begun is tried again unless its end is written down: at least once, under
 *    the same webhook-id with the same body.
 * 3. One delivery is under way for each webhook, DELIVERIES_MAX in all; at most QUEUE_MAX wait for
 *    one.
 * 4. No transaction is open while a receiver is waited for.
 * 5. Addresses are checked when the connection is opened, after the name was resolved. The mail
 *    server is the operator's: it may be anywhere, and gets credentials under TLS only.
 * 6. What a mail server refuses for good (5xx) is not sent again; what it does not take now is. An
 *    address that is refused keeps the mail from no other, and who has it gets no second one. */
#pragma once
#include "common/addr.h"
#include "common/http.h"
#include "status.h"

struct notices_config {
    const char *conninfo;
    const struct api_status *status;
    struct addr_rules allow; /* private addresses that may be reached */
    int64_t collect_us;      /* failures of so long are one notice */
    int64_t stuck_us;        /* nothing runs for so long: stuck */
    int64_t retry_us;        /* the first pause after a failure; see notices.c for the others */
    int64_t timeout_us;      /* of one delivery */
    const char *user_agent;
    struct mail_server mail;
    const char *public_url; /* of the dashboard, for links; "": there are none */
};
struct notices;
bool notices_start(const struct notices_config *cfg, struct notices **ret,
                   struct err *err) MUST_CHECK;
void notices_stop(struct notices *n); /* NULL ignored */
