/* The version of all four programs: the one place that says it. */
#pragma once
#define DROVER_VERSION "0.1.0"
