#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every sentence of librdmacm's man pages has a test, or a line of SENTENCES.md that says why not.

Reads the pages where they are installed. A sentence is listed if it is part of what a row has, or
consists of what rows have, but for two words such as "or else" between them; rows of both tables
count. `pages.py --missing` prints the others, with what is missing in capitals.
"""
import fnmatch
import glob
import gzip
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tap

PAGES = [page for name in ("3/rdma_*.3*", "7/rdma_cm.7*", "7/rsocket.7*")
         for page in sorted(glob.glob("/usr/share/man/man" + name))]
# In a list of arguments, what has none of these only names one of them.
PROMISES = re.compile(r"\b(may|must|will|should|if|is|are|can|cannot|not)\b", re.I)
# The parts of a page that promise nothing: its name, how it is spelled, whom to ask.
SILENT = {"NAME", "SYNOPSIS", "SEE ALSO", "AUTHOR", "AUTHORS"}
ROW = re.compile(r"^\| (rdma_[\w*]+|rsocket) \| (.+) \| .+ \|$")
LITERALS = {"[cq]": "'", "[aq]": "'", "[lq]": '"', "[rq]": '"', "[bu]": "", "-": "-", "&": ""}


def plain(line):
    """A line of troff without its fonts and escapes."""
    line = re.sub(r"\\f(\[\w*\]|.)", "", line)
    return re.sub(r"\\(\[\w+\]|.)", lambda m: LITERALS.get(m.group(1), ""), line)


def paragraphs(path):
    """The paragraphs of a page that say something, with the part they are in."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf8") as file:
        lines = file.read().splitlines()
    section, found, verbatim = "", [("", "")], False
    for line in lines:
        head = re.match(r"\.SH\s+\"?([^\"]*)\"?", line)
        if head:
            section = head.group(1).strip().upper()
            found.append((section, ""))
        elif re.match(r"\.(nf|EX)\b", line):
            verbatim = True
        elif re.match(r"\.(fi|EE)\b", line):
            verbatim = False
        elif re.match(r"\.(P|PP|LP|IP|TP|br|sp|RS|RE)\b", line) or not line.strip():
            found.append((section, ""))
        elif not verbatim and section and section not in SILENT:
            said = re.match(r"\.(?:B|I|BI|BR|RB|IR)\s+(.*)", line)
            if said or not line.startswith((".", "'")):
                text = plain(said.group(1).replace('"', "") if said else line)
                found[-1] = (section, f"{found[-1][1]} {text}")
    return [(part, " ".join(text.split())) for part, text in found if text.strip()]


def sentences(path):
    for part, paragraph in paragraphs(path):
        for sentence in re.split(r"(?<=[.;:])\s+(?=[A-Z\"(%])", paragraph):
            if re.search(r"\w", sentence) and \
                    (part != "ARGUMENTS" or PROMISES.search(sentence)):
                yield sentence


def words(text):
    """What two texts are compared by."""
    return re.findall(r"\w+", text.lower())


def listed():
    """Page: what SENTENCES.md has of it."""
    rows = {}
    with open(os.path.join(HERE, "SENTENCES.md"), encoding="utf8") as file:
        for match in filter(None, map(ROW.match, file.read().splitlines())):
            rows.setdefault(match.group(1), []).append(words(match.group(2)))
    return rows


def rows_of(rows, page):
    """A page of a row may be a pattern."""
    for pattern, texts in rows.items():
        if fnmatch.fnmatchcase(page, pattern):
            yield from texts


def places(part, whole):
    """Where the words of part begin in the whole."""
    return [i for i in range(len(whole) - len(part) + 1) if whole[i:i + len(part)] == part]


def lacks(sentence, rows):
    """The words of a sentence, in capitals those that no row has; None: it is listed."""
    said = words(sentence)
    if any(places(said, row) for row in rows):
        return None
    left = [word.upper() for word in said]
    for row in rows:
        for i in places(row, said) if len(row) > 1 else []:
            left[i:i + len(row)] = row
    text = " ".join(left)
    return text if re.search(r"(\b[A-Z0-9_]+\b ?){3}", text) or text.isupper() else None


def missing():
    rows = listed()
    for path in PAGES:
        page = os.path.basename(path).split(".")[0]
        of_page = list(rows_of(rows, page))
        for sentence in sentences(path):
            lost = lacks(sentence, of_page)
            if lost:
                yield page, lost


def main():
    if not PAGES:
        tap.skip("every sentence of the man pages is listed", "they are not installed")
        return tap.end()
    lost = list(missing())
    if "--missing" in sys.argv[1:]:
        for page, sentence in lost:
            print(f"| {page} | {sentence} |")
        return 0
    tap.judge("every sentence of the man pages is listed",
              ", ".join(f"{page}: {sentence}" for page, sentence in lost[:5]))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
