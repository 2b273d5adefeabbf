/* GIF over giflib: the first frame in its place on the picture, white where it is transparent or
 * does not reach. Always in colour. */
#include "common/cleanup.h"
#include "image.h"
#include <gif_lib.h>

#define NOTHING (-1) /* an index that shows nothing */

struct gif_source {
    struct str rest;
};

static void gif_closep(GifFileType **g)
{
    int ignored;
    if (*g != NULL) {
        (void)DGifCloseFile(*g, &ignored);
    }
}

static int on_read(GifFileType *g, GifByteType *out, int n)
{
    struct gif_source *r = g->UserData;
    size_t take = MIN(r->rest.n, (size_t)MAX(n, 0));
    memcpy(out, r->rest.p, take);
    r->rest = (struct str){r->rest.p + take, r->rest.n - take};
    return (int)take;
}

bool gif_header(struct str body, int64_t *ret_w, int64_t *ret_h)
{
    const uint8_t *u = (const uint8_t *)body.p;
    if (body.n < 10) {
        return false;
    }
    *ret_w = u[6] | u[7] << 8;
    *ret_h = u[8] | u[9] << 8;
    return true;
}

/* The transparent index of a graphics control block. */
static void take_extension(int code, const GifByteType *block, int *transparent)
{
    GraphicsControlBlock g;
    if (code == GRAPHICS_EXT_FUNC_CODE && block != NULL &&
        DGifExtensionToGCB(block[0], block + 1, &g) == GIF_OK) {
        *transparent = g.TransparentColor;
    }
}

/* Go to the first frame's description. */
static bool find_frame(GifFileType *g, int *transparent)
{
    GifRecordType type;
    GifByteType *block;
    int code;
    *transparent = NOTHING;
    while (DGifGetRecordType(g, &type) == GIF_OK) {
        if (type == IMAGE_DESC_RECORD_TYPE) {
            return DGifGetImageDesc(g) == GIF_OK;
        }
        if (type != EXTENSION_RECORD_TYPE || DGifGetExtension(g, &code, &block) != GIF_OK) {
            return false;
        }
        take_extension(code, block, transparent);
        while (block != NULL) {
            if (DGifGetExtensionNext(g, &block) != GIF_OK) {
                return false;
            }
        }
    }
    return false;
}

struct frame {
    const GifImageDesc *desc;
    const ColorMapObject *colors;
    int transparent;
    int w, h;       /* of the picture */
    uint8_t *shown; /* shown[w * h]: 1 where px counts */
    uint8_t *px;    /* px[w * h]: indices */
};

/* Keep the part of a line that is within the picture. */
static void keep_line(struct frame *f, const GifPixelType *line, int y)
{
    y += f->desc->Top;
    for (int x = 0; y < f->h && x < f->desc->Width && x + f->desc->Left < f->w; x++) {
        size_t at = (size_t)y * (size_t)f->w + (size_t)(x + f->desc->Left);
        f->px[at] = line[x];
        f->shown[at] = line[x] != f->transparent && line[x] < f->colors->ColorCount;
    }
}

static bool read_lines(GifFileType *g, struct frame *f)
{
    static const int first[] = {0, 4, 2, 1};
    static const int step[] = {8, 8, 4, 2};
    bool woven = f->desc->Interlace;
    GifPixelType *line AUTO_FREE = image_bytes((size_t)f->desc->Width);
    if (line == NULL) {
        return false;
    }
    for (int pass = 0; pass < (woven ? 4 : 1); pass++) {
        for (int y = woven ? first[pass] : 0; y < f->desc->Height; y += woven ? step[pass] : 1) {
            if (DGifGetLine(g, line, f->desc->Width) != GIF_OK) {
                return false;
            }
            keep_line(f, line, y);
        }
    }
    return true;
}

static bool give_rows(const struct frame *f, struct image_rows *to)
{
    uint8_t *row AUTO_FREE = image_bytes((size_t)f->w * 3);
    if (row == NULL) {
        return false;
    }
    for (int y = 0; y < f->h; y++) {
        for (int x = 0; x < f->w; x++) {
            size_t at = (size_t)y * (size_t)f->w + (size_t)x;
            const GifColorType *c = &f->colors->Colors[f->shown[at] != 0 ? f->px[at] : 0];
            uint8_t *out = row + 3 * (size_t)x;
            out[0] = f->shown[at] != 0 ? c->Red : 255;
            out[1] = f->shown[at] != 0 ? c->Green : 255;
            out[2] = f->shown[at] != 0 ? c->Blue : 255;
        }
        to->row(to, row);
    }
    return true;
}

bool gif_read(struct str body, struct image_rows *rows)
{
    struct gif_source r = {body};
    struct frame f = {.transparent = NOTHING};
    int code = 0;
    GifFileType *g CLEANUP(gif_closep)
    = DGifOpen(&r, on_read, &code);
    if (g == NULL || !find_frame(g, &f.transparent)) {
        return false;
    }
    f.desc = &g->Image;
    f.colors = g->Image.ColorMap != NULL ? g->Image.ColorMap : g->SColorMap;
    f.w = g->SWidth;
    f.h = g->SHeight;
    if (f.colors == NULL || !image_fits(f.w, f.h) || !image_fits(f.desc->Width, f.desc->Height) ||
        f.desc->Left < 0 || f.desc->Top < 0 || !rows->begin(rows, f.w, f.h, 3)) {
        return false;
    }
    size_t n = (size_t)f.w * (size_t)f.h;
    uint8_t *px AUTO_FREE = image_bytes(n);
    uint8_t *shown AUTO_FREE = image_zeros(n);
    f.px = px;
    f.shown = shown;
    rows->matted = true;
    return px != NULL && shown != NULL && read_lines(g, &f) && give_rows(&f, rows);
}
