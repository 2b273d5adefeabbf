/* C functions that have a better one here; using one does not compile. The Makefile includes this
 * header into every file. Use instead: buf.h to build text, parse_i64 for numbers, clock.h for
 * times. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#pragma GCC poison strcpy strcat sprintf vsprintf strtok gmtime localtime ctime atoi atol atoll gets
