/* Memory used by the worker. */
#pragma once
#include "common/base.h"

/* Resident bytes of this process and all its descendants, shared pages counted once (sum of the
 * proportional set sizes). A process without permission counts with its resident set size. */
int64_t memory_of_all(void);
