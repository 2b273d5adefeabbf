/* Sessions of browsers. */
#pragma once
#include "session_cookie.h"

/* Begin a session of that token and set its cookie; ret_cookie: its value. r->db is open. */
bool session_begin(struct api_req *r, const char *token_id,
                   char ret_cookie[static SESSION_HEX_N + 1], struct err *err) MUST_CHECK;
