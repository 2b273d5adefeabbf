/* Progress of a part that several hosts share: host 0 writes _progress.json for all of them, the
 * others _progress-1.json and so on, which it reads. Until another host has reported for the same
 * attempt, its rows count as not begun. */
#pragma once
#include "progress_report.h"

#define PROGRESS_HOSTS_KEY_BYTES 32
/* The name of a host's object. */
void progress_hosts_key(int host, char out[static PROGRESS_HOSTS_KEY_BYTES]);
/* True for the name of such an object of a host other than 0. */
bool progress_hosts_is_key(const char *name);
/* The progress of all hosts: that of c's host 0 and what the others say. Fills *ret and changes *v
 * from one host's view to all hosts'. An object that cannot be read is skipped. */
void progress_hosts_sum(const struct progress_report_config *c, struct sink *sink,
                        struct progress *ret, struct progress_report_view *v);
