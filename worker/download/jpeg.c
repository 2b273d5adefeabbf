/* JPEG over libjpeg(-turbo): full decode, grey stays grey, CMYK by a plain conversion; baseline
 * 4:2:0 with the standard Huffman tables out. Warnings are not errors: of a
 * cut-off picture the last whole row is repeated, as OpenCV does; a progressive one is what its
 * scans give. */
#include "image.h"
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

/* Progressive bombs: thousands of scans over one picture, or a few over a huge one. Photographs
 * have ten or so. */
#define SCANS_MAX       200
#define SCANS_COMMON    20
#define SCAN_PIXELS_MAX (INT64_C(1) << 30) /* pixels times scans, beyond the common number */

struct trap {
    struct jpeg_error_mgr mgr; /* first member */
    jmp_buf jump;
};

static void on_error(j_common_ptr c)
{
    struct trap *t = (struct trap *)(void *)c->err;
    longjmp(t->jump, 1);
}
static void on_message(j_common_ptr c UNUSED, int level UNUSED)
{
}
static void on_output(j_common_ptr c UNUSED)
{
}

static struct jpeg_error_mgr *trap_init(struct trap *t)
{
    (void)jpeg_std_error(&t->mgr);
    t->mgr.error_exit = on_error;
    t->mgr.emit_message = on_message;
    t->mgr.output_message = on_output;
    return &t->mgr;
}

static void on_progress(j_common_ptr c)
{
    const struct jpeg_decompress_struct *d = (const struct jpeg_decompress_struct *)(void *)c;
    int scans = d->input_scan_number;
    int64_t work = (int64_t)d->image_width * d->image_height * scans;
    if (scans > SCANS_MAX || (scans > SCANS_COMMON && work > SCAN_PIXELS_MAX)) {
        on_error(c);
    }
}

bool jpeg_header(struct str body, int64_t *ret_w, int64_t *ret_h)
{
    const uint8_t *p = (const uint8_t *)body.p;
    size_t i = 2;
    while (i + 4 <= body.n) {
        if (p[i] != 0xff) {
            i++;
            continue;
        }
        uint8_t m = p[i + 1];
        if (m == 0xff || m == 0 || m == 1 || (m >= 0xd0 && m <= 0xd8)) {
            i += m == 0xff ? 1 : 2;
            continue;
        }
        if (m == 0xd9 || m == 0xda) {
            return false;
        }
        size_t len = (size_t)p[i + 2] << 8 | p[i + 3];
        if (m >= 0xc0 && m <= 0xcf && m != 0xc4 && m != 0xc8 && m != 0xcc) {
            if (i + 9 > body.n) {
                return false;
            }
            *ret_h = (int64_t)p[i + 5] << 8 | p[i + 6];
            *ret_w = (int64_t)p[i + 7] << 8 | p[i + 8];
            return true;
        }
        if (len < 2) {
            return false;
        }
        i += 2 + len;
    }
    return false;
}

/* Adobe's CMYK is inverted; ink times light. out may be in. */
static void cmyk_row(const uint8_t *in, uint8_t *out, int w, bool inverted)
{
    for (int x = 0; x < w; x++) {
        unsigned k = inverted ? in[4 * x + 3] : 255u - in[4 * x + 3];
        for (int c = 0; c < 3; c++) {
            unsigned v = inverted ? in[4 * x + c] : 255u - in[4 * x + c];
            out[3 * x + c] = (uint8_t)((v * k + 127) / 255);
        }
    }
}

/* No more bytes: wait for them instead of inventing an end of image, so that no row is made up. */
static boolean on_empty(j_decompress_ptr d UNUSED)
{
    return FALSE;
}
static void on_skip(j_decompress_ptr d, long n)
{
    size_t step = MIN((size_t)MAX(n, 0L), d->src->bytes_in_buffer);
    d->src->next_input_byte += step;
    d->src->bytes_in_buffer -= step;
}

