/* The dashboard's files, embedded in the program. */
#pragma once
#include "request.h"

/* Answer r with the asset its path names. False when there is none. */
bool asset_serve(struct api_req *r);
