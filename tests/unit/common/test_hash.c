/* Aim: digests are the published ones, in one go or in pieces.
 * Method: vectors of FIPS 180-4, RFC 4231, RFC 1321 and the check values of the CRCs. */
#include "common/hash.h"
#include "common/rng.h"
#include "tests/unit/unit.h"

static void check_hex(const uint8_t *p, size_t n, const char *want)
{
    char hex[65];
    str_hex(p, n, hex);
    assert_string_equal(hex, want);
}

static void test_hash__sha256(void **state)
{
    (void)state;
    char hex[SHA256_HEX_N];
    hash_sha256_hex("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash_sha256_hex(NULL, 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void test_hash__sha256_in_pieces_is_the_same(void **state)
{
    (void)state;
    uint8_t text[1000];
    uint8_t whole[32];
    memset(text, 'x', sizeof text);
    hash_sha256(text, sizeof text, whole);
    for (size_t step = 1; step < 200; step += 7) {
        struct sha256 h;
        uint8_t got[32];
        sha256_init(&h);
        for (size_t at = 0; at < sizeof text; at += step) {
            sha256_add(&h, text + at, MIN(step, sizeof text - at));
        }
        sha256_add(&h, NULL, 0);
        sha256_end(&h, got);
        assert_memory_equal(got, whole, 32);
        assert_null(h.ctx);
        sha256_done(&h);
    }
    struct sha256 given_up;
    sha256_init(&given_up);
    sha256_done(&given_up);
    sha256_done(&given_up);
}

static void test_hash__hmac_of_rfc_4231(void **state)
{
    (void)state;
    uint8_t out[32];
    uint8_t key[131];
    memset(key, 0x0b, 20);
    hash_hmac_sha256(key, 20, "Hi There", 8, out);
    check_hex(out, 32, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    hash_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, out);
    check_hex(out, 32, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    hash_hmac_sha256(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
                     out);
    check_hex(out, 32, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    hash_hmac_sha256(NULL, 0, NULL, 0, out);
    check_hex(out, 32, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void test_hash__crc32(void **state)
{
    (void)state;
    assert_int_equal(hash_crc32("123456789", 9), 0xcbf43926);
    assert_int_equal(hash_crc32("", 0), 0);
    assert_int_equal(hash_crc32_on(hash_crc32("1234", 4), "56789", 5), 0xcbf43926);
}

/* By the definition: x^64 + ... as published for NVMe, reflected, one bit at a time. */
static uint64_t crc64_by_bits(const uint8_t *p, size_t n)
{
    uint64_t crc = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? UINT64_C(0x9a6c9329ac4bc9b5) : 0);
        }
    }
    return ~crc;
}

static void test_hash__crc64nvme(void **state)
{
    (void)state;
    uint8_t bytes[300];
    struct rng rng;
    rng_seed(&rng, 64);
    assert_true(hash_crc64nvme(0, "123456789", 9) == UINT64_C(0xae8b14860a799888));
    assert_true(hash_crc64nvme(0, NULL, 0) == 0);
    memset(bytes, 0, sizeof bytes); /* of the NVM Express specification: 4 KiB of zeroes and ones */
    uint64_t zeroes = 0;
    uint64_t ones = 0;
    for (int i = 0; i < 16; i++) {
        memset(bytes, 0, 256);
        zeroes = hash_crc64nvme(zeroes, bytes, 256);
        memset(bytes, 0xff, 256);
        ones = hash_crc64nvme(ones, bytes, 256);
    }
    assert_true(zeroes == UINT64_C(0x6482d367eb22b64e));
    assert_true(ones == UINT64_C(0xc0ddba7302eca3ac));
    for (int i = 0; i < 2000; i++) {
        size_t n = rng_below(&rng, sizeof bytes);
        for (size_t k = 0; k < n; k++) {
            bytes[k] = (uint8_t)rng_below(&rng, 256);
        }
        size_t cut = n == 0 ? 0 : rng_below(&rng, n);
        uint64_t first = hash_crc64nvme(0, bytes, cut);
        assert_true(hash_crc64nvme(first, bytes + cut, n - cut) == crc64_by_bits(bytes, n));
    }
}

static void test_hash__equal_sees_every_byte(void **state)
{
    (void)state;
    uint8_t a[32] = {0};
    uint8_t b[32] = {0};
    assert_true(hash_equal(a, b, 32));
    for (size_t i = 0; i < 32; i++) {
        b[i] = 1;
        assert_false(hash_equal(a, b, 32));
        b[i] = 0;
    }
    assert_true(hash_equal(a, b, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash__sha256),
        cmocka_unit_test(test_hash__sha256_in_pieces_is_the_same),
        cmocka_unit_test(test_hash__hmac_of_rfc_4231),
        cmocka_unit_test(test_hash__crc32),
        cmocka_unit_test(test_hash__crc64nvme),
        cmocka_unit_test(test_hash__equal_sees_every_byte),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
