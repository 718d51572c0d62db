#!/usr/bin/env python3
"""Checks that a picture is well-formed SVG and has the texts that are given, such as the names of its axes.

usage: check_picture.py PICTURE.svg TEXT...
"""

import sys
import xml.etree.ElementTree as xml

texts = {element.text for element in xml.parse(sys.argv[1]).iter("{http://www.w3.org/2000/svg}text")}
missing = [text for text in sys.argv[2:] if text not in texts]
sys.exit(f"{sys.argv[1]} has no text {', '.join(missing)}; it has {sorted(texts)}" if missing else 0)
