/* Any text of a job or a service: the same cause each time, within the table, and what is not known
 * by anything is UNKNOWN. */
#include "core/failure/cause.h"
#include "core/failure/cause_text.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct cause_text t = cause_of_text(text);
    ASSERT(t.cause > CAUSE_NONE && t.cause < CAUSE_COUNT);
    ASSERT((t.by == CAUSE_BY_NOTHING) <= (t.cause == CAUSE_UNKNOWN));
    ASSERT(cause_of_text(text).cause == t.cause);
    enum cause job = cause_of_job(JOB_END_FAILED, text, false);
    ASSERT(job > CAUSE_NONE && job < CAUSE_COUNT);
    enum cause refusal = cause_of_refusal(400, "ValidationException", text);
    ASSERT(refusal != CAUSE_OOM && refusal != CAUSE_DISK_FULL && refusal != CAUSE_TIMEOUT);
    char signature[SIGNATURE_MAX + 1];
    cause_signature(text, signature);
    ASSERT(strlen(signature) <= SIGNATURE_MAX);
    return 0;
}
