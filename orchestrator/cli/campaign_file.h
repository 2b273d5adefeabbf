/* A campaign file as it was read, and a fault of it as people see it. */
#pragma once
#include "cli.h"
#include "common/buf.h"
#include "source_pack.h"

#define SOURCES_MAX 64 /* folders of sources in one file */

struct campaign_change { /* what is sent in place of a folder's name */
    int line, column;    /* of the name */
    size_t at, was_n;    /* its bytes in text */
    char now[SHA256_HEX_N + 16];
};
struct campaign_file {
    const char *name;
    struct buf text; /* as it was read */
    struct buf sent; /* the same with digests in place of folders; empty: there are none */
    struct source_pack sources[SOURCES_MAX];
    size_t sources_n;
    struct campaign_change changes[SOURCES_MAX]; /* later ones first */
    size_t changes_n;
};
void campaign_file_done(struct campaign_file *f);
/* What is sent of it. */
struct str campaign_file_sent(const struct campaign_file *f);
/* Reads a file, or stdin when the name is "-". False after an error message, with the exit status.
 * The caller calls campaign_file_done in any case. */
bool campaign_file_read(const char *name, struct campaign_file *ret, int *ret_exit) MUST_CHECK;
/* Prints {line, column, pointer, message, hint} with the line of the file. The position is one of
 * what is sent. */
void campaign_file_fault(const struct campaign_file *f, const json_t *e);
