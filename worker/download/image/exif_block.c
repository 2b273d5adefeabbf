/* As exifread walks: the chain of folders from the first, the EXIF folder from the first one's
 * pointer, GPS and Interoperability where an entry points to them. Bytes beyond the data read as 0,
 * so an entry of a cut file keeps its name. */
#include "exif_block.h"
#include "common/json.h"

#define FOLDERS_MAX        16   /* in the chain */
#define ENTRIES_MAX        4096 /* looked at in one block, so that pointers into pointers end */
#define NUMBERS_MAX        1000 /* a list this long has no value in exifread */
#define NUMBERS_SHOWN      20   /* of a list longer than NUMBERS_SHOWN_FULL */
#define NUMBERS_SHOWN_FULL 50
#define ENTRY_BYTES        12u

static const uint8_t type_bytes[EXIF_TYPE_COUNT] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4};

static const struct tag_name {
    enum exif_names names;
    uint16_t tag;
    const char *name;
} tag_names[] = {
#define EXIF_TAG(names, tag, name) {names, tag, name},
#include "exif_tags.def"
#undef EXIF_TAG
};

static bool is_string(uint16_t tag)
{
    static const uint16_t strings[] = {
#define EXIF_STRING(tag) tag,
#include "exif_tags.def"
#undef EXIF_STRING
    };
    for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
        if (strings[i] == tag) {
            return true;
        }
    }
    return false;
}

/* Maker notes, user comments and XMP: exifread leaves them out when no details are asked for. */
static bool is_left_out(uint16_t tag)
{
    return tag == 0x02BC || tag == 0x927C || tag == 0x9286;
}

static uint64_t number_at(const struct exif_block *b, size_t at, size_t n)
{
    uint64_t v = 0;
    if (at > b->data.n || n > b->data.n - at) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = (uint8_t)b->data.p[at + (b->little ? n - 1 - i : i)];
        v = v << 8 | byte;
    }
    return v;
}

static const char *tag_name(enum exif_names names, uint16_t tag)
{
    for (size_t i = 0; i < ARRAY_LEN(tag_names); i++) {
        if (tag_names[i].names == names && tag_names[i].tag == tag) {
            return tag_names[i].name;
        }
    }
    return NULL;
}

/* A place for the entry of that name: its earlier one, or a new one; NULL when all are taken. */
static struct exif_entry *place(struct exif_block *b, const char *name)
{
    for (int i = 0; i < b->n; i++) {
        if (strcmp(b->tags[i].name, name) == 0) {
            return &b->tags[i];
        }
    }
    return b->n < EXIF_TAGS_MAX ? &b->tags[b->n++] : NULL;
}

/* False when the entry has no name. */
static bool read_entry(struct exif_block *b, size_t at, const char *folder, enum exif_names names,
                       struct exif_entry *ret)
{
    uint16_t tag = (uint16_t)number_at(b, at, 2);
    uint64_t type = number_at(b, at + 2, 2);
    if (type < EXIF_BYTE || type >= EXIF_TYPE_COUNT || is_left_out(tag)) {
        return false;
    }
    *ret = (struct exif_entry){.is_image = strcmp(folder, "Image") == 0,
                               .names = names,
                               .tag = tag,
                               .type = (enum exif_type)type,
                               .count = (uint32_t)number_at(b, at + 4, 4),
                               .at = at + 8};
    if ((uint64_t)ret->count * type_bytes[type] > 4) {
        ret->at = number_at(b, at + 8, 4);
    }
    const char *name = tag_name(names, tag);
    int n = name != NULL ? snprintf(ret->name, sizeof ret->name, "%s %s", folder, name)
                         : snprintf(ret->name, sizeof ret->name, "%s Tag 0x%04X", folder, tag);
    ASSERT(n > 0 && (size_t)n < sizeof ret->name);
    return true;
}

