/* The PostgreSQL type numbers that we send and read (src/include/catalog/pg_type.dat; they never
 * change). */
#pragma once
#define PG_BOOL         16u
#define PG_BYTEA        17u
#define PG_NAME         19u
#define PG_INT8         20u
#define PG_INT2         21u
#define PG_INT4         23u
#define PG_TEXT         25u
#define PG_FLOAT8       701u
#define PG_INT2_ARRAY   1005u
#define PG_INT4_ARRAY   1007u
#define PG_TEXT_ARRAY   1009u
#define PG_INT8_ARRAY   1016u
#define PG_FLOAT8_ARRAY 1022u
#define PG_VARCHAR      1043u
#define PG_TIMESTAMPTZ  1184u
#define PG_JSONB        3802u
#define PG_EPOCH_US     INT64_C(946684800000000) /* 2000-01-01, the epoch of its timestamps */
