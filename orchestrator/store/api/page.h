/* A page of rows for a list of the API. */
#pragma once
#include "common/buf.h"
#include "core/model.h"

/* A page of rows: their JSON texts joined by commas, and the key of the last one. */
struct apidb_page {
    struct buf rows; /* caller: buf_done */
    int64_t n;
    int64_t last_id;
    usec_t last_us;
};
