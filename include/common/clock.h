/* The only module that reads a clock. orchestrator/core never includes it: it receives now_us. */
#pragma once
#include "time_text.h"

#define CLOCK_SKEW_S_MAX 300 /* AWS refuses what is signed by a clock that differs by more */

usec_t clock_wall_us(void); /* CLOCK_REALTIME, microseconds since the epoch */
int64_t clock_boot_us(
    void); /* CLOCK_BOOTTIME: continues during suspend and is never set back; leases use it */
int64_t clock_cpu_us(void);  /* CPU time of the calling thread */
int64_t clock_mono_us(void); /* CLOCK_MONOTONIC: timers use it */
