/* The text of a notice, and its body for each kind of receiver. Pure: the same notice gives the
 * same bytes at every try. */
#pragma once
#include "common/buf.h"
#include "common/units.h"

#define MESSAGE_BYTES_MAX (64 * 1024)

struct message {
    const char *kind; /* a word of the table `notice.kind` */
    usec_t at_us;
    const char *facts_json; /* what notice_due knows of it, with `guidance` */
};
/* The body for receivers of `format`: json, slack or teams. ERR_MALFORMED: facts are no object. */
bool message_write(const struct message *m, const char *format, struct buf *ret,
                   struct err *err) MUST_CHECK;
