/* JPEG over libjpeg(-turbo): full decode, grey stays grey, CMYK by a plain conversion. Output is
 * baseline 4:2:0 with the standard Huffman tables. Warnings are not errors: for a truncated picture
 * the last complete row is repeated, as OpenCV does; a truncated progressive picture is what its
 * scans contain. */
#include "resize_ycc.h"
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

/* Progressive bombs: thousands of scans over one picture, or a few over a huge one. Photographs
 * have about ten. */
#define SCANS_MAX       200
#define SCANS_COMMON    20
#define SCAN_PIXELS_MAX (INT64_C(1) << 30) /* pixels times scans, beyond the usual number */

/* of an encoder's first buffer, a byte for each pixel; when it is full the library copies it */
#define ENCODED_LEAST 4096ul
#define ENCODED_USUAL (256ul << 10)

#define TRAILER_BYTES 64 /* bytes searched for an end of image */

/* Fast decoding omits the last bit of the frequencies where that costs a grey level or two: where a
 * progressive picture's brightness is divided by no more than this. Quality 85 has 4 for the lowest
 * frequencies. */
#define LAST_BIT_MAX 4

#if JPEG_LIB_VERSION >= 70
#define SCALED(component) ((component)->DCT_h_scaled_size)
#else
#define SCALED(component) ((component)->DCT_scaled_size)
#endif

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

/* Adobe's CMYK is inverted: multiply ink by light. out may be in. */
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

/* No more bytes: wait instead of inventing an end of image, so that no row is made up. */
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

/* Choose the output of the decoder. True: fast decoding is allowed. */
static bool set_up(struct jpeg_decompress_struct *d, struct image_rows *to)
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
        d->dct_method = JDCT_IFAST;
    }
    return by > 0;
}

/* Only the last bit of frequencies is missing, which hardly affects the brightness. */
static bool is_near(const struct jpeg_decompress_struct *d)
{
    static const int lowest[] = {1, 2, DCTSIZE, DCTSIZE + 1, 2 * DCTSIZE};
    const JQUANT_TBL *q = d->comp_info[0].quant_table;
    for (size_t i = 0; i < ARRAY_LEN(lowest); i++) {
        if (q == NULL || q->quantval[lowest[i]] > LAST_BIT_MAX) {
            return false;
        }
    }
    for (int i = 0; i < d->num_components; i++) {
        const int *missing = d->coef_bits[i]; /* -1: all */
        if (missing[0] != 0) {
            return false;
        }
        for (int k = 1; k < DCTSIZE2; k++) {
            if (missing[k] < 0 || missing[k] > 1) {
                return false;
            }
        }
    }
    return true;
}

/* Decode scan by scan, as far as needed: the final refinements are a third of the work. */
static void start_near(struct jpeg_decompress_struct *d)
{
    d->buffered_image = TRUE;
    d->do_block_smoothing = FALSE;
    (void)jpeg_start_decompress(d);
    int event;
    do {
        event = jpeg_consume_input(d);
        on_progress((j_common_ptr)d);
    } while (event != JPEG_REACHED_EOI && !(event == JPEG_SCAN_COMPLETED && is_near(d)));
    (void)jpeg_start_output(d, d->input_scan_number);
}

/* True when the data reaches to about the last byte. A truncated picture is read by rows, which
 * tell which ones are complete. */
static bool is_whole(struct str body)
{
    size_t n = MIN(body.n, (size_t)TRAILER_BYTES);
    return memmem(body.p + body.n - n, n, "\xff\xd9", 2) != NULL;
}

/* Brightness has full size; colour full or half width, and full or half height. */
static bool has_planes(const struct jpeg_decompress_struct *d, struct plane_form *ret)
{
    const jpeg_component_info *c = d->comp_info;
    if (d->jpeg_color_space != JCS_YCbCr || d->num_components != PLANES ||
        c[0].v_samp_factor * SCALED(&c[0]) > STRIP_ROWS_MAX ||
        c[0].downsampled_width != d->output_width || c[0].downsampled_height != d->output_height) {
        return false;
    }
    for (int i = 1; i < PLANES; i++) {
        int sub_x = c[0].h_samp_factor * SCALED(&c[0]) / (c[i].h_samp_factor * SCALED(&c[i]));
        int sub_y = c[0].v_samp_factor * SCALED(&c[0]) / (c[i].v_samp_factor * SCALED(&c[i]));
        struct plane_form f = {sub_x, sub_y, false};
        if (sub_x < 1 || sub_x > 2 || sub_y < 1 || sub_y > 2 ||
            c[i].downsampled_width != (d->output_width + (unsigned)sub_x - 1) / (unsigned)sub_x ||
            c[i].downsampled_height != (d->output_height + (unsigned)sub_y - 1) / (unsigned)sub_y ||
            (i > 1 && (f.sub_x != ret->sub_x || f.sub_y != ret->sub_y))) {
            return false;
        }
        *ret = f;
    }
    return true;
}

