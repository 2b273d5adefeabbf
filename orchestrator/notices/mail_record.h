/* Which addresses of a mail need no further try: a JSON object of each with "" when it has the
 * mail, or what the server refused it with for good. Pure. */
#pragma once
#include "common/json.h"
#include "mail.h"

struct mail_try {    /* what came of one */
    struct str said; /* the server's lines about the mail itself: of MAIL, each RCPT, DATA */
    int status;      /* of its last answer; 0: none came */
    bool taken;      /* it took the message */
};
/* Those of `all` that are not in the record. */
void mail_addresses_left(const struct mail_addresses *all, const json_t *record,
                         struct mail_addresses *ret);
/* Puts what came of a try for `to` into the record, and into *problem "b@x.example answered 450:
 * later" of each that has not got it, also of those refused before. False, and nothing is changed:
 * the server did not come to answer for each of them. */
bool mail_record_try(json_t *record, const struct mail_addresses *to, const struct mail_try *t,
                     struct buf *problem) MUST_CHECK;
bool mail_record_has(json_t *record); /* somebody has it */
