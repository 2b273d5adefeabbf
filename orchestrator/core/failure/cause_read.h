/* What cause_text.c puts together: readers of one kind of sign each, UNKNOWN when there is none. */
#pragma once
#include "cause_fold.h"

/* cause_number.c: "[Errno 28]" and its message, "curl: (28)", "503 Server Error", "exited on signal
 * 9", "Killed" alone in its line. */
enum cause cause_by_errno(const struct folded *f);
enum cause cause_by_library_number(const struct folded *f);
enum cause cause_by_sqlstate(const struct folded *f);
enum cause cause_by_http_status(const struct folded *f);
enum cause cause_by_signal(const struct folded *f);
/* The number after the last words that announce an exit code; false when there are none. */
bool cause_find_exit_code(const struct folded *f, int *ret);
/* The cause of a bare exit code. The sysexits codes count only when the program wrote nothing. */
enum cause cause_of_exit(int code, bool silent);
/* cause_pull.c: why an image could not be pulled. */
enum cause cause_by_pull(const struct folded *f);
/* cause_name.c: a service's error code or an exception by the parts of its name. */
enum cause cause_by_name(const struct folded *f);
/* A client of a service tells what it answered. */
bool cause_is_refusal(const struct folded *f);
/* An exception that is no frame, or a traceback. */
bool cause_has_exception(const struct folded *f);
/* cause_missing.c: a file of the data that is not there; whether the text names a file of data. */
enum cause cause_by_missing_file(const struct folded *f);
bool cause_names_data_file(const struct folded *f);
