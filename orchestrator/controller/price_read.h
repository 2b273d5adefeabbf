/* Prices from AWS Pricing: read at takeover when the stored ones are older than price_interval_us,
 * then this often. While it fails the stored ones go on. */
#pragma once
#include "shell.h"

/* At takeover: when it is to be read next. */
void price_read_lead(struct controller *c);
/* Ask AWS Pricing now, when we lead. */
void price_read_start(struct controller *c);
/* In the tick: an answer becomes rows, and what waited for a price goes on. */
void price_read_tick(struct controller *c);
void price_read_cancel(struct controller *c);
