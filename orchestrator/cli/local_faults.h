/* The faults of a campaign file that need no server: the parser is drover's, too. */
#pragma once
#include "campaign_file.h"
#include "core/spec/spec_parse.h"

/* The settings of droverd that add to a file, read from the same variables. A caller may
 * work in another region than droverd: which images are of its own only droverd knows. */
struct spec_defaults local_defaults(void);
/* The same with something in place of what is not set: droverd's own is not known here, so that it
 * is missing is no fault. */
struct spec_defaults local_defaults_or_any(void);
/* Print them all, then what to do, like "drover validate x.yaml". Returns the exit status. */
int local_faults_print(const struct campaign_file *f, const struct faults *faults,
                       const char *again);
/* Print what the parser finds. Returns the exit status, EXIT_OK when there is nothing. */
int local_faults_check(const struct campaign_file *f);
