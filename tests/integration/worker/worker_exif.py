#!/usr/bin/python3
"""Aim: the exif column has the tags exifread finds, under its names, and no others. Method: pictures of
twelve cameras with tags written by exiftool (JPEG, PNG and WebP, both byte orders, with thumbnails, GPS,
texts that are not UTF-8 and tags that have no name), one download, and the column held against
exifread's own output as img2dataset asks for it. PICTURES=300: so many (60)."""
import logging
import os
import random
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *
import exifread

logging.disable(logging.CRITICAL)
tap = Tap()
CAMERAS = [("Canon", "Canon EOS 5D Mark III", "EF24-105mm f/4L"), ("NIKON CORPORATION", "NIKON D850", "24-70mm"),
           ("SONY", "ILCE-7M3", "FE 55mm F1.8"), ("FUJIFILM", "X-T3", "XF35mmF2"), ("Apple", "iPhone 12 Pro", "back camera"),
           ("samsung", "SM-G991B", ""), ("Google", "Pixel 6", ""), ("OLYMPUS CORPORATION", "E-M1MarkII", "12-40mm"),
           ("Panasonic", "DC-GH5", "LUMIX"), ("LEICA CAMERA AG", "LEICA Q2", "SUMMILUX"), ("DJI", "FC3170", "24mm"),
           ("HMD Global", "Nokia 7 \u00e9", "")]
# What exiftool can write of each folder; a picture has some of them.
TAGS = {"IFD0:Orientation#": "6", "IFD0:XResolution": "72", "IFD0:YResolution": "300.5", "IFD0:ResolutionUnit#": "2",
        "IFD0:Software": "Ver 1.0", "IFD0:ModifyDate": "2021:05:04 03:02:01", "IFD0:Artist": "J\u00f6rg", "IFD0:Copyright": "(c)",
        "IFD0:HostComputer": "h", "IFD0:YCbCrPositioning#": "1", "IFD0:Rating": "4", "IFD0:RatingPercent": "75",
        "IFD0:XPTitle": "title \u00e9", "IFD0:XPAuthor": "author", "IFD0:XPKeywords": "a;b", "IFD0:XPComment": "c",
        "IFD0:WhitePoint": "0.3127 0.329", "IFD0:PrimaryChromaticities": "0.64 0.33 0.3 0.6 0.15 0.06",
        "IFD0:YCbCrCoefficients": "0.299 0.587 0.114", "IFD0:ReferenceBlackWhite": "0 255 128 255 128 255",
        "IFD0:ImageDescription": "a description", "IFD0:DocumentName": "d", "IFD0:PageName": "p", "IFD0:PreviewColorSpace#": "1",
        "ExifIFD:ExposureTime": "1/250", "ExifIFD:FNumber": "2.8", "ExifIFD:ExposureProgram#": "2", "ExifIFD:ISO": "400",
        "ExifIFD:SensitivityType#": "2", "ExifIFD:RecommendedExposureIndex": "400", "ExifIFD:ExifVersion": "0232",
        "ExifIFD:DateTimeOriginal": "2021:05:04 03:02:01", "ExifIFD:CreateDate": "2021:05:04 03:02:01",
        "ExifIFD:OffsetTime": "+01:00", "ExifIFD:OffsetTimeOriginal": "+01:00", "ExifIFD:ComponentsConfiguration#": "1 2 3 0",
        "ExifIFD:CompressedBitsPerPixel": "3", "ExifIFD:ShutterSpeedValue": "1/250", "ExifIFD:ApertureValue": "2.8",
        "ExifIFD:BrightnessValue": "-1.5", "ExifIFD:ExposureCompensation": "-0.67", "ExifIFD:MaxApertureValue": "2.8",
        "ExifIFD:SubjectDistance": "3.2", "ExifIFD:MeteringMode#": "5", "ExifIFD:LightSource#": "0", "ExifIFD:Flash#": "16",
        "ExifIFD:FocalLength": "50", "ExifIFD:SubjectArea": "100 200 30 40", "ExifIFD:UserComment": "left out",
        "ExifIFD:SubSecTime": "12", "ExifIFD:SubSecTimeOriginal": "12", "ExifIFD:FlashpixVersion": "0100",
        "ExifIFD:ColorSpace#": "1", "ExifIFD:ExifImageWidth": "4000", "ExifIFD:ExifImageHeight": "3000",
        "ExifIFD:RelatedSoundFile": "a.wav", "ExifIFD:FlashEnergy": "1.5", "ExifIFD:FocalPlaneXResolution": "5000.5",
        "ExifIFD:FocalPlaneYResolution": "5000.5", "ExifIFD:FocalPlaneResolutionUnit#": "2", "ExifIFD:ExposureIndex": "1",
        "ExifIFD:SensingMethod#": "2", "ExifIFD:FileSource#": "3", "ExifIFD:SceneType#": "1", "ExifIFD:CustomRendered#": "0",
        "ExifIFD:ExposureMode#": "0", "ExifIFD:WhiteBalance#": "0", "ExifIFD:DigitalZoomRatio": "1",
        "ExifIFD:FocalLengthIn35mmFormat": "50", "ExifIFD:SceneCaptureType#": "0", "ExifIFD:GainControl#": "1",
        "ExifIFD:Contrast#": "0", "ExifIFD:Saturation#": "0", "ExifIFD:Sharpness#": "0", "ExifIFD:SubjectDistanceRange#": "2",
        "ExifIFD:ImageUniqueID": "0123456789abcdef0123456789abcdef", "ExifIFD:OwnerName": "o", "ExifIFD:SerialNumber": "s1",
        "ExifIFD:LensInfo": "24 105 4 4", "ExifIFD:LensMake": "m", "ExifIFD:LensSerialNumber": "l1", "ExifIFD:Gamma": "2.2",
        "ExifIFD:CompositeImage#": "1", "ExifIFD:AmbientTemperature": "-3.5", "ExifIFD:SpectralSensitivity": "x",
        "ExifIFD:ImageHistory": "ih", "ExifIFD:CFAPattern": "[Red,Green][Green,Blue]",
        "GPS:GPSVersionID": "2.3.0.0", "GPS:GPSLatitude": "48.137", "GPS:GPSLatitudeRef": "N", "GPS:GPSLongitude": "11.575",
        "GPS:GPSLongitudeRef": "E", "GPS:GPSAltitude": "519.25", "GPS:GPSAltitudeRef#": "0", "GPS:GPSTimeStamp": "03:02:01",
        "GPS:GPSDateStamp": "2021:05:04", "GPS:GPSMapDatum": "WGS-84", "GPS:GPSSpeed": "3.3", "GPS:GPSSpeedRef": "K",
        "GPS:GPSImgDirection": "180.5", "GPS:GPSImgDirectionRef": "T", "GPS:GPSProcessingMethod": "GPS",
        "GPS:GPSHPositioningError": "4.5", "GPS:GPSDifferential#": "0", "GPS:GPSDestBearing": "90",
        "InteropIFD:InteropIndex": "R98", "InteropIFD:InteropVersion": "0100", "InteropIFD:RelatedImageWidth": "10",
        "IFD1:XResolution": "72", "IFD1:YResolution": "72", "IFD1:Compression#": "6", "IFD1:ResolutionUnit#": "2"}
