/* Filter patterns of CloudWatch Logs over lines of text: terms that a message must hold ("a b"),
 * one of which it must hold ("?a ?b"), that it must not hold ("-a"), in quotes when they have
 * blanks, and %regular expressions%. Terms with a question mark count only where all others are
 * exclusions, as at AWS. Patterns for JSON and for columns are not played. */
#pragma once
#include "common/err.h"
#include "common/str.h"

struct filter_pattern;
/* ERR_INVALID: why it is no pattern, or none that is played. "" takes every message. The caller
 * frees it. */
bool filter_pattern_new(const char *text, struct filter_pattern **ret, struct err *err) MUST_CHECK;
void filter_pattern_free(struct filter_pattern *p); /* NULL ignored */
bool filter_pattern_fits(const struct filter_pattern *p, struct str message);
