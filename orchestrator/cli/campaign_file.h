/* A campaign file as it was read, and a fault of it as people see it. */
#pragma once
#include "cli.h"
#include "common/buf.h"

struct campaign_file {
    const char *name;
    struct buf text; /* the caller frees it */
};
/* Reads a file, or stdin when the name is "-". False after an error message, with the exit status.
 */
bool campaign_file_read(const char *name, struct campaign_file *ret, int *ret_exit) MUST_CHECK;
/* Prints {line, column, pointer, message, hint} with the line of the file. */
void campaign_file_fault(const struct campaign_file *f, const json_t *e);
