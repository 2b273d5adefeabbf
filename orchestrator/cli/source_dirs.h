/* Folders of this machine that a campaign file names as source_dir: they are packed, the file that
 * is sent names them by digest, and the server gets each archive once. */
#pragma once
#include "campaign_file.h"

/* Packs every folder and puts its digest in its place. A file that cannot be parsed stays as it is:
 * the server says why. False after an error message, with the exit status. */
bool source_dirs_pack(struct campaign_file *f, int *ret_exit) MUST_CHECK;
/* Sends the archives that the server does not have. False after an error message. */
bool source_dirs_send(struct cli *cli, const struct campaign_file *f, int *ret_exit) MUST_CHECK;
