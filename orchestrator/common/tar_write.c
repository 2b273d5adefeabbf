/* Writing tar: plain ustar headers; a pax header in front only for what ustar cannot express.
 * Format: POSIX.1-2017, pax, "ustar Interchange Format". */
#include "common/tar.h"

#define TAR_NAME_BYTES_MAX 100
#define TAR_SIZE_MAX       INT64_C(077777777777) /* eleven octal digits */

struct tar_header {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char chksum[8];
    char typeflag;
    char linkname[100];
    char magic[6];
    char version[2];
    char uname[32];
    char gname[32];
    char devmajor[8];
    char devminor[8];
    char prefix[155];
    char pad[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is one block");

static void put_octal(char *field, size_t size, int64_t v)
{
    for (size_t i = size - 1; i-- > 0;) {
        field[i] = (char)('0' + (v & 7));
        v >>= 3;
    }
    field[size - 1] = '\0';
}

struct owner { /* of a member */
    unsigned mode;
    const char *name; /* of user and group */
};

static void add_header(struct buf *out, struct str name, int64_t size, int64_t mtime_s, char type,
                       const struct owner *owner)
{
    size_t owner_n = strlen(owner->name) + 1;
    struct tar_header h = {.typeflag = type, .magic = "ustar", .version = {'0', '0'}};
    memcpy(h.name, name.p, MIN(name.n, sizeof h.name));
    put_octal(h.mode, sizeof h.mode, owner->mode);
    put_octal(h.uid, sizeof h.uid, 0);
    put_octal(h.gid, sizeof h.gid, 0);
    put_octal(h.size, sizeof h.size, MIN(size, TAR_SIZE_MAX));
    put_octal(h.mtime, sizeof h.mtime, MIN(MAX(mtime_s, INT64_C(0)), TAR_SIZE_MAX));
    ASSERT(owner_n <= sizeof h.uname);
    memcpy(h.uname, owner->name, owner_n);
    memcpy(h.gname, owner->name, owner_n);
    put_octal(h.devmajor, sizeof h.devmajor, 0);
    put_octal(h.devminor, sizeof h.devminor, 0);
    memset(h.chksum, ' ', sizeof h.chksum);
    unsigned sum = 0;
    uint8_t bytes[sizeof h];
    memcpy(bytes, &h, sizeof h);
    for (size_t i = 0; i < sizeof bytes; i++) {
        sum += bytes[i];
    }
    put_octal(h.chksum, sizeof h.chksum - 1, sum); /* six digits, NUL, and the space stays */
    buf_add(out, &h, sizeof h);
}

static void pad_block(struct buf *out, size_t n)
{
    static const char zeros[TAR_BLOCK];
    buf_add(out, zeros, (TAR_BLOCK - n % TAR_BLOCK) % TAR_BLOCK);
}

/* "LEN key=value\n", where LEN counts its own digits. */
static void add_pax_record(struct buf *out, const char *key, struct str value)
{
    size_t body = strlen(key) + value.n + 3; /* space, '=', newline */
    size_t len = body + 1;
    for (;;) {
        char digits[24];
        size_t want = body + (size_t)snprintf(digits, sizeof digits, "%zu", len);
        if (want == len) {
            break;
        }
        len = want;
    }
    buf_addf(out, "%zu %s=", len, key);
    buf_add_str(out, value);
    buf_add_char(out, '\n');
}

static void add_pax(struct buf *out, struct str name, int64_t size, int64_t mtime_s,
                    const char *owner_name)
{
    const struct owner owner = {0644, owner_name};
    CLEANUP(buf_done)
    struct buf records = BUF_INIT(name.n + 256);
    if (name.n > TAR_NAME_BYTES_MAX) {
        add_pax_record(&records, "path", name);
    }
    if (size > TAR_SIZE_MAX) {
        char text[24];
        (void)snprintf(text, sizeof text, "%lld", (long long)size);
        add_pax_record(&records, "size", str_of(text));
    }
    ASSERT(!records.overflow);
    if (records.n > 0) {
        add_header(out, STR("././@PaxHeader"), (int64_t)records.n, mtime_s, 'x', &owner);
        buf_add_str(out, buf_str(&records));
        pad_block(out, records.n);
    }
}

static void add_member(struct buf *out, struct str name, struct str data, int64_t mtime_s,
                       const struct owner *owner)
{
    ASSERT(name.n > 0 && memchr(name.p, '\0', name.n) == NULL);
    add_pax(out, name, (int64_t)data.n, mtime_s, owner->name);
    add_header(out, name, (int64_t)data.n, mtime_s, '0', owner);
    buf_add_str(out, data);
    pad_block(out, data.n);
}

void tar_add(struct buf *out, struct str name, struct str data, int64_t mtime_s)
{
    const struct owner owner = {0444, "bigdata"};
    add_member(out, name, data, mtime_s, &owner);
}

void tar_add_mode(struct buf *out, struct str name, struct str data, int64_t mtime_s, unsigned mode)
{
    const struct owner owner = {mode, ""};
    add_member(out, name, data, mtime_s, &owner);
}

void tar_end(struct buf *out)
{
    static const char zeros[2 * TAR_BLOCK];
    buf_add(out, zeros, sizeof zeros);
}