static bool wants_planes(struct jpeg_decompress_struct *d, struct image_rows *to, struct str body)
{
    struct plane_form form;
    if (to->begin_planes == NULL || !is_whole(body)) {
        return false;
    }
    jpeg_calc_output_dimensions(d);
    if (!has_planes(d, &form) ||
        !to->begin_planes(to, (int)d->output_width, (int)d->output_height, &form)) {
        return false;
    }
    d->raw_data_out = TRUE;
    d->out_color_space = JCS_YCbCr;
    return true;
}

/* Strips as the decoder makes them. Colour needs the rows above and below, so that three are kept:
 * the one that is passed on, the one before it and the one after it. */
#define STRIPS 3

struct strips {
    struct jpeg_decompress_struct *d;
    JSAMPARRAY at[STRIPS][PLANES];
    unsigned width[PLANES];
    unsigned rows[PLANES]; /* of a strip */
    bool more;             /* the decoder has data */
};

static void strips_init(struct strips *s, struct jpeg_decompress_struct *d)
{
    *s = (struct strips){.d = d, .more = true};
    for (int i = 0; i < PLANES; i++) {
        const jpeg_component_info *c = &d->comp_info[i];
        s->width[i] = c->width_in_blocks * (unsigned)SCALED(c);
        s->rows[i] = (unsigned)(c->v_samp_factor * SCALED(c));
        for (int k = 0; k < STRIPS; k++) {
            s->at[k][i] =
                d->mem->alloc_sarray((j_common_ptr)d, JPOOL_IMAGE, s->width[i], s->rows[i]);
        }
    }
}

/* Row y of a plane in the strips that are kept; outside the picture its first or last row. */
static uint8_t *strips_row(const struct strips *s, int plane, int y)
{
    int end = (int)s->d->comp_info[plane].downsampled_height;
    unsigned row = (unsigned)MIN(MAX(y, 0), end - 1);
    return s->at[row / s->rows[plane] % STRIPS][plane][row % s->rows[plane]];
}

/* Read strip i. Where no data is left, the last row is repeated. */
static void strips_read(struct strips *s, unsigned i)
{
    s->more = s->more && jpeg_read_raw_data(s->d, s->at[i % STRIPS], s->rows[0]) != 0;
    for (int k = 0; k < PLANES && !s->more; k++) {
        for (unsigned y = 0; y < s->rows[k]; y++) {
            uint8_t *row = s->at[i % STRIPS][k][y];
            if (i == 0) {
                memset(row, 128, s->width[k]);
            } else {
                memcpy(row, strips_row(s, k, (int)(i * s->rows[k]) - 1), s->width[k]);
            }
        }
    }
}

static void strips_give(const struct strips *s, unsigned i, struct image_rows *to)
{
    int first = (int)(i * s->rows[0]);
    struct plane_strip out = {.rows = MIN((int)s->rows[0], (int)s->d->output_height - first)};
    for (int y = 0; y < out.rows; y++) {
        out.y[y] = strips_row(s, 0, first + y);
    }
    for (int k = 0; k < COLOURS; k++) {
        int colour_first = (int)(i * s->rows[1 + k]);
        for (int y = 0; y < (int)s->rows[1 + k] + 2; y++) {
            out.c[k][y] = strips_row(s, 1 + k, colour_first + y - 1);
        }
    }
    to->strip(to, &out);
}

static void read_planes(struct jpeg_decompress_struct *d, struct image_rows *to)
{
    struct strips s;
    strips_init(&s, d);
    unsigned n = (d->output_height + s.rows[0] - 1) / s.rows[0];
    for (unsigned i = 0; i < n; i++) {
        strips_read(&s, i);
        if (i > 0) {
            strips_give(&s, i - 1, to);
        }
    }
    strips_give(&s, n - 1, to);
}

