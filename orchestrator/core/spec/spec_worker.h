/* The commands of drover-worker that a stage can run. */
#pragma once
#include "spec.h"

/* The command's name, "download"; "" for WORKER_NONE. */
const char *spec_worker_verb(enum spec_worker w);
