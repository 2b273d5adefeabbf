/* Waits for the server: time-outs and polling. */
#pragma once
#include "cli.h"

/* --timeout in us; -1: no limit. False after an error message */
bool timeout_read(const struct cli *cli, int64_t *ret_us);
/* GET path every 300 ms until done(answer, arg). Returns the exit status. */
int wait_for(struct cli *cli, const char *path, bool (*done)(const json_t *v, const char *arg),
             const char *arg);
