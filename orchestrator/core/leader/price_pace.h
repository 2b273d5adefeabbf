/* When the list prices of AWS Pricing are read. Pure; all in microseconds from now. */
#pragma once
#include "common/units.h"

/* A new leader's first look, when the stored list is age_us old (-1: there is none). */
int64_t price_pace_first_us(int64_t every_us, int64_t age_us);
/* After a reading that failed. *failures: in a row, counted here. */
int64_t price_pace_failed_us(int64_t every_us, int *failures);
/* After one whose list the database did not take. */
int64_t price_pace_unwritten_us(void);