KINDS = [("JPEG", ".jpg"), ("JPEG", ".jpg"), ("JPEG", ".jpg"), ("PNG", ".png"), ("WEBP", ".webp")]


def tagged(d, n):
    """n files with tags, by one run of exiftool."""
    rnd = random.Random(7)
    thumb = os.path.join(d, "thumb.jpg")
    with open(thumb, "wb") as f:
        f.write(encode(photo(32, 24, 1), "JPEG"))
    args, files = ["-charset\niptc=utf8\n-charset\nexif=utf8\n-m\n-q\n-overwrite_original"], []
    for i in range(n):
        make, model, lens = CAMERAS[i % len(CAMERAS)]
        fmt, ext = rnd.choice(KINDS)
        files.append(os.path.join(d, "%03d%s" % (i, ext)))
        with open(files[-1], "wb") as f:
            f.write(encode(photo(64, 48, i % 9), fmt))
        own = rnd.sample(sorted(TAGS), rnd.choice([0, 3, 20, 60, len(TAGS)]))
        args += ["-ExifByteOrder=" + rnd.choice(["II", "MM"]), "-IFD0:Make=" + make, "-IFD0:Model=" + model]
        args += ["-ExifIFD:LensModel=" + lens] * bool(lens) + ["-%s=%s" % (t, TAGS[t]) for t in own]
        args += ["-IFD1:ThumbnailImage<=" + thumb] * (fmt == "JPEG" and rnd.random() < 0.4)
        args += [files[-1], "-execute"]
    listed = os.path.join(d, "arguments")
    with open(listed, "w") as f:
        f.write("\n".join(args) + "\n")
    p = subprocess.run(["exiftool", "-@", listed, "-common_args", "-m", "-q", "-overwrite_original"],
                       capture_output=True, text=True)
    bodies = []
    for path in files:
        with open(path, "rb") as f:
            bodies.append(f.read())
    return bodies, p.stderr


