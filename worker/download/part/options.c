/* The table of settings and what follows from them. */
#include "options.h"
#include "common/cleanup.h"
#include "img2dataset.h"
#include "job/settings.h"
#include "worker_protocol.h"

#define AT(field) offsetof(struct download_options, field)
#define SETTING(name, flag, kind, dflt, min, max, field, words, help)                              \
    {#name, flag, SETTING_##kind, dflt, min, max, offsetof(struct download_options, field),        \
     words, help},
static const struct setting rows[] = {
#include "worker_download.def"
};

/* Checks the settings url_col to verify_hash, input_format, output_format, and the directives of
 * X-Robots-Tag. */
json_t *options_shape(const struct download_options *o)
{
    json_t *all = json_object();
    bool shapes = false;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct setting *r = &rows[i];
        char number[64];
        shapes = (shapes || r->offset == AT(url_col)) && r->offset != AT(timeout_s);
        if (!shapes && r->offset != AT(disallowed_header_directives) &&
            r->offset != AT(input_format) && r->offset != AT(output_format)) {
            continue;
        }
        (void)json_object_set_new(all, r->name, json_string(settings_text(r, o, number)));
    }
    return all;
}

const struct setting *options_rows(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(rows);
    return rows;
}

/* The index of v among the words of that setting; 0 for another, which is a fault already. */
static int choice(const char *name, const char *v)
{
    return MAX(setting_word(setting_find(rows, ARRAY_LEN(rows), name)->words, str_of(v)), 0);
}

static void work_out_input(struct download_options *o, struct buf *faults)
{
    static const enum input_format formats[] = {INPUT_PARQUET, INPUT_CSV,   INPUT_CSV,  INPUT_TSV,
                                                INPUT_TSV,     INPUT_TXT,   INPUT_TXT,  INPUT_JSON,
                                                INPUT_JSON,    INPUT_JSONL, INPUT_JSONL};
    o->format = formats[choice("input_format", o->input_format)];
    o->gzip = str_ends(str_of(o->input_format), ".gz");
    if (o->retry_failed && o->format != INPUT_PARQUET) {
        buf_addf(faults, "retry_failed: it reads the .parquet of an earlier output, not %s\n",
                 o->input_format);
    }
}

/* Names that the columns of the output would have twice. */
static bool is_of_output(const struct download_options *o, const char *name)
{
    bool image = o->output == OUTPUT_PARQUET || o->output == OUTPUT_TFRECORD;
    return (image && strcmp(name, o->encode_format) == 0) ||
           (o->output == OUTPUT_TFRECORD && strcmp(name, "txt") == 0);
}

static enum resize_filter filter_of(const char *name, const char *v)
{
    static const enum resize_filter filters[] = {FILTER_NEAREST, FILTER_LINEAR, FILTER_LINEAR,
                                                 FILTER_CUBIC,   FILTER_CUBIC,  FILTER_AREA,
                                                 FILTER_LANCZOS, FILTER_LANCZOS};
    return filters[choice(name, v)];
}

static void work_out_image(struct download_options *o, struct buf *faults)
{
    struct image_options *im = &o->image;
    im->mode = (enum resize_mode)choice("resize_mode", o->resize_mode);
    im->format = (enum image_format)choice("encode_format", o->encode_format);
    const char *hash = o->compute_hash[0] != '\0' ? o->compute_hash : "none";
    im->hash = (enum image_hash)choice("compute_hash", hash);
    if (im->format == IMAGE_PNG && o->encode_quality > 9) {
        buf_addf(faults, "encode_quality %lld: png takes a compression level from 0 to 9\n",
                 (long long)o->encode_quality);
    } else if (im->format == IMAGE_JPEG && o->encode_quality > 100) {
        buf_addf(faults, "encode_quality %lld: jpg takes 0 to 100\n", (long long)o->encode_quality);
    }
    im->quality = (int)o->encode_quality;
    im->size = (int)o->image_size;
    im->only_if_bigger = o->resize_only_if_bigger;
    im->min_size = (int)o->min_image_size;
    im->max_area = o->max_image_area;
    im->max_aspect = o->max_aspect_ratio;
    im->max_pixels = o->max_image_pixels;
    im->exif = o->extract_exif;
    im->orient = o->exif_orientation;
    im->keep_same = o->skip_reencode;
    im->keep_all = o->disable_all_reencoding;
    im->fast = o->fast_decode;
    if (im->keep_all && o->bbox_col[0] != '\0') {
        buf_addf(faults,
                 "disable_all_reencoding with bbox_col '%.60s': bytes that are kept unread show "
                 "what was to be blurred\n",
                 o->bbox_col);
    }
    im->up = filter_of("upscale_interpolation", o->upscale_interpolation);
    im->down = filter_of("downscale_interpolation", o->downscale_interpolation);
}

/* The words of a list setting; a fault when it is not a list. */
static int words_of(const char *name, const char *text, char **store, char **words, int words_max,
                    struct buf *faults)
{
    const char *why;
    int n = value_list(text, store, words, words_max, &why);
    if (n < 0) {
        buf_addf(faults, "%s '%.60s': %s; expected [\"a\",\"b\"] or a,b of at most %d words\n",
                 name, text, why, words_max);
    }
    return MAX(n, 0);
}

static void work_out_net(struct download_options *o, struct buf *faults)
{
    char *words[ADDR_RULES_MAX];
    AUTO_FREE char *store = NULL;
    int n = words_of("allow_net", o->allow_net, &store, words, ADDR_RULES_MAX, faults);
    for (int i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        if (addr_parse_rule(str_of(words[i]), &o->rules.at[o->rules.n], &err)) {
            o->rules.n++;
        } else {
            buf_addf(faults, "allow_net: %s\n", err.message);
        }
    }
}

