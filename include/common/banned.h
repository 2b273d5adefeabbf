/* Calls that have a better one here; force-included by nobody, included by every .c through base
 * users who format or parse. Using one is a compile error. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#pragma GCC poison strcpy strcat sprintf vsprintf strtok gmtime localtime ctime atoi atol atoll gets
