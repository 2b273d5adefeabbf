/* Pauses, and the signals that end them. */
#pragma once
#include <stdbool.h>

/* Block SIGINT and SIGTERM; interrupted() is true once one is pending. */
void interrupt_catch(void);
bool interrupted(void);
void pause_ms(int ms);