static void work_out_columns(struct download_options *o, struct buf *faults)
{
    static const char *const reserved[] = {
        "key",    "caption",       "url",  "width", "height", "original_width", "original_height",
        "status", "error_message", "exif", "md5",   "sha256", "sha512"};
    char *words[COLUMNS_MAX];
    AUTO_FREE char *store = NULL;
    const char *setting = "save_additional_columns";
    bool saved = o->bbox_col[0] == '\0';
    int n = words_of(setting, o->save_additional_columns, &store, words,
                     COLUMNS_MAX - (saved ? 2 : 3), faults);
    for (int i = 0; i < n; i++) {
        saved = saved || strcmp(words[i], o->bbox_col) == 0;
    }
    words[n] = o->bbox_col;
    for (int i = 0; i < n + (saved ? 0 : 1); i++) {
        for (size_t k = 0; k < ARRAY_LEN(reserved); k++) {
            if (strcmp(words[i], reserved[k]) == 0) {
                buf_addf(faults, "%s: '%s' is a name of the output's own\n",
                         i < n ? setting : "bbox_col", words[i]);
            }
        }
        if (is_of_output(o, words[i])) {
            buf_addf(faults, "%s: '%s' is a name of output_format %s's own\n",
                     i < n ? setting : "bbox_col", words[i], o->output_format);
        }
        for (int k = 0; k < i; k++) {
            if (strcmp(words[i], words[k]) == 0) {
                buf_addf(faults, "save_additional_columns: '%.60s' is there twice\n", words[i]);
                break;
            }
        }
        o->extra_columns[o->extra_columns_n++] = xstrdup(words[i]);
    }
}

static void work_out_lists(struct download_options *o, struct buf *faults)
{
    char *words[ROBOTS_DIRECTIVES_MAX];
    AUTO_FREE char *store = NULL;
    int n = words_of("verify_hash", o->verify_hash, &store, words, 2, faults);
    if (n == 2 && o->image.hash != HASH_NONE && strcmp(words[1], o->compute_hash) == 0) {
        o->verify_col = xstrdup(words[0]);
    } else if (n > 0 && o->image.hash == HASH_NONE) {
        buf_addf(faults, "verify_hash '%.60s': compute_hash is None, it has to be the same hash\n",
                 o->verify_hash);
    } else if (n > 0) {
        buf_addf(faults, "verify_hash '%.60s': expected [\"column\",\"%s\"], as compute_hash\n",
                 o->verify_hash, o->compute_hash);
    }
    const char *directives = o->disallowed_header_directives;
    n = words_of("disallowed_header_directives",
                 directives[0] != '\0' ? directives : WP_ROBOTS_DIRECTIVES, &o->lists_, words,
                 ROBOTS_DIRECTIVES_MAX, faults);
    for (int i = 0; i < n; i++) {
        o->robots.directives[o->robots.n++] = str_trim(str_of(words[i]));
    }
    o->robots.token = str_of(o->user_agent_token);
}

/* True when both are the same prefix, with or without a final slash. */
static bool same_place(const char *a, const char *b)
{
    struct str x = str_of(a);
    struct str y = str_of(b);
    while (x.n > 0 && x.p[x.n - 1] == '/') {
        x.n--;
    }
    while (y.n > 0 && y.p[y.n - 1] == '/') {
        y.n--;
    }
    return str_eq(x, y);
}

bool options_load(const json_t *hyperparameters, int argc, char *const *argv,
                  struct download_options *ret, struct buf *faults)
{
    struct download_options o = {0};
    bool loaded = settings_load(rows, ARRAY_LEN(rows), &o, hyperparameters, argc, argv,
                                img2dataset_refuses, faults);
    o.mode = (enum incremental_mode)choice("incremental_mode", o.incremental_mode);
    if (o.retry_failed && same_place(o.url_list, o.output_folder)) {
        buf_add_cstr(faults, "retry_failed: output_folder must be a folder of its own\n");
    }
    o.output = (enum output_format)choice("output_format", o.output_format);
    o.report = (enum progress_report_as)choice("progress", o.progress);
    work_out_input(&o, faults);
    work_out_image(&o, faults);
    work_out_net(&o, faults);
    work_out_columns(&o, faults);
    work_out_lists(&o, faults);
    if (!loaded || faults->n > 0) {
        options_done(&o);
        return false;
    }
    *ret = o;
    return true;
}

void options_done(struct download_options *o)
{
    settings_done(rows, ARRAY_LEN(rows), o);
    for (int i = 0; i < o->extra_columns_n; i++) {
        free(o->extra_columns[i]);
    }
    free(o->verify_col);
    free(o->lists_);
    *o = (struct download_options){0};
}

void options_help(struct buf *out)
{
    settings_help(rows, ARRAY_LEN(rows), out);
    buf_addf(out,
             "\nLimits: a picture has at most %d pixels a side and max_image_pixels, a\n"
             "body max_image_bytes, an encoded picture %u MiB, an input %d columns, the\n"
             "text of a row %u MiB; a picture is decoded in 10 CPU seconds and 1 GiB.\n",
             IMAGE_SIDE_MAX, IMAGE_OUT_BYTES_MAX >> 20, COLUMNS_MAX, ROW_TEXT_BYTES_MAX >> 20);
    buf_add_cstr(out,
                 "\nNumbers may be 1e6 or 1_000_000; flags True, False, true, 1, --NAME alone or\n"
                 "--noNAME; lists [\"a\",\"b\"], ['a','b'] or a,b; None: not given. Dashes and\n"
                 "underscores are one.\n");
    img2dataset_help(rows, ARRAY_LEN(rows), out);
}
