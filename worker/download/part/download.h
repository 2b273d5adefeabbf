/* `drover-worker download`: a parquet part in, webdataset shards, sidecars, stats and a manifest
 * out. */
#pragma once
#include "common/err.h"

/* argv[argc]: flags behind the verb. Prints, writes the failure file, returns the exit status. */
int download_main(int argc, char *const *argv);
