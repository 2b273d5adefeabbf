/* Opt-out by the X-Robots-Tag header, read as img2dataset reads it. */
#pragma once
#include "common/str.h"

#define ROBOTS_DIRECTIVES_MAX 16
struct robots {
    struct str directives[ROBOTS_DIRECTIVES_MAX]; /* lower case; borrowed */
    int n;
    struct str token; /* user_agent_token, lower case; empty: no token */
};

/* True when the header value forbids use. The value is split once at ':': the right part is a comma
 * list of directives, the optional left part the user agent it applies to. */
bool robots_forbids(const struct robots *r, struct str value);