static void read_folder(struct exif_block *b, size_t at, const char *folder, enum exif_names names,
                        int *left)
{
    uint64_t n = number_at(b, at, 2);
    for (uint64_t i = 0; i < n && at + 2 < b->data.n; i++, at += ENTRY_BYTES) {
        struct exif_entry e;
        int64_t sub;
        if ((*left)-- <= 0) {
            return;
        }
        if (!read_entry(b, at + 2, folder, names, &e)) {
            continue;
        }
        /* The folders below know no such tags, so this goes one level down and no further. */
        if (names == EXIF_MAIN && e.tag == 0x8825 && exif_block_number(b, &e, 0, &sub)) {
            read_folder(b, (size_t)sub, "GPS", EXIF_GPS, left);
        } else if (names == EXIF_MAIN && e.tag == 0xA005 && exif_block_number(b, &e, 0, &sub)) {
            read_folder(b, (size_t)sub, "Interoperability", EXIF_INTEROP, left);
        }
        struct exif_entry *to = place(b, e.name);
        if (to != NULL) {
            *to = e;
        }
    }
}

static size_t next_folder(const struct exif_block *b, size_t at)
{
    return number_at(b, at + 2 + ENTRY_BYTES * number_at(b, at, 2), 4);
}

static void read_chain(struct exif_block *b, int *left)
{
    size_t seen[FOLDERS_MAX];
    size_t at = number_at(b, 4, 4);
    for (int n = 0; at != 0 && n < FOLDERS_MAX; n++) {
        char folder[16] = "Image";
        for (int i = 0; i < n; i++) {
            if (seen[i] == at) {
                return;
            }
        }
        seen[n] = at;
        if (n == 1) {
            (void)snprintf(folder, sizeof folder, "Thumbnail");
        } else if (n > 1) {
            (void)snprintf(folder, sizeof folder, "IFD %d", n);
        }
        read_folder(b, at, folder, EXIF_MAIN, left);
        at = next_folder(b, at);
    }
}

void exif_block_read(struct str data, struct exif_block *ret)
{
    int left = ENTRIES_MAX;
    ret->data = data;
    ret->n = 0;
    ret->little = data.n > 0 && data.p[0] == 'I';
    if (!str_starts(data, "II") && !str_starts(data, "MM")) {
        return;
    }
    read_chain(ret, &left);
    for (int i = 0; i < ret->n; i++) {
        int64_t at;
        const struct exif_entry *e = &ret->tags[i];
        if (e->is_image && e->tag == 0x8769 && exif_block_number(ret, e, 0, &at)) {
            read_folder(ret, (size_t)at, "EXIF", EXIF_MAIN, &left);
            break;
        }
    }
}

bool exif_block_number(const struct exif_block *b, const struct exif_entry *e, uint32_t i,
                       int64_t *ret)
{
    size_t n = type_bytes[e->type];
    uint64_t v = number_at(b, e->at + n * i, n);
    switch (e->type) {
    case EXIF_BYTE:
    case EXIF_SHORT:
    case EXIF_LONG:
    case EXIF_IFD:
    case EXIF_UNDEFINED:
        *ret = (int64_t)v;
        break;
    case EXIF_SIGNED_BYTE:
        *ret = (int64_t)(v ^ 0x80) - 0x80; /* v is one byte */
        break;
    case EXIF_SIGNED_SHORT:
        *ret = (int16_t)v;
        break;
    case EXIF_SIGNED_LONG:
        *ret = (int32_t)v;
        break;
    case EXIF_ASCII:
    case EXIF_RATIO:
    case EXIF_SIGNED_RATIO:
    case EXIF_FLOAT:
    case EXIF_DOUBLE:
    case EXIF_TYPE_COUNT:
        return false;
    }
    return i < e->count;
}

