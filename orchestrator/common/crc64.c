/* CRC-64/NVME, eight bytes at a time. A table of a CRC is linear: an entry is the XOR of those of
 * its index's bits, so eight constants make one table of 256, here by the compiler. Table k is of a
 * byte that k more bytes follow. The tests compare it with the definition, bit by bit. */
#include "common/hash.h"
#include <endian.h>

#define BIT(i, bit, value) (((i) >> (bit)&1) != 0 ? UINT64_C(value) : 0)
#define BITS_0(i)                                                                                  \
    (BIT(i, 0, 0x7F6EF0C830358979) ^ BIT(i, 1, 0xFEDDE190606B12F2) ^                               \
     BIT(i, 2, 0xC962E5739841B68F) ^ BIT(i, 3, 0xA61CECB46814FE75) ^                               \
     BIT(i, 4, 0x78E0FF3B88BE6F81) ^ BIT(i, 5, 0xF1C1FE77117CDF02) ^                               \
     BIT(i, 6, 0xD75ADABD7A6E2D6F) ^ BIT(i, 7, 0x9A6C9329AC4BC9B5))
#define BITS_1(i)                                                                                  \
    (BIT(i, 0, 0x8776A97D73BDDF69) ^ BIT(i, 1, 0x3A3474A9BFEC2DB9) ^                               \
     BIT(i, 2, 0x7468E9537FD85B72) ^ BIT(i, 3, 0xE8D1D2A6FFB0B6E4) ^                               \
     BIT(i, 4, 0xE57A831EA7F6FEA3) ^ BIT(i, 5, 0xFE2C206E177A6E2D) ^                               \
     BIT(i, 6, 0xC881668F76634F31) ^ BIT(i, 7, 0xA5DBEB4DB4510D09))
#define BITS_2(i)                                                                                  \
    (BIT(i, 0, 0xFF6E4E1F4E4038BE) ^ BIT(i, 1, 0xCA05BA6DC417E217) ^                               \
     BIT(i, 2, 0xA0D25288D0B85745) ^ BIT(i, 3, 0x757D8342F9E73DE1) ^                               \
     BIT(i, 4, 0xEAFB0685F3CE7BC2) ^ BIT(i, 5, 0xE12F2B58BF0B64EF) ^                               \
     BIT(i, 6, 0xF68770E226815AB5) ^ BIT(i, 7, 0xD9D7C79715952601))
#define BITS_3(i)                                                                                  \
    (BIT(i, 0, 0x8211147CBAF96306) ^ BIT(i, 1, 0x30FB0EAA2D655567) ^                               \
     BIT(i, 2, 0x61F61D545ACAAACE) ^ BIT(i, 3, 0xC3EC3AA8B595559C) ^                               \
     BIT(i, 4, 0xB301530233BD3853) ^ BIT(i, 5, 0x52DB80573FEDE3CD) ^                               \
     BIT(i, 6, 0xA5B700AE7FDBC79A) ^ BIT(i, 7, 0x7FB7270FA7201C5F))
#define BITS_4(i)                                                                                  \
    (BIT(i, 0, 0x373D15F784905D1E) ^ BIT(i, 1, 0x6E7A2BEF0920BA3C) ^                               \
     BIT(i, 2, 0xDCF457DE12417478) ^ BIT(i, 3, 0x8D3189EF7C157B9B) ^                               \
     BIT(i, 4, 0x2EBA358DA0BD645D) ^ BIT(i, 5, 0x5D746B1B417AC8BA) ^                               \
     BIT(i, 6, 0xBAE8D63682F59174) ^ BIT(i, 7, 0x41088A3E5D7CB183))
#define BITS_5(i)                                                                                  \
    (BIT(i, 0, 0xE9742A79EF04A5D4) ^ BIT(i, 1, 0xE63172A0869ED8C3) ^                               \
     BIT(i, 2, 0xF8BBC31255AA22ED) ^ BIT(i, 3, 0xC5AEA077F3C3D6B1) ^                               \
     BIT(i, 4, 0xBF8466BCBF103E09) ^ BIT(i, 5, 0x4BD1EB2A26B7EF79) ^                               \
     BIT(i, 6, 0x97A3D6544D6FDEF2) ^ BIT(i, 7, 0x1B9E8AFBC2482E8F))
#define BITS_6(i)                                                                                  \
    (BIT(i, 0, 0xFC5D27F6BF353971) ^ BIT(i, 1, 0xCC6369BE26FDE189) ^                               \
     BIT(i, 2, 0xAC1FF52F156C5079) ^ BIT(i, 3, 0x6CE6CC0D724F3399) ^                               \
     BIT(i, 4, 0xD9CD981AE49E6732) ^ BIT(i, 5, 0x8742166691AB5D0F) ^                               \
     BIT(i, 6, 0x3A5D0A9E7BC12975) ^ BIT(i, 7, 0x74BA153CF78252EA))
#define BITS_7(i)                                                                                  \
    (BIT(i, 0, 0x21E9761E252621AC) ^ BIT(i, 1, 0x43D2EC3C4A4C4358) ^                               \
     BIT(i, 2, 0x87A5D878949886B0) ^ BIT(i, 3, 0x3B9296A271A69E0B) ^                               \
     BIT(i, 4, 0x77252D44E34D3C16) ^ BIT(i, 5, 0xEE4A5A89C69A782C) ^                               \
     BIT(i, 6, 0xE84D9340D5A36333) ^ BIT(i, 7, 0xE44200D2F3D1550D))
#define ROW_4(f, i)  f(i), f((i) + 1), f((i) + 2), f((i) + 3)
#define ROW_16(f, i) ROW_4(f, i), ROW_4(f, (i) + 4), ROW_4(f, (i) + 8), ROW_4(f, (i) + 12)
#define ROW_64(f, i) ROW_16(f, i), ROW_16(f, (i) + 16), ROW_16(f, (i) + 32), ROW_16(f, (i) + 48)
#define TABLE(f)                                                                                   \
    {                                                                                              \
        ROW_64(f, 0), ROW_64(f, 64), ROW_64(f, 128), ROW_64(f, 192)                                \
    }

static const uint64_t table[8][256] = {TABLE(BITS_0), TABLE(BITS_1), TABLE(BITS_2), TABLE(BITS_3),
                                       TABLE(BITS_4), TABLE(BITS_5), TABLE(BITS_6), TABLE(BITS_7)};

uint64_t hash_crc64nvme(uint64_t before, const void *p, size_t n)
{
    const uint8_t *at = p;
    uint64_t crc = ~before;
    for (; n >= 8; n -= 8, at += 8) {
        uint64_t eight;
        memcpy(&eight, at, sizeof eight);
        crc ^= le64toh(eight);
        crc = table[7][crc & 0xff] ^ table[6][crc >> 8 & 0xff] ^ table[5][crc >> 16 & 0xff] ^
              table[4][crc >> 24 & 0xff] ^ table[3][crc >> 32 & 0xff] ^ table[2][crc >> 40 & 0xff] ^
              table[1][crc >> 48 & 0xff] ^ table[0][crc >> 56];
    }
    for (; n > 0; n--, at++) {
        crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xff];
    }
    return ~crc;
}
