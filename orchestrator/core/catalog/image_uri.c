/* URIs of AWS's framework images, as the SageMaker Python SDK writes them: see catalog.h. */
#include "catalog.h"
#include <string.h>

struct pytorch_row {
    const char *version, *pythons;
    bool inference;
};
struct huggingface_row {
    const char *version, *pytorch, *python, *gpu_end, *cpu_end; /* cpu_end NULL: GPUs only */
    bool inference, compiler;
};
static const struct pytorch_row pytorch_rows[] = {
#define PYTORCH(version, pythons, inference) {version, pythons, inference},
#define HUGGINGFACE(version, pytorch, python, end, compiler)
#define HUGGINGFACE_INFERENCE(version, pytorch, python, gpu_end, cpu_end)
#include "frameworks.def"
#undef PYTORCH
#undef HUGGINGFACE
#undef HUGGINGFACE_INFERENCE
};
static const struct huggingface_row huggingface_rows[] = {
#define PYTORCH(version, pythons, inference)
#define HUGGINGFACE(version, pytorch, python, end, compiler)                                       \
    {version, pytorch, python, end, NULL, false, compiler},
#define HUGGINGFACE_INFERENCE(version, pytorch, python, gpu_end, cpu_end)                          \
    {version, pytorch, python, gpu_end, cpu_end, true, false},
#include "frameworks.def"
#undef PYTORCH
#undef HUGGINGFACE
#undef HUGGINGFACE_INFERENCE
};
static const struct {
    const char *region, *account;
} registries[] = {
#define X(region, account) {region, account},
#include "registries.def"
#undef X
};

const char *catalog_registry(const char *region)
{
    for (size_t i = 0; i < ARRAY_LEN(registries); i++) {
        if (strcmp(registries[i].region, region) == 0) {
            return registries[i].account;
        }
    }
    return NULL;
}

bool catalog_is_registry(const char *account)
{
    for (size_t i = 0; i < ARRAY_LEN(registries); i++) {
        if (strcmp(registries[i].account, account) == 0) {
            return true;
        }
    }
    return false;
}

static const char *dns_suffix(const char *region)
{
    if (strncmp(region, "cn-", 3) == 0) {
        return "amazonaws.com.cn";
    }
    if (strncmp(region, "us-isob-", 8) == 0) {
        return "sc2s.sgov.gov";
    }
    return strncmp(region, "us-iso-", 7) == 0 ? "c2s.ic.gov" : "amazonaws.com";
}

/* `given` is the version itself, or its alias of two numbers: 1.8 of 1.8.1. */
static bool names_version(const char *given, const char *version)
{
    size_t n = strlen(given);
    bool two = strchr(given, '.') != NULL && strchr(given, '.') == strrchr(given, '.');
    return strcmp(given, version) == 0 ||
           (two && strncmp(given, version, n) == 0 && version[n] == '.');
}

static const struct pytorch_row *pytorch_find(const char *version, bool inference)
{
    const struct pytorch_row *found = NULL;
    for (size_t i = 0; i < ARRAY_LEN(pytorch_rows); i++) {
        const struct pytorch_row *row = &pytorch_rows[i];
        bool fits = (row->inference || !inference) && names_version(version, row->version);
        found = fits ? row : found;
    }
    return found;
}

static const struct huggingface_row *huggingface_find(const char *version, bool inference)
{
    const struct huggingface_row *found = NULL;
    for (size_t i = 0; i < ARRAY_LEN(huggingface_rows); i++) {
        const struct huggingface_row *row = &huggingface_rows[i];
        bool fits = row->inference == inference && names_version(version, row->version);
        found = fits ? row : found;
    }
    return found;
}

static void add_version(struct buf *ret, size_t *n, bool fits, const char *version)
{
    if (fits) {
        buf_addf(ret, "%s%s", (*n)++ == 0 ? "" : ", ", version);
    }
}

void catalog_versions(const char *framework, bool inference, struct buf *ret)
{
    bool pytorch = strcmp(framework, "pytorch") == 0;
    size_t n = 0;
    for (size_t i = 0; pytorch && i < ARRAY_LEN(pytorch_rows); i++) {
        add_version(ret, &n, pytorch_rows[i].inference || !inference, pytorch_rows[i].version);
    }
    for (size_t i = 0; !pytorch && i < ARRAY_LEN(huggingface_rows); i++) {
        const struct huggingface_row *row = &huggingface_rows[i];
        add_version(ret, &n, row->inference == inference, row->version);
    }
}

