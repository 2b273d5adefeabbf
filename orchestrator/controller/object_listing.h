/* Answers BRIDGE_S3_LIST: the objects whose URI matches a pattern, in the order of their keys.
 *
 * The keys behind the pattern's prefix are divided into ranges, and up to LISTING_WIDTH of them are
 * listed at once. How the keys are spread is not known: whenever a page came and places are free,
 * what is left of its range is divided, so ranges with many keys are divided again and again. A
 * page that fails for a passing reason is asked again, with back-off (core/leader/input_listing.h).
 * After each page the asker can see how far it is. A listing for whose answer nobody waits any more
 * sends nothing more. */
#pragma once
#include "bridge.h"

struct controller;
/* Start; the question is answered or refused later, once. */
void object_listing_start(struct controller *c, const struct bridge_question *q);
/* Nothing is sent any more; calls under way end with the AWS client. */
void object_listings_stop(struct controller *c);
