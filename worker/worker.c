/* drover-worker: the entry point of our containers. One program with several commands, so that one
 * image serves every stage; the job's ContainerArguments name the command. */
#include "common/cleanup.h"
#include "common/log_people.h"
#include "common/memory.h"
#include "common/version.h"
#include "copy/copy.h"
#include "copy/copy_options.h"
#include "download/part/download.h"
#include "download/part/options.h"
#include "index/index.h"
#include "index/index_options.h"
#include "sample/serve.h"
#include "sample/train.h"
#include "worker_protocol.h"
#include <stdio.h>

struct subcommand {
    const char *name;
    int (*run)(int argc, char *const *argv);
    void (*settings)(struct buf *out);
    const char *help;
    const char *examples;
};
static const struct subcommand verbs[] = {
    {"download", download_main, options_help, "files of URLs in, shards of images out",
     "  drover-worker download --parquet part-00000.parquet --output shards/\n"
     "  drover-worker download --parquet s3://b/meta/part-00000.parquet \\\n"
     "      --output s3://b/img/00000/ --image_size 384 --resize_mode keep_ratio\n"
     "  drover-worker download --url_list lists/ --input_format csv.gz \\\n"
     "      --output_folder out --caption_col alt\n"
     "  drover-worker download --parquet p.parquet --output out --output_format parquet\n"
     "  drover-worker download --parquet p.parquet --output out \\\n"
     "      --allow-net 127.0.0.1:8000\n"},
    {"copy", copy_main, copy_options_help, "files from HTTP(S) or S3 into S3, resumed and verified",
     "  drover-worker copy --from 's3://public/laion/*.parquet' --unsigned \\\n"
     "      --to 's3://b/meta/{file_name}'\n"
     "  drover-worker copy --from 'https://host/part-[00000-00127].parquet' \\\n"
     "      --to 's3://b/meta/{part:05d}.parquet' --expect_files 128\n"
     "\nA run that stops, or whose source refuses it, keeps what it copied of a file for the\n"
     "next run: in S3 a multipart upload, which is paid (upload_kept in the log). Give the\n"
     "bucket a lifecycle rule AbortIncompleteMultipartUpload for those of no next run (that\n"
     "of deploy/cloudformation/prerequisites.yaml has one).\n"},
    {"index", index_main, index_options_help, "webdataset shards in, one JSON line a pair out",
     "  drover-worker index --input shards/ --output index/\n"
     "  drover-worker index --input s3://b/img/ --output s3://b/img/index/ \\\n"
     "      --sample 0.01 --path-prefix /opt/ml/input/data/data\n"},
    {"train-sample", train_main, train_help, "trains a small model on an index, on 1 to 8 hosts",
     "  drover-worker train-sample --input index/index.jsonl --steps 1000\n"},
    {"serve-sample", serve_main, serve_help, "answers /ping and /invocations from that model",
     "  drover-worker serve-sample --model /opt/ml/model/model.json --port 8080\n"},
};

static void usage(FILE *out)
{
    (void)fprintf(out, "drover-worker VERB [--setting value ...]\n\n");
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        (void)fprintf(out, "  %-12s %s\n", verbs[i].name, verbs[i].help);
    }
    (void)fprintf(out, "  version      print the version of the manifest this worker writes\n\n"
                       "Inside a training job settings come as hyperparameters of the same names.\n"
                       "drover-worker VERB --help explains the settings of each.\n");
}

static void verb_usage(const struct subcommand *v)
{
    AUTO_BUF struct buf settings = BUF_INIT(64u << 10);
    v->settings(&settings);
    (void)printf("drover-worker %s [--setting value ...]\n%s.\n\n%s\nExamples:\n%s", v->name,
                 v->help, buf_cstr(&settings), v->examples);
}

int main(int argc, char **argv)
{
    log_set_program("drover-worker");
    log_set_terminal_style(LOG_STYLE_SENTENCE);
    memory_of_libraries();
    const char *verb = argc > 1 ? argv[1] : "--help";
    /* SageMaker runs an image without arguments as "train". */
    int skip = 2;
    if (strcmp(verb, "train") == 0) {
        verb = argc > 2 ? argv[2] : "download";
        skip = argc > 2 ? 3 : 2;
    }
    verb = strcmp(verb, "serve") == 0 ? "serve-sample" : verb; /* what endpoints run */
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        if (strcmp(verb, verbs[i].name) != 0) {
            continue;
        }
        for (int k = skip; k < argc; k++) {
            if (strcmp(argv[k], "--help") == 0 || strcmp(argv[k], "-h") == 0) {
                verb_usage(&verbs[i]);
                return WP_EXIT_OK;
            }
        }
        return verbs[i].run(argc - skip, argv + skip);
    }
    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "help") == 0) {
        usage(stdout);
        return WP_EXIT_OK;
    }
    if (strcmp(verb, "version") == 0 || strcmp(verb, "--version") == 0) {
        (void)printf("drover-worker %s, manifest version %d\n", DROVER_VERSION, WP_VERSION);
        return WP_EXIT_OK;
    }
    (void)fprintf(stderr, "drover-worker: unknown verb '%.60s'; see drover-worker --help\n", verb);
    return WP_EXIT_USAGE;
}
