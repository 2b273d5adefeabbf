/* The exif column: JSON text of tag names and values, "{}" when there are none. */
#pragma once
#include "common/buf.h"
/* Tag names as exifread spells them ("Image Make", "EXIF DateTimeOriginal"), values in libexif's
 * words. At most IMAGE_EXIF_BYTES_MAX; more is cut to whole tags. */
void exif_json(struct str body, struct buf *out);
/* The EXIF orientation, 1 to 8; 1 when it is not given. For JPEG and WebP. */
int exif_orientation(struct str body);
