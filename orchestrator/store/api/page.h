/* A page of rows of an API list. */
#pragma once
#include "common/buf.h"
#include "core/model.h"

/* The rows as JSON texts joined by commas, and the key of the last one. */
struct apidb_page {
    struct buf rows; /* the caller calls buf_done */
    int64_t n;
    int64_t last_id;
    usec_t last_us;
};
