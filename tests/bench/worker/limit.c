/* What the machine gives at most: each library alone, on the files the worker is measured with.
 *   worker_limit pixels FOLDER [fast]   decode + encode + hash; prints CPU seconds an image
 *   worker_limit fetch FILE N           curl multi alone on a file of URLs; CPU seconds a transfer
 * Nothing of the worker is timed: pixels come from plain library calls into buffers that are
 * kept, as planes where the format has them, which is the cheapest a library does; the picture that
 * is encoded is made by the worker's filter with the clock stopped. */
#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/hash.h"
#include "download/image/transform.h"
#include <curl/curl.h>
#include <limits.h>
#include <spng.h>
#include <stdio.h>
#include <time.h>
#include <turbojpeg.h>
#include <webp/decode.h>

#define FILES_MAX    20000
#define IN_FLIGHT    256
#define SIDE         256
#define QUALITY      95
#define PIXELS_BYTES ((size_t)256 << 20)

static double spent(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char **lines(const char *path, size_t *ret_n)
{
    FILE *f = fopen(path, "r");
    ASSERT(f != NULL);
    char **at = xcalloc(FILES_MAX, sizeof *at);
    size_t n = 0;
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    while (n < FILES_MAX && (len = getline(&line, &cap, f)) > 1) {
        line[len - 1] = '\0';
        at[n++] = xstrdup(line);
    }
    free(line);
    (void)fclose(f);
    *ret_n = n;
    return at;
}

struct bench {
    tjhandle reader, writer;
    uint8_t *px;
    unsigned char *jpeg;
    double decode, encode, hash;
    double by_format[3];
    int by_format_n[3];
    size_t n;
    bool fast;
};

/* The largest reduction by the transform itself that leaves the longer side at least SIDE. */
static tjscalingfactor reduction(int longer, bool fast)
{
    tjscalingfactor f = {1, 1};
    for (int d = 2; fast && d <= 8; d *= 2) {
        if (longer / d >= SIDE) {
            f.denom = d;
        }
    }
    return f;
}

static bool plain_jpeg(struct bench *b, struct str body, struct image *ret)
{
    int sub;
    int space;
    if (tjDecompressHeader3(b->reader, (const unsigned char *)body.p, body.n, &ret->w, &ret->h,
                            &sub, &space) != 0) {
        return false;
    }
    tjscalingfactor f = reduction(MAX(ret->w, ret->h), b->fast);
    ret->w = TJSCALED(ret->w, f);
    ret->h = TJSCALED(ret->h, f);
    ret->channels = space == TJCS_GRAY ? 1 : 3;
    return tjDecompress2(b->reader, (const unsigned char *)body.p, body.n, b->px, ret->w, 0, ret->h,
                         ret->channels == 1 ? TJPF_GRAY : TJPF_RGB,
                         b->fast ? TJFLAG_FASTUPSAMPLE : 0) == 0;
}

static bool plain_png(struct bench *b, struct str body, struct image *ret)
{
    spng_ctx *c = spng_ctx_new(SPNG_CTX_IGNORE_ADLER32);
    struct spng_ihdr ih;
    size_t need = 0;
    bool ok = spng_set_png_buffer(c, body.p, body.n) == 0 && spng_get_ihdr(c, &ih) == 0;
    ret->channels = ok && ih.color_type == SPNG_COLOR_TYPE_GRAYSCALE ? 1 : 3;
    int fmt = ret->channels == 1 ? SPNG_FMT_G8 : SPNG_FMT_RGB8;
    ok = ok && spng_decoded_image_size(c, fmt, &need) == 0 && need <= PIXELS_BYTES &&
         spng_decode_image(c, b->px, need, fmt, 0) == 0;
    ret->w = ok ? (int)ih.width : 0;
    ret->h = ok ? (int)ih.height : 0;
    spng_ctx_free(c);
    return ok;
}

static bool plain_webp(struct bench *b, struct str body, struct image *ret)
{
    const uint8_t *p = (const uint8_t *)body.p;
    ret->channels = 3;
    return WebPGetInfo(p, body.n, &ret->w, &ret->h) != 0 &&
           WebPDecodeRGBInto(p, body.n, b->px, PIXELS_BYTES, ret->w * 3) != NULL;
}

static bool pixels_of(struct bench *b, struct str body, enum image_format format, struct image *ret)
{
    return format == IMAGE_JPEG  ? plain_jpeg(b, body, ret)
           : format == IMAGE_PNG ? plain_png(b, body, ret)
                                 : plain_webp(b, body, ret);
}

/* Without a conversion to RGB; PNG has nothing else. */
static bool cheapest(struct bench *b, struct str body, enum image_format format)
{
    const uint8_t *p = (const uint8_t *)body.p;
    struct image im;
    int sub;
    int space;
    if (format == IMAGE_PNG) {
        return plain_png(b, body, &im);
    }
    if (format == IMAGE_WEBP) {
        uint8_t *y = b->px;
        if (WebPGetInfo(p, body.n, &im.w, &im.h) == 0) {
            return false;
        }
        size_t n = (size_t)im.w * (size_t)im.h;
        return WebPDecodeYUVInto(p, body.n, y, n, im.w, y + n, n, im.w, y + 2 * n, n, im.w) != NULL;
    }
    if (tjDecompressHeader3(b->reader, p, body.n, &im.w, &im.h, &sub, &space) != 0) {
        return false;
    }
    tjscalingfactor f = reduction(MAX(im.w, im.h), b->fast);
    return tjDecompressToYUV2(b->reader, p, body.n, b->px, TJSCALED(im.w, f), 4, TJSCALED(im.h, f),
                              0) == 0;
}

static void one_picture(struct bench *b, struct str body)
{
    struct image im = {0};
    enum image_format format = image_sniff(body);
    double t0 = spent();
    ASSERT(cheapest(b, body, format));
    double decode = spent() - t0;
    ASSERT(pixels_of(b, body, format, &im));
    b->decode += decode;
    b->by_format[format] += decode;
    b->by_format_n[format]++;
    struct image small;
    size_t n = (size_t)im.w * (size_t)im.h * (size_t)im.channels;
    ASSERT(image_alloc(im.w, im.h, im.channels, &small));
    memcpy(small.px, b->px, n);
    struct image_options o = {.mode = RESIZE_BORDER, .size = SIDE};
    ASSERT(image_resize(&small, &o) == IMAGE_OK);
    unsigned long out_n = tjBufSize(SIDE, SIDE, TJSAMP_420);
    bool grey = small.channels == 1;
    enum TJSAMP samples = grey ? TJSAMP_GRAY : TJSAMP_420;
    ASSERT(tjEncodeYUV3(b->writer, small.px, small.w, 0, small.h, grey ? TJPF_GRAY : TJPF_RGB,
                        b->px, 4, (int)samples, 0) == 0);
    t0 = spent();
    ASSERT(tjCompressFromYUV(b->writer, b->px, small.w, 4, small.h, (int)samples, &b->jpeg, &out_n,
                             QUALITY, TJFLAG_NOREALLOC) == 0);
    b->encode += spent() - t0;
    image_done(&small);
    char hex[65];
    t0 = spent();
    hash_sha256_hex(body.p, body.n, hex);
    b->hash += spent() - t0;
    b->n++;
}

static int pixels(const char *folder, bool fast)
{
    char path[PATH_MAX];
    size_t n;
    (void)snprintf(path, sizeof path, "%s/list.txt", folder);
    char **names = lines(path, &n);
    struct bench b = {.reader = tjInitDecompress(), .writer = tjInitCompress(), .fast = fast};
    b.px = xmalloc(PIXELS_BYTES);
    b.jpeg = tjAlloc((int)tjBufSize(SIDE, SIDE, TJSAMP_444));
    char *body = xmalloc(IMAGE_BODY_BYTES_MAX);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *f = fopen(path, "r");
        ASSERT(f != NULL);
        size_t got = fread(body, 1, IMAGE_BODY_BYTES_MAX, f);
        (void)fclose(f);
        one_picture(&b, (struct str){body, got});
    }
    double per = 1.0 / (double)b.n;
    (void)printf("{\"images\": %zu, \"cpu_s_per_image\": %.9f, \"decode\": %.9f, \"encode\": %.9f, "
                 "\"hash\": %.9f, \"jpeg\": %.9f, \"png\": %.9f, \"webp\": %.9f}\n",
                 b.n, (b.decode + b.encode + b.hash) * per, b.decode * per, b.encode * per,
                 b.hash * per, b.by_format[0] / MAX(b.by_format_n[0], 1),
                 b.by_format[1] / MAX(b.by_format_n[1], 1),
                 b.by_format[2] / MAX(b.by_format_n[2], 1));
    return 0;
}