/* Everything after the header. Not inlined: the compiler must not consider longjmp here. */
static __attribute__((noinline)) bool read_picture(struct jpeg_decompress_struct *d,
                                                   struct str body, struct image_rows *to)
{
    (void)jpeg_read_header(d, TRUE);
    if (!image_fits((int64_t)d->image_width, (int64_t)d->image_height)) {
        return false; /* the library may see another header than jpeg_header did */
    }
    bool fast = set_up(d, to);
    if (!jpeg_has_multiple_scans(d)) {
        d->src->fill_input_buffer = on_empty;
        d->src->skip_input_data = on_skip;
    }
    bool planes = wants_planes(d, to, body);
    if (fast && d->progressive_mode) {
        start_near(d);
    } else {
        (void)jpeg_start_decompress(d);
    }
    if (planes) {
        read_planes(d, to);
        return true;
    }
    int channels = d->out_color_space == JCS_GRAYSCALE ? 1 : 3;
    unsigned line_n = d->output_width * (unsigned)d->output_components;
    JSAMPARRAY line = d->mem->alloc_sarray((j_common_ptr)d, JPOOL_IMAGE, line_n, 1);
    if (!to->begin(to, (int)d->output_width, (int)d->output_height, channels)) {
        return false;
    }
    memset(line[0], 128, line_n); /* not even one row is there */
    read_rows(d, to, line[0]);
    return true;
}

bool jpeg_read(struct str body, struct image_rows *rows)
{
    struct jpeg_decompress_struct d = {0};
    struct trap trap;
    struct jpeg_progress_mgr progress = {.progress_monitor = on_progress};
    volatile bool ok = false; /* assigned between setjmp and longjmp */
    d.err = trap_init(&trap);
    if (setjmp(trap.jump) == 0) {
        jpeg_create_decompress(&d);
        d.progress = &progress;
        jpeg_mem_src(&d, (const unsigned char *)body.p, body.n);
        ok = read_picture(&d, body, rows);
    }
    jpeg_destroy_decompress(&d);
    return ok;
}

struct encoder {
    struct jpeg_compress_struct c;
    struct trap trap;
    unsigned char *mem, *first; /* first: as large as most pictures, then the library's own */
    unsigned long mem_n;
};

static void encoder_start(struct encoder *e, int w, int h, J_COLOR_SPACE space, int quality)
{
    struct jpeg_compress_struct *c = &e->c;
    jpeg_create_compress(c);
    e->mem_n = MIN(MAX((unsigned long)w * (unsigned long)h, ENCODED_LEAST), ENCODED_USUAL);
    e->mem = e->first = xmalloc(e->mem_n);
    jpeg_mem_dest(c, &e->mem, &e->mem_n);
    c->image_width = (JDIMENSION)w;
    c->image_height = (JDIMENSION)h;
    c->input_components = space == JCS_GRAYSCALE ? 1 : 3;
    c->in_color_space = space;
    jpeg_set_defaults(c);
    jpeg_set_quality(c, quality, TRUE);
}

static bool encoder_end(struct encoder *e, bool ok, struct buf *out)
{
    jpeg_destroy_compress(&e->c);
    if (ok) {
        buf_add(out, e->mem, e->mem_n);
    }
    if (e->mem != e->first) {
        free(e->mem);
    }
    free(e->first);
    return ok;
}

bool jpeg_encode(const struct image *im, int quality, struct buf *out)
{
    struct encoder e = {0};
    volatile bool ok = false;
    e.c.err = trap_init(&e.trap);
    if (setjmp(e.trap.jump) == 0) {
        encoder_start(&e, im->w, im->h, im->channels == 1 ? JCS_GRAYSCALE : JCS_RGB, quality);
        jpeg_start_compress(&e.c, TRUE);
        while (e.c.next_scanline < e.c.image_height) {
            size_t at = (size_t)e.c.next_scanline * (size_t)im->w * (size_t)im->channels;
            JSAMPROW row = im->px + at;
            (void)jpeg_write_scanlines(&e.c, &row, 1);
        }
        jpeg_finish_compress(&e.c);
        ok = true;
    }
    return encoder_end(&e, ok, out);
}

bool jpeg_encode_planes(const struct resize_ycc *p, int quality, struct buf *out)
{
    struct encoder e = {0};
    volatile bool ok = false;
    e.c.err = trap_init(&e.trap);
    if (setjmp(e.trap.jump) == 0) {
        encoder_start(&e, p->w, p->h, JCS_YCbCr, quality);
        e.c.raw_data_in = TRUE;
        jpeg_start_compress(&e.c, TRUE);
        while (e.c.next_scanline < e.c.image_height) {
            JSAMPROW rows[PLANES][2 * DCTSIZE];
            JSAMPARRAY at[PLANES];
            for (int i = 0; i < PLANES; i++) {
                const struct image *im = &p->plane[i];
                unsigned by = i > 0 ? 2 : 1;
                for (unsigned y = 0; y < 2 * DCTSIZE / by; y++) {
                    rows[i][y] = im->px + (size_t)(e.c.next_scanline / by + y) * (size_t)im->w;
                }
                at[i] = rows[i];
            }
            (void)jpeg_write_raw_data(&e.c, at, 2 * DCTSIZE);
        }
        jpeg_finish_compress(&e.c);
        ok = true;
    }
    return encoder_end(&e, ok, out);
}
