/* The exif column: JSON text of tag names and values, "{}" when there are none. */
#pragma once
#include "common/buf.h"
/* Tag names as exifread spells them ("Image Make", "EXIF DateTimeOriginal"), values in libexif's
 * words. At most IMAGE_EXIF_BYTES_MAX; more is cut to whole tags. */
void exif_json(struct str body, struct buf *out);
/* How the picture has to be turned to be seen upright, 1 to 8 as EXIF counts; 1 when it says
 * nothing. Of JPEG and WebP. */
int exif_orientation(struct str body);
