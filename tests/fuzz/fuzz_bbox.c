/* Boxes to blur, from a column of strangers: what is accepted lies in the picture, whatever else
 * fails with a text. */
#include "download/image/bbox.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct bboxes boxes;
    struct err err = ERR_INIT;
    if (!bbox_parse((struct str){(const char *)data, size}, &boxes, &err)) {
        ASSERT(err.code == ERR_INVALID);
        ASSERT(err.message[0] != '\0');
        return 0;
    }
    ASSERT(boxes.n >= 0);
    ASSERT(boxes.n <= BBOX_MAX);
    for (int i = 0; i < boxes.n; i++) {
        const struct bbox *b = &boxes.at[i];
        ASSERT(b->x0 >= 0 && b->x0 <= b->x1 && b->x1 <= 1); /* NaN fails, too */
        ASSERT(b->y0 >= 0 && b->y0 <= b->y1 && b->y1 <= 1);
    }
    return 0;
}