static void read_rows(struct jpeg_decompress_struct *d, struct image_rows *to, uint8_t *line)
{
    bool cmyk = d->out_color_space == JCS_CMYK;
    int w = (int)d->output_width;
    bool more = true;
    for (unsigned y = 0; y < d->output_height; y++) {
        JSAMPROW row = line;
        more = more && jpeg_read_scanlines(d, &row, 1) == 1;
        if (more && cmyk) {
            cmyk_row(line, line, w, d->saw_Adobe_marker);
        }
        to->row(to, line);
    }
}

/* What is decoded into what. */
static void set_up(struct jpeg_decompress_struct *d, struct image_rows *to)
{
    bool cmyk = d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK;
    d->out_color_space = d->jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE
                         : cmyk                               ? JCS_CMYK
                                                              : JCS_RGB;
    int by = to->reduce != NULL ? to->reduce(to, (int)d->image_width, (int)d->image_height) : 0;
    if (by > 0) {
        d->scale_num = 1;
        d->scale_denom = (unsigned)by;
        d->do_fancy_upsampling = FALSE;
    }
}

bool jpeg_read(struct str body, struct image_rows *rows)
{
    struct jpeg_decompress_struct d = {0};
    struct trap trap;
    struct jpeg_progress_mgr progress = {.progress_monitor = on_progress};
    /* Volatile: assigned between setjmp and longjmp. */
    uint8_t *volatile line = NULL;
    volatile bool ok = false;
    d.err = trap_init(&trap);
    if (setjmp(trap.jump) == 0) {
        jpeg_create_decompress(&d);
        d.progress = &progress;
        jpeg_mem_src(&d, (const unsigned char *)body.p, body.n);
        (void)jpeg_read_header(&d, TRUE);
        if (!image_fits((int64_t)d.image_width, (int64_t)d.image_height)) {
            on_error((j_common_ptr)&d); /* the library sees another header than jpeg_header did */
        }
        set_up(&d, rows);
        if (!jpeg_has_multiple_scans(&d)) {
            d.src->fill_input_buffer = on_empty;
            d.src->skip_input_data = on_skip;
        }
        (void)jpeg_start_decompress(&d);
        int channels = d.out_color_space == JCS_GRAYSCALE ? 1 : 3;
        size_t line_n = (size_t)d.output_width * (size_t)d.output_components;
        line = malloc(line_n);
        if (line != NULL &&
            rows->begin(rows, (int)d.output_width, (int)d.output_height, channels)) {
            memset(line, 128, line_n); /* when not even one row is there */
            read_rows(&d, rows, line);
            ok = true;
        }
    }
    jpeg_destroy_decompress(&d);
    free(line);
    return ok;
}

bool jpeg_encode(const struct image *im, int quality, struct buf *out)
{
    struct jpeg_compress_struct c = {0};
    struct trap trap;
    unsigned char *volatile mem = NULL;
    unsigned char *mem_p = NULL;
    unsigned long mem_n = 0;
    volatile bool ok = false;
    c.err = trap_init(&trap);
    if (setjmp(trap.jump) == 0) {
        jpeg_create_compress(&c);
        jpeg_mem_dest(&c, &mem_p, &mem_n);
        c.image_width = (JDIMENSION)im->w;
        c.image_height = (JDIMENSION)im->h;
        c.input_components = im->channels;
        c.in_color_space = im->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
        jpeg_set_defaults(&c);
        jpeg_set_quality(&c, quality, TRUE);
        jpeg_start_compress(&c, TRUE);
        while (c.next_scanline < c.image_height) {
            size_t at = (size_t)c.next_scanline * (size_t)im->w * (size_t)im->channels;
            JSAMPROW row = im->px + at;
            (void)jpeg_write_scanlines(&c, &row, 1);
        }
        jpeg_finish_compress(&c);
        ok = true;
    }
    mem = mem_p;
    jpeg_destroy_compress(&c);
    if (ok) {
        buf_add(out, mem, mem_n);
    }
    free(mem);
    return ok;
}
