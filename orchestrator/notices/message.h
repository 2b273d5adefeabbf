/* The text of a notice, and its body for each kind of receiver. Pure: the same notice gives the
 * same bytes at every try. */
#pragma once
#include "common/buf.h"
#include "common/units.h"
#include "mail.h"

#define MESSAGE_BYTES_MAX (64 * 1024)

struct message_envelope {  /* of the format email */
    const char *id, *from; /* as of struct mail */
    const struct mail_addresses *to;
    const char *public_url; /* of the dashboard; "": the mail has no link */
};
struct message {
    const char *kind; /* a word of the table `notice.kind` */
    usec_t at_us;
    const char *facts_json;              /* what notice_due knows of it, with `guidance` */
    const struct message_envelope *mail; /* for the format email */
};
/* The body for receivers of `format`: json, slack, teams, or email with its headers. ERR_MALFORMED:
 * facts are no object. */
bool message_write(const struct message *m, const char *format, struct buf *ret,
                   struct err *err) MUST_CHECK;
