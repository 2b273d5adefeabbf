/* Makes what the sample campaign downloads: photograph-like images of mixed sizes as JPEG, PNG and
 * WebP, and LAION-schema parquet parts (snappy, by DuckDB) whose URLs point at the demo's web
 * server, bad ones among them. usage: demo_make IMAGES_DIR PARTS_DIR HTTP_PORT IMAGES PARTS ROWS;
 * an IMAGES_DIR that is there stays as it is. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/rng.h"
#include "common/str.h"
#include <duckdb.h>
#include <math.h>
#include <spng.h>
#include <stdio.h>
#include <sys/stat.h>
#include <turbojpeg.h>
#include <webp/encode.h>

#define OCTAVES  5
#define GRID_MAX 65

static void die(const char *what)
{
    (void)fprintf(stderr, "demo_make: %s\n", what);
    exit(1);
}

struct noise { /* value noise on a grid, interpolated smoothly */
    float v[GRID_MAX][GRID_MAX];
};

static float at(const struct noise *n, float x, float y)
{
    int xi = (int)x;
    int yi = (int)y;
    float fx = x - (float)xi;
    float fy = y - (float)yi;
    fx = fx * fx * (3 - 2 * fx);
    fy = fy * fy * (3 - 2 * fy);
    int x0 = xi % (GRID_MAX - 1);
    int y0 = yi % (GRID_MAX - 1);
    float a = n->v[y0][x0] + (n->v[y0][x0 + 1] - n->v[y0][x0]) * fx;
    float b = n->v[y0 + 1][x0] + (n->v[y0 + 1][x0 + 1] - n->v[y0 + 1][x0]) * fx;
    return a + (b - a) * fy;
}

static uint8_t clamp8(float v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Octaves of noise over a sky-to-ground gradient with a few soft discs: entropy like a
 * photograph's. */
static void paint(uint8_t *rgb, int w, int h, struct rng *rng)
{
    static struct noise n;
    float base[3];
    float tint[3];
    float cx[4], cy[4], cr[4];
    for (int y = 0; y < GRID_MAX; y++) {
        for (int x = 0; x < GRID_MAX; x++) {
            n.v[y][x] = (float)rng_unit(rng);
        }
    }
    for (int c = 0; c < 3; c++) {
        base[c] = 40 + 120 * (float)rng_unit(rng);
        tint[c] = 60 + 140 * (float)rng_unit(rng);
    }
    for (int k = 0; k < 4; k++) {
        cx[k] = (float)rng_unit(rng) * (float)w;
        cy[k] = (float)rng_unit(rng) * (float)h;
        cr[k] = (0.05F + 0.2F * (float)rng_unit(rng)) * (float)w;
    }
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            float v = 0;
            float amp = 0.5F;
            float f = 3.0F / (float)w;
            for (int o = 0; o < OCTAVES; o++, amp *= 0.55F, f *= 2.3F) {
                v += amp * at(&n, (float)x * f, (float)y * f);
            }
            for (int k = 0; k < 4; k++) {
                float d = hypotf((float)x - cx[k], (float)y - cy[k]);
                v += d < cr[k] ? 0.25F * (1 - d / cr[k]) : 0;
            }
            float sky = (float)y / (float)h;
            for (int c = 0; c < 3; c++) {
                rgb[(y * w + x) * 3 + c] = clamp8(base[c] * (1 - sky) + tint[c] * v * (0.5F + sky));
            }
        }
    }
}

static void write_file(const char *dir, int i, const char *ext, const void *p, size_t n)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%d.%s", dir, i, ext);
    AUTO_FILE FILE *f = fopen(path, "we");
    if (f == NULL || fwrite(p, 1, n, f) != n) {
        die(path);
    }
}

static void write_jpeg(const char *dir, int i, const uint8_t *rgb, int w, int h, bool progressive)
{
    unsigned char *out = NULL;
    unsigned long n = 0;
    tjhandle tj = tjInitCompress();
    int flags = progressive ? TJFLAG_PROGRESSIVE : 0;
    if (tj == NULL ||
        tjCompress2(tj, rgb, w, 0, h, TJPF_RGB, &out, &n, TJSAMP_420, 88, flags) != 0) {
        die("jpeg");
    }
    write_file(dir, i, "jpg", out, n);
    tjFree(out);
    (void)tjDestroy(tj);
}

