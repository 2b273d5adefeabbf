/* The pull of a container's image: what stopped it is told by few words, which elsewhere mean other
 * things: "not found" is the image here, no data, and "EOF" is the registry's line. */
#include "cause_read.h"

/* What a text that pulls an image says. */
static const char *const pulls[] = {"cannotpull",
                                    "errimagepull",
                                    "imagepullbackoff",
                                    "failed to pull image",
                                    "failed to pull and unpack",
                                    "error pulling image",
                                    "cannot pull image",
                                    "cannot pull container",
                                    "unable to pull image",
                                    "pull image manifest",
                                    "pull image err",
                                    "failed to register layer",
                                    "failed to extract layer",
                                    "httpreadseeker",
                                    "writing blob: storing blob",
                                    "error from registry",
                                    "manifest blob unknown",
                                    "schema version 1 manifest",
                                    "get https://registry-1.docker.io/v2/",
                                    "get \"https://registry-1.docker.io/v2/",
                                    "head \"https://registry-1.docker.io/v2/",
                                    "failed to copy: read tcp"};

static const struct {
    enum cause cause;
    const char *word;
} reasons[] = {
    {CAUSE_DISK_FULL, "no space left"},
    {CAUSE_DISK_FULL, "disk quota exceeded"},
    {CAUSE_DISK_FULL, "containererror: context canceled"}, /* ECS, whose disk is full */
    {CAUSE_DISK_FULL, "disk is full"},
    {CAUSE_DISK_FULL, "disk full"},
    {CAUSE_DISK_FULL, "disk space"},
    {CAUSE_DISK_FULL, "disk pressure"},
    {CAUSE_THROTTLED, "toomanyrequests"},
    {CAUSE_THROTTLED, "qps exceeded"},
    {CAUSE_THROTTLED, "too many requests"},
    {CAUSE_THROTTLED, "rate limit"},
    {CAUSE_THROTTLED, "rate exceeded"},
    {CAUSE_BAD_IMAGE, "entrypoint"}, /* it was pulled, and cannot be run */
    {CAUSE_BAD_IMAGE, "not executable"},
    {CAUSE_ACCESS_DENIED, "no basic auth credentials"},
    {CAUSE_ACCESS_DENIED, "~unauthorized"},
    {CAUSE_ACCESS_DENIED, "~forbidden"},
    {CAUSE_ACCESS_DENIED, "~denied"},
    {CAUSE_ACCESS_DENIED, "accessdenied"},
    {CAUSE_ACCESS_DENIED, "not authorized"},
    {CAUSE_ACCESS_DENIED, "authentication required"},
    {CAUSE_ACCESS_DENIED, "authorization token has expired"},
    {CAUSE_INTERNAL, "internal server error"},
    {CAUSE_INTERNAL, "bad gateway"},
    {CAUSE_INTERNAL, "service unavailable"},
    {CAUSE_INTERNAL, "temporarily unavailable"},
    {CAUSE_INTERNAL, "gateway time-out"},
    {CAUSE_INTERNAL, "gateway timeout"},
    {CAUSE_NETWORK, "dial tcp"},
    {CAUSE_NETWORK, "read tcp"},
    {CAUSE_NETWORK, "write tcp"},
    {CAUSE_NETWORK, "timed out"},
    {CAUSE_NETWORK, "~timeout"},
    {CAUSE_NETWORK, "deadline exceeded"},
    {CAUSE_NETWORK, "request canceled"},
    {CAUSE_NETWORK, "connection reset"},
    {CAUSE_NETWORK, "connection refused"},
    {CAUSE_NETWORK, "no such host"},
    {CAUSE_NETWORK, "no route to host"},
    {CAUSE_NETWORK, "~unreachable"},
    {CAUSE_NETWORK, "name resolution"},
    {CAUSE_NETWORK, "server misbehaving"},
    {CAUSE_NETWORK, "broken pipe"},
    {CAUSE_NETWORK, "~x509"},
    {CAUSE_NETWORK, ": eof"},
    {CAUSE_NETWORK, "~unexpected eof"},
};

static bool is_pull(const struct folded *f)
{
    for (size_t i = 0; i < ARRAY_LEN(pulls); i++) {
        if (cause_has(f, pulls[i])) {
            return true;
        }
    }
    return false;
}

enum cause cause_by_pull(const struct folded *f)
{
    if (!is_pull(f)) {
        return CAUSE_UNKNOWN;
    }
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (cause_has(f, reasons[i].word)) {
            return reasons[i].cause;
        }
    }
    return CAUSE_BAD_IMAGE; /* it is not there, or is none */
}
