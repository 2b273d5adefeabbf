/* Stages of kind endpoint: which try is intended when, and from which model. What is decided is in
 * core/leader/endpoint_intent.h. */
#pragma once
#include "shell.h"

/* Writes the intents of stages that are to deploy, and notes what the tries of all have come to.
 * False: leadership lost. */
bool endpoint_intents_tick(struct controller *c);
