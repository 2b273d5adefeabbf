/* A file that is not there: of the data, or of the program. */
#include "cause_read.h"

/* Of pictures, sounds, films, tables, arrays, archives, records, weights, sequences, scans, points,
 * maps, documents, models of solvers and of molecules. */
static const char *const ends_of_data[] = {
    ".csv",         ".tsv",       ".parquet",    ".jsonl",  ".tif",   ".tiff",      ".jpg",
    ".jpeg",        ".png",       ".gif",        ".bmp",    ".webp",  ".wav",       ".flac",
    ".mp3",         ".mp4",       ".avi",        ".mkv",    ".webm",  ".npy",       ".npz",
    ".h5",          ".hdf5",      ".nc",         ".dcm",    ".tar",   ".zip",       ".tgz",
    ".gz",          ".zst",       ".tfrecord",   ".arrow",  ".avro",  ".orc",       ".rec",
    ".safetensors", ".pth",       ".ckpt",       ".bam",    ".cram",  ".sam",       ".fastq",
    ".fasta",       ".fa",        ".fq",         ".vcf",    ".bed",   ".gtf",       ".gff",
    ".nii",         ".mha",       ".mhd",        ".nrrd",   ".svs",   ".edf",       ".pcd",
    ".ply",         ".las",       ".laz",        ".bag",    ".mcap",  ".db3",       ".shp",
    ".gpkg",        ".geojson",   ".grib",       ".grb",    ".grib2", ".vrt",       ".xlsx",
    ".xls",         ".docx",      ".pdf",        ".epub",   ".warc",  ".wet",       ".srt",
    ".vtt",         ".m4a",       ".ogg",        ".opus",   ".mov",   ".m4v",       ".mps",
    ".pdb",         ".gro",       ".xtc",        ".trr",    ".cpt",   ".coor",      ".psf",
    ".eam",         ".alloy",     ".msh",        ".cas",    ".upf",   ".bin",       ".idx",
    ".mds",         ".tfrecords", ".feather",    ".mat",    ".rds",   ".jsonlines", ".ndjson",
    ".arff",        ".ppm",       ".exr",        ".heic",   ".dicom", ".mgz",       ".mgh",
    ".fif",         ".bdf",       ".webdataset", ".sqlite", ".pt",    ".onnx",      ".gguf",
    ".pkl",         ".nemo",      ".pdparams",   ".vec",    ".spm"};

/* Does a word end like the name of a file of data: "shard-000.tar", "a/b.parquet'"? */
bool cause_names_data_file(const struct folded *f)
{
    for (size_t i = 0; i < ARRAY_LEN(ends_of_data); i++) {
        size_t n = strlen(ends_of_data[i]);
        for (const char *p = cause_has(f, ends_of_data[i]) ? f->s : NULL;
             p != NULL && (p = strstr(p, ends_of_data[i])) != NULL; p += n) {
            if (p > f->s && cause_is_word(p[-1]) && !cause_is_word(p[n]) && p[n] != '.') {
                return true;
            }
        }
    }
    return false;
}

static bool ends_with_one(struct str t, const char *const *ends, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = strlen(ends[i]);
        if (t.n > k && memcmp(t.p + t.n - k, ends[i], k) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_folder_of_data(struct str path)
{
    static const char *const names[] = {"data",   "images", "imgs", "annotations",
                                        "labels", "train",  "val",  "corpus"};
    while (path.n > 0) {
        struct str part = str_split(&path, '/');
        if (path.n > 0 && str_find(part, STR("dataset")) >= 0) {
            return true;
        }
        for (size_t i = 0; path.n > 0 && i < ARRAY_LEN(names); i++) {
            if (str_eq_cstr(part, names[i])) {
                return true;
            }
        }
    }
    return false;
}

/* What a program brings along or writes is its own, wherever it lies. */
static bool is_path_of_data(struct str path)
{
    static const char *const own[] = {
        "/opt/ml/model", "/opt/ml/code", "/opt/ml/output", "/opt/ml/proc", "/opt/ml/checkpoint",
        "ray_results",   "-packages/",   "/lib/",          "/src/",        "/usr/",
        "/tmp/",         "output/",      "outputs/",       "results/",     "logs/"};
    static const char *const own_ends[] = {".py",   ".so",  ".sh",  ".h",    ".hpp",  ".c",
                                           ".cc",   ".cpp", ".cu",  ".cuh",  ".yaml", ".yml",
                                           ".toml", ".cfg", ".ini", ".sock", ".lock", ".log",
                                           ".exe",  ".jar", ".js",  ".ts",   ".r",    ".conf"};
    return !cause_has_part(path, own, ARRAY_LEN(own)) &&
           !ends_with_one(path, own_ends, ARRAY_LEN(own_ends)) &&
           (ends_with_one(path, ends_of_data, ARRAY_LEN(ends_of_data)) || has_folder_of_data(path));
}

/* A path among the words from `from` to `to`. */
static bool has_path_of_data(const char *from, const char *to)
{
    static const char around[] = " :'\"`()[]<>,;=";
    while (from < to) {
        size_t n = strcspn(from, around);
        n = MIN(n, (size_t)(to - from));
        struct str path = {from, n};
        while (path.n > 0 && path.p[path.n - 1] == '.') {
            path.n--;
        }
        if (path.n > 3 && is_path_of_data(path)) {
            return true;
        }
        from += n + 1;
    }
    return false;
}

/* "No such file or directory: 'data/train/1.jpg'". Where the name tells nothing, the file is the
 * program's own affair: the other readers know that. */
enum cause cause_by_missing_file(const struct folded *f)
{
    enum { PATH_REACH = 200 };
    static const char *const words[] = {
        "no such file",    "file not found",   "filenotfound",     "file does not exist",
        "image not found", "' does not exist", "cannot be opened", "could not open",
        "cannot open",     "~enoent"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        for (const char *p = cause_has(f, words[i]) ? f->s : NULL;
             p != NULL && (p = cause_find(f, p, words[i])) != NULL; p++) {
            const char *from = p - f->s > PATH_REACH ? p - PATH_REACH : f->s;
            size_t behind = strlen(words[i]) + PATH_REACH;
            if (has_path_of_data(from, p + strnlen(p, behind))) {
                return CAUSE_BAD_INPUT;
            }
        }
    }
    return CAUSE_UNKNOWN;
}