/* Reduced, with the sign above; 5/0 stays. */
static void add_ratio(const struct exif_block *b, size_t at, bool is_signed, struct buf *out)
{
    uint64_t raw_above = number_at(b, at, 4);
    uint64_t raw_below = number_at(b, at + 4, 4);
    int64_t above = is_signed ? (int32_t)raw_above : (int64_t)raw_above;
    int64_t below = is_signed ? (int32_t)raw_below : (int64_t)raw_below;
    int64_t x = above < 0 ? -above : above;
    int64_t y = below < 0 ? -below : below;
    while (y != 0) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    if (below != 0) {
        above /= below < 0 ? -x : x;
        below /= below < 0 ? -x : x;
    }
    buf_addf(out, below == 1 ? "%lld" : "%lld/%lld", (long long)above, (long long)below);
}

static void add_one(const struct exif_block *b, const struct exif_entry *e, uint32_t i,
                    struct buf *out)
{
    ASSERT(e->type < EXIF_TYPE_COUNT);
    size_t at = e->at + (size_t)type_bytes[e->type] * i;
    int64_t v = 0;
    if (e->type == EXIF_RATIO || e->type == EXIF_SIGNED_RATIO) {
        add_ratio(b, at, e->type == EXIF_SIGNED_RATIO, out);
    } else if (e->type == EXIF_FLOAT) {
        uint32_t bits = (uint32_t)number_at(b, at, 4);
        float f;
        memcpy(&f, &bits, sizeof f);
        json_python_float(out, (double)f);
    } else if (e->type == EXIF_DOUBLE) {
        uint64_t bits = number_at(b, at, 8);
        double d;
        memcpy(&d, &bits, sizeof d);
        json_python_float(out, d);
    } else if (exif_block_number(b, e, i, &v)) {
        buf_addf(out, "%lld", (long long)v);
    }
}

/* Texts of cameras are in any encoding: what is not UTF-8 is shown as '?'. */
static void add_ascii(const struct exif_block *b, const struct exif_entry *e, struct buf *out)
{
    if (e->at >= b->data.n) {
        return;
    }
    struct str s = {b->data.p + e->at, MIN((size_t)e->count, b->data.n - e->at)};
    s.n = strnlen(s.p, MIN(s.n, (size_t)EXIF_VALUE_BYTES_MAX));
    bool good = str_is_utf8(s);
    for (size_t i = 0; i < s.n; i++) {
        buf_add_char(out, good || (uint8_t)s.p[i] < 0x80 ? s.p[i] : '?');
    }
}

/* Bytes that are a text: what can be printed of them as Latin-1, or else their numbers. */
static void add_string(const struct exif_block *b, const struct exif_entry *e, struct buf *out)
{
    int64_t v;
    size_t before = out->n;
    bool nothing = true;
    for (uint32_t i = 0; exif_block_number(b, e, i, &v); i++) {
        nothing = nothing && v == 0;
        if (v >= 0x80 && v < 0x100) {
            buf_add_char(out, (char)(0xC0 | v >> 6));
            buf_add_char(out, (char)(0x80 | (v & 0x3F)));
        } else if (v >= 0x20 && v < 0x80) {
            buf_add_char(out, (char)v);
        }
    }
    for (uint32_t i = 0; out->n == before && !nothing && i < e->count; i++) {
        add_one(b, e, i, out);
    }
}

void exif_block_value(const struct exif_block *b, const struct exif_entry *e, struct buf *out)
{
    if (e->type == EXIF_ASCII) {
        add_ascii(b, e, out);
        return;
    }
    uint32_t count = e->count < NUMBERS_MAX ? e->count : 0;
    if (e->names == EXIF_MAIN && is_string(e->tag)) {
        struct exif_entry bounded = *e;
        bounded.count = count;
        add_string(b, &bounded, out);
        return;
    }
    uint32_t shown = count > NUMBERS_SHOWN_FULL ? NUMBERS_SHOWN : count;
    if (e->count == 1) {
        add_one(b, e, 0, out);
        return;
    }
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < shown; i++) {
        buf_add_cstr(out, i > 0 ? ", " : "");
        add_one(b, e, i, out);
    }
    buf_add_cstr(out, shown < count ? ", ... ]" : "]");
}
