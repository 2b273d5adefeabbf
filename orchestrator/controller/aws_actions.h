/* Asks the protocol of every due attempt what to do, and does it. */
#pragma once
#include "shell.h"

void aws_actions_tick(struct controller *c);
