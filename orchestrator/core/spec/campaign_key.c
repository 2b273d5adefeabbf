/* See campaign_key.h. */
#include "campaign_key.h"
#include "spec.h"

#define OF_JOBS     (1u << SPEC_KIND_JOBS)
#define OF_ENDPOINT (1u << SPEC_KIND_ENDPOINT)
#define OF_LUSTRE   (1u << SPEC_KIND_LUSTRE)
#define OF_BOTH     (OF_JOBS | OF_ENDPOINT)
#define OF_KEPT     (OF_ENDPOINT | OF_LUSTRE)
#define OF_SIZED    (OF_JOBS | OF_LUSTRE)
#define OF_ALL      (OF_BOTH | OF_LUSTRE)
#define LATER       SPEC_KEY_LATER

/* Forms of values that many keys share. */
#define JSON_(...) #__VA_ARGS__
#define JSON(...)  JSON_(__VA_ARGS__)
#define REF(name)                                                                                  \
    {                                                                                              \
        "$ref" : name                                                                              \
    }
#define WORDS(...)                                                                                 \
    {                                                                                              \
        "type" : "string", "enum" : [__VA_ARGS__]                                                  \
    }
#define INT(from, to)                                                                              \
    {                                                                                              \
        "anyOf" : [                                                                                \
            {"type" : "integer", "minimum" : from, "maximum" : to}, {"$ref" : "FileVariable"}      \
        ]                                                                                          \
    }
#define OFF_OR(from, to)                                                                           \
    {                                                                                              \
        "anyOf"                                                                                    \
            : [ {"type" : "integer", "minimum" : from, "maximum" : to}, {"$ref" : "FileSwitch"} ]  \
    }

static const struct spec_key table[] = {
#define M(map, place, text)
#define K(map, key, of, initial, limit, text, ...)                                                 \
    {SPEC_MAP_##map, key, of, initial, limit, text, JSON(__VA_ARGS__)},
#include "campaign_key.def"
#undef M
#undef K
};

const struct spec_key *spec_keys(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(table);
    return table;
}

const struct spec_key *spec_keys_of(enum spec_map map, size_t *ret_n)
{
    size_t first = 0, n = 0;
    while (first < ARRAY_LEN(table) && table[first].map != map) {
        first++;
    }
    while (first + n < ARRAY_LEN(table) && table[first + n].map == map) {
        n++;
    }
    ASSERT(n > 0);
    *ret_n = n;
    return &table[first];
}

const char *spec_map_name(enum spec_map map)
{
    static const char *const names[] = {
#define M(map, place, text) #map,
#define K(map, key, of, initial, limit, text, ...)
#include "campaign_key.def"
#undef M
#undef K
    };
    ASSERT((size_t)map < ARRAY_LEN(names));
    return names[map];
}
