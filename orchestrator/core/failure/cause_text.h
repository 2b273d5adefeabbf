/* What a text says of why something failed: by the words of services, libraries and systems
 * (cause_platform.def, cause_program.def), then by what it is: an errno, an HTTP status, a signal,
 * an exception, an exit code. Pure, table-driven, bounded. */
#pragma once
#include "common/str.h"
#include "core/model.h"

/* How the cause is known, the surest first. Words are also an errno, a service's code, an HTTP
 * status and a named signal; an exception is the name of one alone, a subject what a complaint is
 * about, an exit code that alone. */
enum cause_text_by {
    CAUSE_BY_WORDS,
    CAUSE_BY_EXCEPTION,
    CAUSE_BY_SUBJECT,
    CAUSE_BY_EXIT,
    CAUSE_BY_NOTHING
};
struct cause_text {
    enum cause cause;
    enum cause_text_by by;
    bool killed; /* its exit code says SIGKILL or SIGTERM */
};
/* At most the first 4096 characters are read. */
struct cause_text cause_of_text(struct str text);
