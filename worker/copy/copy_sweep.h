/* Temporary files that killed runs left in the folders of the list's files. A file that can be gone
 * on with, because its state is in the output folder, keeps its own. Other parts' are left alone:
 * they may be gone on with. */
#pragma once
#include "file_list.h"
#include "io/sink.h"

/* state: the sink of the output folder. A failure is only logged. */
void copy_sweep(const struct file_list *l, struct sink *state);
