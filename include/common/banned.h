/* Using one of these functions is a compile error. Included by every .c file that formats or
 * parses. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#pragma GCC poison strcpy strcat sprintf vsprintf strtok gmtime localtime ctime atoi atol atoll gets