/* The python to write: the one asked for when the row has it, else the row's first. */
static bool python_of(const char *pythons, const char *asked, char ret[static 16], struct err *err)
{
    struct str list = str_of(pythons);
    for (struct str p = str_split(&list, ' '); p.n > 0; p = str_split(&list, ' ')) {
        if (asked == NULL || str_eq_cstr(p, asked)) {
            (void)snprintf(ret, 16, STR_FMT, STR_ARG(p));
            return true;
        }
    }
    return err_set(err, ERR_INVALID, "no image with %s: it has %s", asked, pythons);
}

static bool pytorch_tag(const struct image_wish *w, struct buf *ret, struct err *err)
{
    const struct pytorch_row *row = pytorch_find(w->version, w->inference);
    char python[16];
    if (row == NULL) {
        return err_set(err, ERR_INVALID, "no image of pytorch %.20s %sis known", w->version,
                       w->inference ? "that serves models " : "");
    }
    bool compiled = strcmp(row->version, "1.12.0") == 0 || strcmp(row->version, "1.13.1") == 0;
    if (w->compiler && !compiled) {
        return err_set(err, ERR_INVALID, "the Training Compiler has no image of pytorch %.20s",
                       w->version);
    }
    if (!python_of(row->pythons, w->python, python, err)) {
        return false;
    }
    buf_addf(ret, "pytorch-%s%s:%s-%s-%s", w->compiler ? "trcomp-" : "",
             w->inference ? "inference" : "training", w->version, w->gpu ? "gpu" : "cpu", python);
    if (w->gpu && strcmp(row->version, "1.6.0") == 0) { /* two tags that the SDK spells out */
        bool plain = strcmp(w->version, "1.6") == 0;
        buf_add_cstr(ret, plain || w->smdistributed ? "-cu110-ubuntu18.04" : "");
        buf_add_cstr(ret, plain && !w->smdistributed ? "-v3" : "");
    }
    return true;
}

static bool huggingface_tag(const struct image_wish *w, struct buf *ret, struct err *err)
{
    const struct huggingface_row *row = huggingface_find(w->version, w->inference);
    char python[16];
    if (row == NULL) {
        return err_set(err, ERR_INVALID, "no image of huggingface %.20s %sis known", w->version,
                       w->inference ? "that serves models " : "");
    }
    if (w->pytorch != NULL && !names_version(w->pytorch, row->pytorch)) {
        return err_set(err, ERR_INVALID, "the image of huggingface %.20s has pytorch %s, not %.20s",
                       w->version, row->pytorch, w->pytorch);
    }
    if (w->compiler && !row->compiler) {
        return err_set(err, ERR_INVALID, "the Training Compiler has no image of huggingface %.20s",
                       w->version);
    }
    if (!w->gpu && row->cpu_end == NULL) {
        return err_set(err, ERR_INVALID, "images of huggingface for training need GPUs");
    }
    if (!python_of(row->python, w->python, python, err)) {
        return false;
    }
    buf_addf(ret, "huggingface-pytorch-%s%s:%s-transformers%s-%s-%s-%s",
             w->compiler ? "trcomp-" : "", w->inference ? "inference" : "training",
             w->pytorch != NULL ? w->pytorch : row->pytorch, w->version, w->gpu ? "gpu" : "cpu",
             python, w->gpu ? row->gpu_end : row->cpu_end);
    return true;
}

bool catalog_image_uri(const struct image_wish *w, const char *region, struct buf *ret,
                       struct err *err)
{
    const char *account = catalog_registry(region);
    if (account == NULL || (w->compiler && strncmp(region, "cn-", 3) == 0)) {
        return err_set(err, ERR_INVALID, "AWS has no registry of this image in region %.32s",
                       region);
    }
    if (w->compiler && !w->gpu) {
        return err_set(err, ERR_INVALID, "the Training Compiler needs GPUs");
    }
    buf_addf(ret, "%s.dkr.ecr.%s.%s/", account, region, dns_suffix(region));
    return strcmp(w->framework, "pytorch") == 0 ? pytorch_tag(w, ret, err)
                                                : huggingface_tag(w, ret, err);
}
