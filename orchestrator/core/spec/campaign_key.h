/* The keys of a campaign file by the maps they stand in: campaign_key.def as a table. */
#pragma once
#include <stddef.h>

enum spec_map {
#define M(map, place, text) SPEC_MAP_##map,
#define K(map, key, of, initial, limit, text, ...)
#include "core/spec/campaign_key.def"
#undef M
#undef K
    SPEC_MAP_COUNT
};

/* The kinds of stages that have a key: bits of enum spec_kind. Keys of other maps are of all. */
#define SPEC_KEY_LATER 0u
#define SPEC_KEYS_MAX  96 /* of one map */

struct spec_key {
    enum spec_map map;
    const char *name;
    unsigned of;
    const char *initial; /* the default, as a person writes it; "": none */
    const char *limit;   /* what the schema does not say; "": nothing */
    const char *text;    /* of a key of a later version: why; or NULL */
    const char *schema;  /* JSON Schema of the value; references without their prefix */
};

/* All keys, those of one map together and in the order of the enum. */
const struct spec_key *spec_keys(size_t *ret_n);
/* Those of one map. */
const struct spec_key *spec_keys_of(enum spec_map map, size_t *ret_n);
const char *spec_map_name(enum spec_map map);
