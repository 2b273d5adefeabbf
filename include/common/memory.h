/* What libraries do without memory. */
#pragma once
#include "base.h"

/* From here on jansson, curl and OpenSSL take their memory as xmalloc does: without any the process
 * ends and is started again. Otherwise an allocation that fails inside of them is taken for bad
 * data, a header is missing from a request, a digest is impossible. Called once, first in main. */
void memory_of_libraries(void);
