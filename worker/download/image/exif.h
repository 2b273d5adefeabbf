/* The exif column: JSON text of tag names and values, "{}" when there are none. */
#pragma once
#include "common/buf.h"
/* For JPEG, PNG and WebP. Names as exifread spells them ("Image Make", "EXIF DateTimeOriginal",
 * "Image Tag 0x9A00"), values in its notation ("[1, 1/2]"), except that a number stays a number
 * where exifread has a word for it. Maker notes, user comments and XMP are left out, as by
 * img2dataset. At most IMAGE_EXIF_BYTES_MAX; more is cut to whole tags. */
void exif_json(struct str body, struct buf *out);
/* The EXIF orientation, 1 to 8; 1 when it is not given. */
int exif_orientation(struct str body);
