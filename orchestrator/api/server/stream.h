/* Event streams: one thread reads the table; all streams are suspended between events. */
#pragma once
#include "common/err.h"

struct stream_hub;
/* Connections that streams leave to others. */
#define STREAMS_SPARED 24
struct api_config;
/* Start the reading thread; the caller owns *ret, cfg is borrowed. ERR_INTERNAL. */
bool stream_hub_new(const struct api_config *cfg, int streams_max, struct stream_hub **ret,
                    struct err *err) MUST_CHECK;
void stream_hub_stop(struct stream_hub *h); /* end all streams; NULL ignored */
void stream_hub_free(struct stream_hub *h);
