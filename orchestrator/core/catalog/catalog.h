/* What AWS offers by name: instance types of training jobs and endpoints, and the container
 * images of the frameworks. The tables are the .def files of this folder. */
#pragma once
#include "common/buf.h"
#include "common/err.h"

/* GPUs of an instance type; -1 when the type is not in the table. */
int catalog_gpus(const char *instance_type);
/* Gigabytes of its local disks, which SageMaker uses in place of a volume; 0: none, or unknown. */
int catalog_disk_gb(const char *instance_type);
/* True when types of its family are in the table and its size is one that EC2 uses. */
bool catalog_family_known(const char *instance_type);
/* The same for types that serve models: families of training, and those that only serve. */
bool catalog_family_hosts(const char *instance_type);
/* True when the type has local disks in place of a volume; training and hosting types. */
bool catalog_has_disks(const char *instance_type);
/* GPUs of the type, or of another of its family when it is not in the table; -1: neither is, as of
 * a family that is newer. */
int catalog_family_gpus(const char *instance_type);
/* False where AWS's framework images do not run: on Arm, Inferentia and Trainium. */
bool catalog_runs_frameworks(const char *instance_type);
/* The known type that is nearest to one that is not known; NULL when nothing is near. */
const char *catalog_type_guess(const char *instance_type);

struct image_wish {
    const char *framework; /* pytorch or huggingface */
    const char *version;   /* of the framework, as the user wrote it: 1.8 or 1.8.1 */
    const char *pytorch;   /* huggingface: the version of PyTorch; NULL: the table's */
    const char *python;    /* py38; NULL: the table's default */
    bool inference;        /* an image that serves a model */
    bool gpu;
    bool compiler;      /* with the SageMaker Training Compiler */
    bool smdistributed; /* changes the tag of one old version */
};
/* Appends the URI of AWS's image in a region. ERR_INVALID: `err` says what does not exist. */
bool catalog_image_uri(const struct image_wish *w, const char *region, struct buf *ret,
                       struct err *err) MUST_CHECK;
/* The account whose registry has AWS's framework images in a region; NULL: not known. */
const char *catalog_registry(const char *region);
/* True when it is that of some region. */
bool catalog_is_registry(const char *account);
/* "1.3.1, 1.4.0, ...": what a hint names when a version is unknown. inference: of images that serve
 * models. */
void catalog_versions(const char *framework, bool inference, struct buf *ret);
