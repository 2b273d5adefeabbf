/* URIs of AWS's framework images, as the SageMaker Python SDK writes them: see catalog.h. */
#include "catalog.h"
#include <string.h>

struct pytorch_row {
    const char *version, *pythons;
};
struct huggingface_row {
    const char *version, *pytorch, *python, *end;
    bool compiler;
};
static const struct pytorch_row pytorch_rows[] = {
#define PYTORCH(version, pythons) {version, pythons},
#define HUGGINGFACE(version, pytorch, python, end, compiler)
#include "frameworks.def"
#undef PYTORCH
#undef HUGGINGFACE
};
static const struct huggingface_row huggingface_rows[] = {
#define PYTORCH(version, pythons)
#define HUGGINGFACE(version, pytorch, python, end, compiler)                                       \
    {version, pytorch, python, end, compiler},
#include "frameworks.def"
#undef PYTORCH
#undef HUGGINGFACE
};
static const struct {
    const char *region, *account;
} registries[] = {
#define X(region, account) {region, account},
#include "registries.def"
#undef X
};

static const char *registry(const char *region)
{
    for (size_t i = 0; i < ARRAY_LEN(registries); i++) {
        if (strcmp(registries[i].region, region) == 0) {
            return registries[i].account;
        }
    }
    return NULL;
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

void catalog_versions(const char *framework, struct buf *ret)
{
    bool pytorch = strcmp(framework, "pytorch") == 0;
    size_t n = pytorch ? ARRAY_LEN(pytorch_rows) : ARRAY_LEN(huggingface_rows);
    for (size_t i = 0; i < n; i++) {
        buf_addf(ret, "%s%s", i == 0 ? "" : ", ",
                 pytorch ? pytorch_rows[i].version : huggingface_rows[i].version);
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
    const struct pytorch_row *row = NULL;
    char python[16];
    for (size_t i = 0; i < ARRAY_LEN(pytorch_rows); i++) {
        row = names_version(w->version, pytorch_rows[i].version) ? &pytorch_rows[i] : row;
    }
    if (row == NULL) {
        return err_set(err, ERR_INVALID, "no image of pytorch %.20s is known", w->version);
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
    const struct huggingface_row *row = NULL;
    char python[16];
    for (size_t i = 0; i < ARRAY_LEN(huggingface_rows); i++) {
        row = names_version(w->version, huggingface_rows[i].version) ? &huggingface_rows[i] : row;
    }
    if (row == NULL) {
        return err_set(err, ERR_INVALID, "no image of huggingface %.20s is known", w->version);
    }
    if (w->pytorch != NULL && !names_version(w->pytorch, row->pytorch)) {
        return err_set(err, ERR_INVALID, "the image of huggingface %.20s has pytorch %s, not %.20s",
                       w->version, row->pytorch, w->pytorch);
    }
    if (w->compiler && !row->compiler) {
        return err_set(err, ERR_INVALID, "the Training Compiler has no image of huggingface %.20s",
                       w->version);
    }
    if (!w->gpu && !w->inference) {
        return err_set(err, ERR_INVALID, "images of huggingface for training need GPUs");
    }
    if (!python_of(row->python, w->python, python, err)) {
        return false;
    }
    const char *os = strchr(row->end, '-') + 1;
    buf_addf(ret, "huggingface-pytorch-%s%s:%s-transformers%s-%s-%s-%s",
             w->compiler ? "trcomp-" : "", w->inference ? "inference" : "training",
             w->pytorch != NULL ? w->pytorch : row->pytorch, w->version, w->gpu ? "gpu" : "cpu",
             python, w->gpu ? row->end : os);
    return true;
}

bool catalog_image_uri(const struct image_wish *w, const char *region, struct buf *ret,
                       struct err *err)
{
    const char *account = registry(region);
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
