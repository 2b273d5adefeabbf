/* Pauses, and the signals that end them. */
#pragma once
#include <stdbool.h>

/* Block SIGINT and SIGTERM; interrupted() is true once one is pending. */
void interrupt_catch(void);
bool interrupted(void);
/* Nothing more can be written: the reader of the pipe has ended (SIGPIPE is ignored) or the disk is
 * full. What follows something asks before it waits; main() says which of the two it is. */
bool stdout_gone(void);
void pause_ms(int ms);
