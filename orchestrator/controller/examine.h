/* The log of a failed job whose FailureReason tells nothing is read once, before its task's fate is
 * decided; its slots and money are free by then. */
#pragma once
#include "shell.h"

/* For ACT_VERIFY of an attempt with failed_as: asks, or gives up what does not answer in time. */
void examine(struct live_attempt *a);