static size_t drop(char *p UNUSED, size_t size UNUSED, size_t n, void *ctx)
{
    *(size_t *)ctx += n;
    return n;
}

static size_t bytes_total;

static void start(CURLM *multi, CURL *e, const char *url)
{
    curl_easy_reset(e);
    (void)curl_easy_setopt(e, CURLOPT_URL, url);
    (void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
    if (getenv("SSL_CERT_FILE") != NULL) {
        (void)curl_easy_setopt(e, CURLOPT_CAINFO, getenv("SSL_CERT_FILE"));
    }
    (void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, drop);
    (void)curl_easy_setopt(e, CURLOPT_WRITEDATA, &bytes_total);
    (void)curl_multi_add_handle(multi, e);
}

static int fetch(const char *file, size_t want)
{
    size_t n;
    size_t ended = 0;
    size_t failed = 0;
    char **urls = lines(file, &n);
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    CURLM *multi = curl_multi_init();
    size_t next = 0;
    double t0 = spent();
    for (; next < MIN(want, (size_t)IN_FLIGHT); next++) {
        start(multi, curl_easy_init(), urls[next % n]);
    }
    while (ended < want) {
        int running;
        int left;
        (void)curl_multi_perform(multi, &running);
        for (CURLMsg *m = curl_multi_info_read(multi, &left); m != NULL;
             m = curl_multi_info_read(multi, &left)) {
            CURL *e = m->easy_handle;
            failed += m->data.result != CURLE_OK ? 1 : 0;
            ended++;
            (void)curl_multi_remove_handle(multi, e);
            if (next < want) {
                start(multi, e, urls[next++ % n]);
            } else {
                curl_easy_cleanup(e);
            }
        }
        if (ended < want) {
            (void)curl_multi_poll(multi, NULL, 0, 100, NULL);
        }
    }
    (void)printf("{\"transfers\": %zu, \"failed\": %zu, \"bytes\": %zu, "
                 "\"cpu_s_per_transfer\": %.9f}\n",
                 want, failed, bytes_total, (spent() - t0) / (double)want);
    return failed > 0;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "pixels") == 0) {
        return pixels(argv[2], argc > 3 && strcmp(argv[3], "fast") == 0);
    }
    if (argc == 4 && strcmp(argv[1], "fetch") == 0) {
        return fetch(argv[2], strtoul(argv[3], NULL, 10));
    }
    (void)fprintf(stderr, "usage: worker_limit pixels FOLDER [fast] | fetch FILE N\n");
    return 2;
}
