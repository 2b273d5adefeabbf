/* Event streams: one thread reads the table; all streams are suspended between events. */
#pragma once
#include "common/err.h"

struct stream_hub;
/* Start the reading thread; the caller owns *ret. ERR_INTERNAL. */
bool stream_hub_new(const char *conninfo, struct stream_hub **ret, struct err *err) MUST_CHECK;
void stream_hub_stop(struct stream_hub *h); /* end all streams; NULL ignored */
void stream_hub_free(struct stream_hub *h);
