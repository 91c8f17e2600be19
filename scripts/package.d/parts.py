#!/usr/bin/python3
"""Which packages of Debian the bytes of a release come from. As a command it writes them as an SPDX 2.3 list (JSON) beside FILE, an
archive or a package that was made of build/release on this very Debian:
  scripts/package.d/parts.py FILE"""
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
PROGRAMS = [BUILD / "reprise", BUILD / "reprise-document"]
DOCS = pathlib.Path("/usr/share/doc")
# Short names of licences in Debian's copyright files that SPDX calls otherwise (https://spdx.org/licenses).
SPDX_NAMES = {"Expat": "MIT", "PostgreSQL": "PostgreSQL", "curl": "curl", "Zlib": "Zlib", "zlib": "Zlib", "GPL-2": "GPL-2.0-only", "GPL-2+": "GPL-2.0-or-later",
              "GPL-3+": "GPL-3.0-or-later", "LGPL-2": "LGPL-2.0-only", "LGPL-2+": "LGPL-2.0-or-later", "LGPL-2.1": "LGPL-2.1-only", "LGPL-2.1+": "LGPL-2.1-or-later",
              "LGPL-3+": "LGPL-3.0-or-later", "BSL-1.0": "BSL-1.0", "Boost-1.0": "BSL-1.0", "Apache-2.0": "Apache-2.0", "Apache-2": "Apache-2.0", "MIT": "MIT", "ISC": "ISC",
              "BSD-3-clause": "BSD-3-Clause", "BSD-3-Clause": "BSD-3-Clause", "BSD-2-clause": "BSD-2-Clause", "BSD-2-Clause": "BSD-2-Clause", "CC0-1.0": "CC0-1.0",
              "public-domain": None}


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout


def late_libraries():
    """The libraries that the program loads when they are needed, which no tool sees: {name: file}."""
    names = re.findall(r'"(lib[^"]+)"', (BUILD / "generated/library_names.cc").read_text())
    return {name: output("g++", f"-print-file-name={name}").strip() for name in names}


def libraries():
    """Every library that the programs load, but for those of glibc: {name: file}."""
    found = late_libraries()
    for line in output("ldd", *PROGRAMS, *found.values()).splitlines():
        if match := re.match(r"\s+(\S+) => (/\S+)", line):
            found[match[1]] = match[2]
        assert "not found" not in line, line
    owners = owners_of(found.values())
    return {name: file for name, file in sorted(found.items()) if owners[file] != "libc6"}


def owners_of(files):
    """{file: the package that has installed it}, without files that no package has."""
    named = {}  # as packages may name a file: some list /lib, from before it became /usr/lib
    for file in files:
        real = os.path.realpath(file)
        for name in (real, real.removeprefix("/usr")):
            named.setdefault(name, []).append(file)
    listed = subprocess.run(["dpkg-query", "-S", *named], capture_output=True, text=True, check=False).stdout
    owners = {}
    for line in listed.splitlines():
        packages, _, name = line.partition(": ")
        for file in named.get(name, []):
            owners[file] = packages.split(",")[0].split(":")[0]
    return owners


def built_in():
    """The packages whose headers and scripts have been compiled or bundled into the programs."""
    files, is_ours = set(), False
    for line in output("ninja", "-C", BUILD, "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            is_ours = line.startswith("src/")
        elif is_ours and line.startswith("    /usr/"):
            files.add(line.strip())
    for page in BUILD.glob("page/meta*.json"):
        inputs = (os.path.normpath(ROOT / name) for name in json.loads(page.read_text())["inputs"])
        files |= {name for name in inputs if name.startswith("/usr/")}
    return set(owners_of(sorted(files)).values())


def licence_of(package):
    """The licence of most of it, if its copyright file says that in Debian's format."""
    try:
        text = (DOCS / package / "copyright").read_text(errors="replace")
    except OSError:
        return "NOASSERTION"
    stanza = re.search(r"^Files: *\n? *\*.*?(?=\n\n|\Z)", text, re.M | re.S)
    named = stanza and re.search(r"^License: *(.+)$", stanza[0], re.M)
    words = re.split(r" +(or|and) +", named[1].strip()) if named else [""]
    spdx = [{"or": "OR", "and": "AND"}.get(word) or SPDX_NAMES.get(word) for word in words]
    return " ".join(spdx) if all(spdx) else "NOASSERTION"


def as_spdx(package, comment):
    format_ = "${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t${Homepage}"
    version, architecture, source, source_version, homepage = output("dpkg-query", "-W", "-f", format_, package).split("\t")
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text(), re.M)).get("VERSION_CODENAME", "")
    return {"SPDXID": f"SPDXRef-{re.sub('[^A-Za-z0-9.-]', '-', package)}", "name": package, "versionInfo": version, "supplier": "Organization: Debian",
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, **({"homepage": homepage} if homepage else {}),
            "sourceInfo": f"built from Debian's source package {source} {source_version}", "licenseConcluded": "NOASSERTION", "licenseDeclared": licence_of(package),
            "copyrightText": "NOASSERTION", "comment": comment,
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:deb/debian/{package}@{version.replace(':', '%3A').replace('+', '%2B')}?arch={architecture}&distro={release}"}]}


def spdx(file):
    """The list of what is in an archive, or of what is in a package and what that depends on."""
    version = output(PROGRAMS[0], "--version").split()[-1]
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    whole = {"SPDXID": "SPDXRef-reprise", "name": "reprise", "versionInfo": version, "packageFileName": file.name, "supplier": "NOASSERTION", "downloadLocation": "NOASSERTION",
             "filesAnalyzed": False, "checksums": [{"algorithm": "SHA256", "checksumValue": digest}], "licenseConcluded": "NOASSERTION", "licenseDeclared": "Apache-2.0",
             "copyrightText": "Copyright 2026 The Reprise developers", "primaryPackagePurpose": "APPLICATION"}
    loaded = libraries()
    owners = owners_of(loaded.values())
    is_archive = file.name.endswith(".tar.gz")
    parts, relations = [], [("SPDXRef-DOCUMENT", "DESCRIBES", whole["SPDXID"])]
    for package in sorted(set(owners.values())):
        names = " ".join(name for name, path in loaded.items() if owners[path] == package)
        parts.append(as_spdx(package, f"has {names}"))
        relations.append((whole["SPDXID"], "CONTAINS" if is_archive else "DEPENDS_ON", parts[-1]["SPDXID"]))
    for package in sorted(built_in() - set(owners.values())):
        parts.append(as_spdx(package, "headers or scripts, compiled or bundled into the programs"))
        relations.append((whole["SPDXID"], "STATIC_LINK", parts[-1]["SPDXID"]))
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": file.name,
            "documentNamespace": f"https://reprise.invalid/spdx/{file.name}-{digest}",
            "creationInfo": {"created": f"{created:%Y-%m-%dT%H:%M:%SZ}", "creators": ["Tool: reprise-scripts/package.d/parts.py"]}, "packages": [whole, *parts],
            "comment": "licenseDeclared is that of most files of a source package, as Debian's copyright file has it. The archive has all of these files in share/doc/reprise/licences.",
            "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other} for one, kind, other in relations]}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    artefact = pathlib.Path(sys.argv[1])
    artefact.with_name(artefact.name + ".spdx.json").write_text(json.dumps(spdx(artefact), indent=1, ensure_ascii=False) + "\n")
