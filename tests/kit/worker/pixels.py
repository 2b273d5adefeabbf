"""Reference for the worker's pixels: img2dataset's resizer, written with OpenCV."""
import cv2
import numpy as np

INTERPOLATION = {"nearest": cv2.INTER_NEAREST, "linear": cv2.INTER_LINEAR, "cubic": cv2.INTER_CUBIC,
                 "area": cv2.INTER_AREA, "lanczos": cv2.INTER_LANCZOS4}


def opened(body):
    """A body as OpenCV reads it, without img2dataset's faults: 16 bits are scaled to 8, not cut off; alpha is
    composited over white.
    """
    im = cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_UNCHANGED)
    if im.dtype == np.uint16:
        im = np.rint(im / 257).astype(np.uint8)
    if im.ndim == 3 and im.shape[2] == 4:
        a = im[:, :, 3, np.newaxis]
        im = np.rint((a / 255 * im[..., :3] + 255 - a).clip(0, 255)).astype(np.uint8)
    return im


def resized(im, mode, size, down="area", up="lanczos"):
    h, w = im.shape[:2]
    base = max(h, w) if mode in ("border", "keep_ratio_largest") else min(h, w)
    if mode != "no":
        scale = size / base
        nw, nh = max(round(w * scale), 1), max(round(h * scale), 1)
        if (nw, nh) != (w, h):
            im = cv2.resize(im, (nw, nh), interpolation=INTERPOLATION[down if base > size else up])
    h, w = im.shape[:2]
    if mode == "border":
        top, left = int((size - h) / 2), int((size - w) / 2)
        im = cv2.copyMakeBorder(im, top, size - h - top, left, size - w - left,
                                cv2.BORDER_CONSTANT, value=[255, 255, 255])
    elif mode == "center_crop":
        y, x = (h - size) // 2, (w - size) // 2
        im = im[y:y + size, x:x + size]
    return im


def reference(body, mode, size, **kw):
    """img2dataset's resizer applied to a body; pixels in RGB or grey."""
    im = resized(opened(body), mode, size, **kw)
    return im if im.ndim == 2 else im[:, :, ::-1]


def decoded(data):
    im = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    return im if im.ndim == 2 else im[:, :, ::-1]
