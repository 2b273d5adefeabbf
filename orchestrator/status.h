/* Shared by the loop thread, which writes it, and the API, which shows it. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What the loop thread says about itself for /readyz; it outlives the server. */
struct api_status {
    atomic_bool leading;
    atomic_bool db_ok;  /* the loop's own connection works */
    atomic_bool aws_ok; /* the last call to AWS was answered */
    _Atomic int64_t lease_epoch;
    _Atomic int64_t account;         /* of AWS, as a number; 0: not asked yet */
    _Atomic int64_t creates_per_s_u; /* micro-Creates a second the controller sends; 0: not known */
};