def block(entries, little=True, ifd_next=0):
    """An EXIF block of one folder: (tag, type, count, bytes)."""
    e = "<" if little else ">"
    head, data = b"", b""
    at = 8 + 2 + 12 * len(entries) + 4
    for tag, kind, count, value in entries:
        head += struct.pack(e + "HHI", tag, kind, count)
        if len(value) <= 4:
            head += value.ljust(4, b"\0")
        else:
            head += struct.pack(e + "I", at + len(data))
            data += value
    return (b"II*\0" if little else b"MM\0*") + struct.pack(e + "IH", 8, len(entries)) + head + struct.pack(e + "I", ifd_next) + data


def with_block(data, first=b""):
    """A JPEG with that EXIF block, and what comes before it."""
    body = encode(photo(40, 30, 2), "JPEG")
    app1 = b"Exif\0\0" + data
    return body[:2] + first + b"\xff\xe1" + struct.pack(">H", len(app1) + 2) + app1 + body[2:]


def odd():
    """Blocks no camera should write."""
    app0 = b"\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0"
    xmp = b"\xff\xe1\0\x20http://ns.adobe.com/xap/1.0/\0\0"
    loop = block([(0x0112, 3, 1, b"\3\0")], ifd_next=8)
    return [with_block(block([(0x010F, 2, 4, b"abc\0"), (0x010F, 2, 4, b"def\0"), (0x920B, 5, 1, struct.pack("<II", 6, 4)),
                              (0xA20B, 5, 2, struct.pack("<IIII", 1, 0, 0, 7)), (0x9A9A, 3, 1, b"\7\0")])),
            with_block(block([(0x829A, 10, 1, struct.pack(">ii", -6, -4)), (0x9204, 10, 1, struct.pack(">ii", 6, -4)),
                              (0x9201, 9, 2, struct.pack(">ii", -1, 5)), (0x0102, 3, 60, b"\0\1" * 60),
                              (0x0103, 3, 1200, b"\0\1" * 1200), (0x9999, 99, 1, b"abcd"), (0x9998, 0, 1, b"abcd"),
                              (0x010E, 2, 0, b""), (0x0131, 2, 3, b" x "), (0x9000, 7, 4, b"\1\2\3\4"), (0xA000, 7, 4, b"\0\0\0\0"),
                              (0x9C9D, 1, 6, b"a\0\xe9\0b\0")], little=False)),
            with_block(loop), with_block(block([(0x0112, 3, 1, b"\6\0")]), first=app0 + xmp),
            with_block(block([(0x8769, 4, 1, b"\xff\xff\xff\x7f"), (0x8825, 4, 1, b"\xf0\xff\xff\x7f"), (0x010F, 2, 1 << 30, b"\0\0\1\0\0")])),
            with_block(block([(0x8825, 2, 4, b"abc\0"), (0x0112, 2, 2, b"6\0")]))]


def theirs(body):
    """The column as img2dataset makes it."""
    return {k: str(v).strip() for k, v in exifread.process_file(io.BytesIO(body), details=False).items() if v is not None}


def columns(d, server, bodies):
    """The exif column of each body, downloaded."""
    part, out = os.path.join(d, "part.parquet"), os.path.join(d, "out")
    make_parquet(part, [{"url": server.serve("/%d" % i, b)} for i, b in enumerate(bodies)], {"url": "VARCHAR"})
    status, _, err = run(["--parquet", part, "--output", out, "--allow-net", server.net])
    tap.ok(status == 0, "the pictures are downloaded", err)
    return [json.loads(r["exif"]) for r in read_parquet(os.path.join(out, "00000.parquet"))]


def main():
    n = int(os.environ.get("PICTURES", "60"))
    with Folder() as d:
        bodies, said = tagged(d, n)
        bodies += odd()
        ours = columns(d, Server(), bodies)
        want = [theirs(b) for b in bodies]
        tags = sum(len(w) for w in want)
        tap.ok(tags > 20 * n and len({k for w in want for k in w}) > 110, "exiftool wrote %d tags with %d names" %
               (tags, len({k for w in want for k in w})), said)
        invented = [(i, sorted(set(o) - set(w))) for i, (o, w) in enumerate(zip(ours, want)) if set(o) - set(w)]
        missing = [(i, sorted(set(w) - set(o))) for i, (o, w) in enumerate(zip(ours, want)) if set(w) - set(o)]
        tap.eq(invented, [], "no tag of %d pictures is invented" % len(bodies))
        tap.eq(missing, [], "no tag of %d pictures is missing" % len(bodies))
        values = {}
        for o, w in zip(ours, want):
            for k in set(o) & set(w):
                if o[k] != w[k]:
                    values.setdefault(k, (o[k], w[k]))
        words = {k: v for k, v in values.items() if not re.fullmatch(r"\d*|\[(\d+(, \d+)*)?\]", v[0])}
        tap.eq(words, {}, "values differ only where exifread has a word for a number (%d names)" % len(values))
    return tap.done()


sys.exit(main())