static void write_png(const char *dir, int i, const uint8_t *rgb, int w, int h)
{
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr ihdr = {.width = (uint32_t)w,
                             .height = (uint32_t)h,
                             .bit_depth = 8,
                             .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    size_t n = 0;
    int rc = 0;
    (void)spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    (void)spng_set_option(ctx, SPNG_IMG_COMPRESSION_LEVEL, 1);
    (void)spng_set_ihdr(ctx, &ihdr);
    if (spng_encode_image(ctx, rgb, (size_t)w * (size_t)h * 3, SPNG_FMT_PNG,
                          SPNG_ENCODE_FINALIZE) != 0) {
        die("png");
    }
    void *out = spng_get_png_buffer(ctx, &n, &rc);
    if (out == NULL) {
        die("png");
    }
    write_file(dir, i, "png", out, n);
    free(out);
    spng_ctx_free(ctx);
}

static void write_webp(const char *dir, int i, const uint8_t *rgb, int w, int h)
{
    uint8_t *out = NULL;
    size_t n = WebPEncodeRGB(rgb, w, h, w * 3, 80, &out);
    if (n == 0) {
        die("webp");
    }
    write_file(dir, i, "webp", out, n);
    WebPFree(out);
}

static void make_images(const char *dir, int n)
{
    struct rng rng;
    rng_seed(&rng, 20);
    if (mkdir(dir, 0755) != 0) {
        return;
    }
    for (int i = 0; i < n; i++) {
        int w = 320 + (int)rng_below(&rng, 500);
        int h = 240 + (int)rng_below(&rng, 400);
        uint8_t *rgb = xmalloc((size_t)w * (size_t)h * 3);
        paint(rgb, w, h, &rng);
        if (i % 14 == 6) {
            write_png(dir, i, rgb, w, h);
        } else if (i % 14 == 13) {
            write_webp(dir, i, rgb, w, h);
        } else {
            write_jpeg(dir, i, rgb, w, h, i % 5 == 0);
        }
        free(rgb);
    }
}

/* Which image row r of part p shows, and the share of bad URLs, is a hash: the same on every run.
 */
static const char part_sql[] =
    "COPY (SELECT SAMPLE_ID, "
    "CASE WHEN k < 40 THEN 'http://h' || (1 + h %% 40) || '.demo.test:%d/missing/' || SAMPLE_ID || "
    "'.jpg' "
    "WHEN k < 52 THEN 'http://dead.demo.test:%d/img/' || SAMPLE_ID || '.jpg' "
    "WHEN k < 62 THEN 'http://gone' || (h %% 9) || '.demo.test:%d/a.jpg' "
    "WHEN k < 72 THEN 'http://slow.demo.test:%d/slow/' || img || '?s=' || SAMPLE_ID "
    "WHEN k < 92 THEN 'http://h' || (1 + h %% 40) || '.demo.test:%d/page/' || SAMPLE_ID || '.jpg' "
    "WHEN k < 102 THEN 'http://h' || (1 + h %% 40) || '.demo.test:%d/moved/' || img "
    "ELSE 'http://h' || (1 + h %% 40) || '.demo.test:%d/img/' || img || '?s=' || SAMPLE_ID END AS "
    "URL, "
    "'a photograph number ' || SAMPLE_ID || ', caf\xc3\xa9 at dusk' AS TEXT, "
    "(240 + h %% 400)::INTEGER AS HEIGHT, (320 + h %% 500)::INTEGER AS WIDTH, '?' AS LICENSE, "
    "CASE WHEN h %% 50 = 0 THEN 'UNSURE' ELSE 'UNLIKELY' END AS NSFW, "
    "0.28 + (h %% 1000) / 10000.0::DOUBLE AS similarity "
    "FROM (SELECT %d * 100000 + i AS SAMPLE_ID, hash(i * 7919 + %d) AS h, (hash(i * 31 + %d) %% "
    "1000) AS k, "
    "(hash(i + %d * 1000) %% %d) AS n, n || CASE n %% 14 WHEN 6 THEN '.png' WHEN 13 THEN '.webp' "
    "ELSE '.jpg' END AS img "
    "FROM range(%d) t(i)) ORDER BY SAMPLE_ID) "
    "TO '%s/part-%05d.snappy.parquet' (FORMAT parquet, COMPRESSION snappy)";

static void make_parts(const char *dir, int port, int images, int parts, int rows)
{
    duckdb_database db;
    duckdb_connection con;
    (void)mkdir(dir, 0755);
    if (duckdb_open(NULL, &db) != DuckDBSuccess || duckdb_connect(db, &con) != DuckDBSuccess) {
        die("duckdb");
    }
    for (int p = 0; p < parts; p++) {
        char sql[8192];
        duckdb_result res;
        (void)snprintf(sql, sizeof sql, part_sql, port, port, port, port, port, port, port, p + 1,
                       p, p, p, images, rows + 13 * p, dir, p);
        if (duckdb_query(con, sql, &res) != DuckDBSuccess) {
            die(duckdb_result_error(&res));
        }
        duckdb_destroy_result(&res);
    }
    duckdb_disconnect(&con);
    duckdb_close(&db);
}

int main(int argc, char **argv)
{
    int64_t n[4];
    for (int i = 0; i < 4; i++) {
        if (argc != 7 || !parse_i64(str_of(argv[3 + i]), 1, 1000000, &n[i], NULL)) {
            die("usage: demo_make IMAGES_DIR PARTS_DIR HTTP_PORT IMAGES PARTS ROWS");
        }
    }
    make_images(argv[1], (int)n[1]);
    make_parts(argv[2], (int)n[0], (int)n[1], (int)n[2], (int)n[3]);
    return 0;
}
