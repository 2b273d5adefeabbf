/* Wait for the server: time-outs, interrupts, polling. */
#pragma once
#include "cli.h"

bool timeout_read(const struct cli *cli, int64_t *ret_us); /* -1: none; says what is wrong */
bool interrupted(void);
void interrupt_catch(void);
void pause_ms(int ms);
/* GET path every 300 ms until done(answer, arg); the exit status. */
int wait_for(struct cli *cli, const char *path, bool (*done)(const json_t *v, const char *arg),
             const char *arg);
