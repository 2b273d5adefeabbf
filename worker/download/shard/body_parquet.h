/* The body of output_format parquet: the .parquet itself, with a column of the pictures. Rows are
 * in order of completion, as img2dataset writes them, and leave memory by row groups. */
#pragma once

#define BODY_PARQUET_GROUP_ROWS  100               /* as img2dataset */
#define BODY_PARQUET_GROUP_BYTES ((size_t)2 << 20) /* of pictures; ends a group earlier */
