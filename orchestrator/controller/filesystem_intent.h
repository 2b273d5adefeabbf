/* Intents of file systems: stages of kind lustre whose time has come (core/leader/
 * filesystem_intent.h). */
#pragma once
#include "shell.h"

/* False: leadership lost. */
bool filesystem_intents_tick(struct controller *c);
