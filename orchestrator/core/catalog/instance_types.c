/* Instance types: see catalog.h. */
#include "catalog.h"
#include <string.h>

struct instance_type {
    const char *name;
    int gpus, disk_gb;
};
static const struct instance_type types[] = {
#define X(name, gpus, disk_gb) {name, gpus, disk_gb},
#include "instance_types.def"
#undef X
};

static const struct {
    const char *name;
    bool disks, frameworks;
} hosting_families[] = {
#define X(name, disks, frameworks) {name, disks, frameworks},
#include "hosting_families.def"
#undef X
};

static const struct instance_type *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (strcmp(types[i].name, name) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

int catalog_gpus(const char *instance_type)
{
    const struct instance_type *t = find(instance_type);
    return t == NULL ? -1 : t->gpus;
}

int catalog_disk_gb(const char *instance_type)
{
    const struct instance_type *t = find(instance_type);
    return t == NULL ? 0 : t->disk_gb;
}

/* medium, large, xlarge, 24xlarge */
static bool size_ok(const char *size)
{
    size_t digits = strspn(size, "0123456789");
    return strcmp(size + digits, "xlarge") == 0 ||
           (digits == 0 && (strcmp(size, "large") == 0 || strcmp(size, "medium") == 0));
}

/* A type of the same family; NULL: there is none, or the size is not one that EC2 uses. */
static const struct instance_type *relative(const char *instance_type)
{
    const char *dot = strrchr(instance_type, '.');
    size_t n = dot == NULL ? 0 : (size_t)(dot + 1 - instance_type);
    for (size_t i = 0; n > 0 && size_ok(dot + 1) && i < ARRAY_LEN(types); i++) {
        if (strncmp(types[i].name, instance_type, n) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

bool catalog_family_known(const char *instance_type)
{
    return relative(instance_type) != NULL;
}

/* The row of hosting_families of a type; -1: it has none, or a size that EC2 does not use. */
static int hosting_family(const char *instance_type)
{
    const char *dot = strrchr(instance_type, '.');
    size_t n = dot == NULL ? 0 : (size_t)(dot - instance_type);
    for (size_t i = 0; n > 0 && size_ok(dot + 1) && i < ARRAY_LEN(hosting_families); i++) {
        if (strlen(hosting_families[i].name) == n &&
            strncmp(hosting_families[i].name, instance_type, n) == 0) {
            return (int)i;
        }
    }
    return -1;
}

bool catalog_family_hosts(const char *instance_type)
{
    return catalog_family_known(instance_type) || hosting_family(instance_type) >= 0;
}

bool catalog_has_disks(const char *instance_type)
{
    int i = hosting_family(instance_type);
    return catalog_disk_gb(instance_type) > 0 || (i >= 0 && hosting_families[i].disks);
}

/* No family of the second table has GPUs. */
int catalog_family_gpus(const char *instance_type)
{
    const struct instance_type *t = find(instance_type);
    t = t != NULL ? t : relative(instance_type);
    return t != NULL ? t->gpus : hosting_family(instance_type) >= 0 ? 0 : -1;
}

/* Images for Neuron cores have names of their own, whatever the generation. */
bool catalog_runs_frameworks(const char *instance_type)
{
    int i = hosting_family(instance_type);
    bool neuron =
        strncmp(instance_type, "ml.trn", 6) == 0 || strncmp(instance_type, "ml.inf", 6) == 0;
    neuron = neuron && strchr(instance_type + 6, '.') != NULL;
    return !neuron && (i < 0 || hosting_families[i].frameworks);
}

static size_t common_start(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] != '\0' && a[n] == b[n]) {
        n++;
    }
    return n;
}

/* Of equally near types the one with the longest common start: a slip is more often at the end of
 * a family's name than in its number. */
const char *catalog_type_guess(const char *instance_type)
{
    const struct instance_type *best = NULL;
    size_t best_distance = SIZE_MAX;
    size_t best_start = 0;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        size_t d = str_distance(str_of(instance_type), str_of(types[i].name));
        size_t start = common_start(instance_type, types[i].name);
        if (d < best_distance || (d == best_distance && start > best_start)) {
            best = &types[i];
            best_distance = d;
            best_start = start;
        }
    }
    return best_distance <= 3 ? best->name : NULL;
}
