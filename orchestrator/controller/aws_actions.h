/* Asks the protocol of every due attempt what to do, and does it. */
#pragma once
#include "shell.h"

void aws_actions_tick(struct controller *c);
/* Writes what answers said that is no fact for the protocol: a name that stands for another intent
 * of ours. May lose the leadership. */
void aws_actions_record(struct controller *c);
