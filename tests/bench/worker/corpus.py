#!/usr/bin/python3
"""Makes the worker's bench corpus: corpus.py FOLDER N. 86 % JPEG (a fifth of them progressive),
7 % PNG, 7 % WebP, sides from 300 to 1600 pixels, about 105 kB an image: what a crawl of the web's
photographs looks like to a decoder. The same seed gives the same pictures; a finished folder is
left as it is. list.txt names the files."""
import multiprocessing
import os
import sys

import cv2
import numpy as np

VERSION = 4  # of the recipe: a folder of another recipe is made anew
RATIOS = ((4, 3), (3, 2), (1, 1), (16, 9), (3, 4), (2, 3))


def size(r):
    """Width and height: the longer side between 400 and 1600, small ones more often."""
    longer = int(round(400 * 4 ** (r.rand() ** 1.25)))
    a, b = RATIOS[r.randint(len(RATIOS))]
    return max(longer * a // max(a, b), 300), max(longer * b // max(a, b), 300)


def photo(r, w, h, grain, colour=0.45):
    """Soft fields at many scales, hard edges, some lettering and grain, as a camera sees."""
    im = np.zeros((h, w, 3), np.float32)
    for cells in (3, 7, 17, 41, 97):
        small = r.rand(cells, cells, 3).astype(np.float32)
        im += cv2.resize(small, (w, h), interpolation=cv2.INTER_CUBIC) * (300.0 / cells ** 0.7)
    im -= im.mean(axis=(0, 1))
    # Real pictures have far less colour than light.
    grey = im.mean(axis=2, keepdims=True)
    im = 128 + 1.1 * grey + colour * (im - grey)
    for _ in range(r.randint(4, 14)):
        at = (r.rand(r.randint(3, 7), 2) * [w, h]).astype(np.int32)
        cv2.fillPoly(im, [at], [float(c) for c in 128 + 70 * colour / 0.45 * r.randn(3) * [0.5, 0.7, 0.6]])
    if r.rand() < 0.3:
        cv2.putText(im, "drover %d" % r.randint(10 ** 6), (w // 10, h // 2), 1,
                    max(w / 220.0, 1), (245, 245, 245), 2)
    noise = r.randn(h, w).astype(np.float32)[..., np.newaxis] * grain
    im = cv2.GaussianBlur(im, (0, 0), 0.6) + noise
    return im.clip(0, 255).astype(np.uint8)


def graphic(r, w, h):
    """What people save as PNG: small photographs, flat areas, lettering; a quarter with alpha."""
    kind = r.rand()
    im = photo(r, w, h, 3 if kind > 0.4 else 0)
    if kind <= 0.4:
        im = (im // 4 * 4).astype(np.uint8)
    if kind < 0.25:
        alpha = np.full((h, w), 255, np.uint8)
        cv2.circle(alpha, (w // 2, h // 2), min(w, h) // 3, 90, -1)
        return np.dstack([im, alpha])
    return im[:, :, 1] if kind < 0.35 else im


def one(i, colour=0.45):
    r = np.random.RandomState(1000003 + i)
    kind = r.rand()
    w, h = size(r)
    if kind < 0.86:
        q = int(r.choice([75, 80, 85, 90, 95], p=[0.15, 0.2, 0.3, 0.25, 0.1]))
        flags = [cv2.IMWRITE_JPEG_QUALITY, q, cv2.IMWRITE_JPEG_PROGRESSIVE, int(kind < 0.172)]
        return "jpg", cv2.imencode(".jpg", photo(r, w, h, 1.4 + 5.8 * r.rand(), colour), flags)[1]
    if kind < 0.93:
        w, h = max(w * 51 // 100, 300), max(h * 51 // 100, 300)
        return "png", cv2.imencode(".png", graphic(r, w, h))[1]
    return "webp", cv2.imencode(".webp", photo(r, w, h, 2 + 3.5 * r.rand(), colour),
                                [cv2.IMWRITE_WEBP_QUALITY, 82])[1]


def write_one(folder, i, colour):
    cv2.setNumThreads(1)
    ext, data = one(i, colour)
    name = "%05d.%s" % (i, ext)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data.tobytes())
    return name


def make(folder, n, colour=0.45):
    """colour: 0.45 as in photographs; 1.3 as in graphics, half of whose JPEGs RGB would clip."""
    done = os.path.join(folder, "done-%d-%d" % (VERSION, n))
    if os.path.exists(done):
        return
    os.makedirs(folder, exist_ok=True)
    with multiprocessing.Pool() as pool:
        names = pool.starmap(write_one, [(folder, i, colour) for i in range(n)], 10)
    with open(os.path.join(folder, "list.txt"), "w") as f:
        f.write("".join(n + "\n" for n in names))
    open(done, "w").close()


def describe(folder):
    """One line of figures per format: how many, bytes."""
    sizes = {}
    with open(os.path.join(folder, "list.txt")) as f:
        for name in f.read().split():
            sizes.setdefault(name.split(".")[1], []).append(
                os.path.getsize(os.path.join(folder, name)))
    n = sum(len(v) for v in sizes.values())
    parts = ["%s %.0f %% of %.0f kB" % (k, 100 * len(v) / n, sum(v) / len(v) / 1000)
             for k, v in sorted(sizes.items())]
    return "%d images, mean %.0f kB: %s" % (n, sum(map(sum, sizes.values())) / n / 1000,
                                            ", ".join(parts))


if __name__ == "__main__":
    make(sys.argv[1], int(sys.argv[2]))
    print(describe(sys.argv[1]))
