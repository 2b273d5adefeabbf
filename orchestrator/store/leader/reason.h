/* How much of a reason is stored; more is cut off. */
#pragma once

#define REASON_CHARS_MAX          1024
#define RESOURCE_REASON_CHARS_MAX 500 /* of an endpoint or a file system */
