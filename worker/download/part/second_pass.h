/* The command of a second pass over an output: retry_failed with the settings the output was made
 * with, into a folder of its own. */
#pragma once
#include "options.h"

#define SECOND_PASS_BYTES_MAX (256u << 10)

/* Append the command for a shell, with line breaks (backslashes) so that it fits in `columns` where
 * words allow; 0: on one line. False: there can be no second pass (output_format dummy keeps no
 * rows). program: argv[0]. */
bool second_pass_command(const struct download_options *o, const char *program, size_t columns,
                         struct buf *out) MUST_CHECK;
/* True for the text of a failure to download that another attempt would not change: the picture is
 * gone (404, 410) or forbidden, or there is no valid URL. */
bool second_pass_is_final(const char *error_message);
/* Append the same as a condition of SQL on the column of error messages. */
void second_pass_final_sql(struct buf *sql, const char *column);
/* The folder or prefix of a second pass: the output's name with -retry, -retry2, ... The caller
 * frees it. */
char *second_pass_folder(const char *output);
/* True when the second pass cannot check verify_hash: the output lacks the column of hashes. */
bool second_pass_drops_hash(const struct download_options *o);
