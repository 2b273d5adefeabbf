/* Instants as text and back. Pure: no clock is read. */
#pragma once
#include "err.h"
#include "units.h"

/* RFC 3339 UTC, "2026-01-02T03:04:05Z" or with ".123456" when micros is true. out >= 32 bytes. */
void clock_format_rfc3339(usec_t t, bool micros, char out[static 32]);
/* "20260102T030405Z", SigV4's form. out >= 17 bytes. */
void clock_format_amz(usec_t t, char out[static 17]);
/* "Thu, 01 Jan 1970 00:00:00 GMT". out >= 30 bytes. */
void clock_format_http(usec_t t, char out[static 30]);
bool clock_parse_rfc3339(const char *s, usec_t *ret, struct err *err) MUST_CHECK;
bool clock_parse_amz(const char *s, usec_t *ret, struct err *err) MUST_CHECK;
bool clock_parse_http(const char *s, usec_t *ret, struct err *err) MUST_CHECK;
