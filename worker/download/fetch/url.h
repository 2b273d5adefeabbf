/* Normalises a URL of a dataset: spaces and non-ASCII bytes percent-encoded, international host
 * names in ASCII form, addresses in dotted form; or the reason why it is invalid. */
#pragma once
#include "common/str.h"

#define URL_HOST_BYTES_MAX 254
#define URL_WHY_BYTES      256

struct url { /* url_done frees */
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
