/* The table, in the order of img2dataset's own list; at the end what does nothing here. */
#include "img2dataset.h"

#define FIGURES "figures are in _progress.json, _stats.json and drover's metrics"
static const struct img2dataset_option options[] = {
    {"url_list", "required", false, "a job has one channel; a folder's own shards are never input"},
    {"output_folder", "images", false, "a folder in the container would be lost with it"},
    {"processes_count", "1", false, "one per processor, since one process cannot use 72"},
    {"image_size", "256", false, NULL},
    {"resize_mode", "border", false, NULL},
    {"resize_only_if_bigger", "False", false, NULL},
    {"upscale_interpolation", "lanczos", false, NULL},
    {"downscale_interpolation", "area", false, NULL},
    {"encode_quality", "95", false, NULL},
    {"encode_format", "jpg", false, NULL},
    {"skip_reencode", "False", false, NULL},
    {"output_format", "files", false, "one object a shard suits S3 and training"},
    {"input_format", "txt", false,
     "parts are parquet; types are inferred from all rows, not from the first; dates stay text; "
     "numbers in texts of json stay texts; a wrong line is an error; commas in txt belong to the "
     "URL"},
    {"url_col", "url", false, "the default also finds URL, as in LAION"},
    {"caption_col", "None", false,
     "captions are saved when present, since adding them later means downloading again; None "
     "behaves like img2dataset"},
    {"bbox_col", "None", false,
     "a picture with boxes is always encoded again, also with skip_reencode; boxes are clipped to "
     "0..1; a row with invalid boxes or more than 1000 fails; 'blurrer not defined' does not "
     "occur"},
    {"thread_count", "256", false, NULL},
    {"number_sample_per_shard", "10000", false, NULL},
    {"extract_exif", "True", false, NULL},
    {"save_additional_columns", "None", false, NULL},
    {"timeout", "10", false,
     "of the whole attempt, not of each read: a host that drips bytes would hold it for ever"},
    {"enable_wandb", "False", false, "nothing is sent: " FIGURES},
    {"wandb_project", "img2dataset", false, "no effect"},
    {"oom_shard_count", "5", false, NULL},
    {"compute_hash", "sha256", false, NULL},
    {"verify_hash", "None", false, NULL},
    {"retries", "0", false,
     "of transient failures with growing pauses, not of any failure at once"},
    {"disable_all_reencoding", "False", false, NULL},
    {"min_image_size", "0", false, NULL},
    {"max_image_area", "inf", false, NULL},
    {"max_aspect_ratio", "inf", false, NULL},
    {"incremental_mode", "incremental", false, NULL},
    {"user_agent_token", "None", false,
     "added to the name drover-worker, not to that of a Firefox"},
    {"disallowed_header_directives", "noai,noimageai,noindex,noimageindex", false, NULL},
    {"ignore_ssl_certificate", "False", false, "1.47 always checks; later versions have it"},
#define SETTING(...)
#define SETTING_FIXED(name, value, why) {#name, value, true, why},
#include "worker_download.def"
};

static const char calls[] =
    "\nThe same work, as img2dataset is called for it and in fewer words:\n"
    "  img2dataset --url_list=laion400m-meta --input_format=parquet --url_col=URL \\\n"
    "      --caption_col=TEXT --output_format=webdataset --output_folder=laion400m \\\n"
    "      --processes_count=16 --thread_count=128 --image_size=256 \\\n"
    "      --save_additional_columns='[\"NSFW\",\"similarity\",\"LICENSE\"]'\n"
    "  drover-worker download --url_list laion400m-meta --output_folder laion400m \\\n"
    "      --save_additional_columns '[\"NSFW\",\"similarity\",\"LICENSE\"]'\n"
    "The options of the first are taken as they are; the second leaves out defaults.\n";

const struct img2dataset_option *img2dataset_options(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(options);
    return options;
}

bool img2dataset_refuses(const char *name, const char *value, struct buf *faults)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        const struct img2dataset_option *o = &options[i];
        if (!o->refused || strcmp(name, o->name) != 0) {
            continue;
        }
        if (value == NULL || strcasecmp(value, o->dflt) != 0) {
            buf_addf(faults, "%s '%.60s' is not possible: %s\n", name, value != NULL ? value : "",
                     o->why);
        }
        return true;
    }
    return false;
}

static const char *default_of(const struct setting *r)
{
    return r->dflt == NULL ? "required" : r->dflt[0] == '\0' ? "None" : r->dflt;
}

static void help_line(const struct img2dataset_option *o, const struct setting *r, struct buf *out)
{
    if (o->refused) {
        settings_help_line(out, o->name, "refused, only %s is taken: %s", o->dflt, o->why);
        return;
    }
    ASSERT(r != NULL);
    const char *dflt = default_of(r);
    bool same = strcmp(dflt, o->dflt) == 0;
    settings_help_line(out, o->name, "same name%s%s%s%s%s%s%s%s",
                       r->flag != NULL ? ", also --" : "", r->flag != NULL ? r->flag : "",
                       same ? "" : "; default there ", same ? "" : o->dflt, same ? "" : ", here ",
                       same ? "" : dflt, o->why != NULL ? "; " : "", o->why != NULL ? o->why : "");
}

void img2dataset_help(const struct setting *rows, size_t rows_n, struct buf *out)
{
    buf_add_cstr(out, calls);
    buf_add_cstr(out, "\nEvery option of img2dataset 1.47, each with the same meaning here unless "
                      "said:\n");
    size_t n;
    const struct img2dataset_option *all = img2dataset_options(&n);
    for (size_t i = 0; i < n; i++) {
        help_line(&all[i], setting_find(rows, rows_n, all[i].name), out);
    }
}
