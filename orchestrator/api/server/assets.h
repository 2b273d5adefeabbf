/* The dashboard's files, embedded in the program. */
#pragma once
#include "request.h"

/* Answers r with the asset its path names; false when there is none. */
bool asset_serve(struct api_req *r);
