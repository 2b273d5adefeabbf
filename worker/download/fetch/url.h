/* Normalises a URL of a dataset: spaces and non-ASCII bytes become percent-encoded, international
 * host names get their ASCII form, addresses their dotted form. An invalid URL gets a reason. */
#pragma once
#include "common/str.h"

#define URL_HOST_BYTES_MAX 254
#define URL_WHY_BYTES      256

struct url { /* free with url_done */
    char *text;
    char host[URL_HOST_BYTES_MAX + 1]; /* without brackets */
    int port;
};

/* Call once, before the first thread: international names are then read as UTF-8 in any locale
 * (libidn2 uses the locale). */
void url_setup(void);
/* False with the reason in words of Python's urllib, as img2dataset's users know them. */
bool url_parse(struct str raw, struct url *ret, char why[static URL_WHY_BYTES]) MUST_CHECK;
void url_done(struct url *u);
