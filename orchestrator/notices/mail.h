/* A mail as a server takes it (RFC 5322), and the addresses it may go to. Pure: the same mail gives
 * the same bytes. */
#pragma once
#include "common/buf.h"
#include "common/units.h"

#define MAIL_ADDRESS_MAX   254 /* bytes: RFC 5321 */
#define MAIL_ADDRESSES_MAX 10

/* One plain ASCII address "a@b.example": nothing that is quoted or a comment. */
bool mail_address_ok(struct str address);
struct mail_addresses {
    char text[MAIL_ADDRESSES_MAX][MAIL_ADDRESS_MAX + 1];
    size_t n;
};
/* Those of "mailto:a@b.example,c@d.example". ERR_INVALID. */
bool mail_addresses_read(const char *url, struct mail_addresses *ret, struct err *err) MUST_CHECK;

struct mail {
    const char *id; /* Message-ID, without <, > and domain: letters, digits, "_", "." and "-" */
    const char *from;
    const struct mail_addresses *to;
    usec_t at_us;
    const char *subject, *text; /* UTF-8; the text's lines end with \n */
};
/* Appends headers and body, whose lines end with \r\n. Control characters of the subject become
 * blanks, so it cannot become another header. */
void mail_write(const struct mail *m, struct buf *ret);
