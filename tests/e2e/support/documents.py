"""Makes small real files of the kinds that people attach."""
import io
import struct
import zipfile
import zlib


def png(width=8, height=8, noise=b""):
    """A picture; `noise` makes it larger, in a chunk that viewers ignore."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + b"\x20\x60\xa0" * width for _ in range(height))
    extra = chunk(b"noIs", noise) if noise else b""
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + extra
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def vast_png(width, height):
    """A small picture whose header claims this size."""
    small = png()
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return small[:16] + header + struct.pack(">I", zlib.crc32(b"IHDR" + header)) + small[33:]


def pdf(pages):
    """A PDF with a text on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>",
               "<< /Type /Pages /Kids [%s] /Count %d >>" % (" ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages))), len(pages)),
               "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for i, text in enumerate(pages):
        stream = "BT /F1 12 Tf 72 720 Td 14 TL " + " ".join(f"({line}) '" for line in text.split("\n")) + " ET"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * i} 0 R >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    return pdf_of(objects)


def pdf_of(objects, trailer=""):
    """A PDF of these objects; the first is its catalog."""
    out, places = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + (text if isinstance(text, bytes) else text.encode()) + b"\nendobj\n"
    table = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode() + b"".join(b"%010d 00000 n \n" % at for at in places)
    return out + f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\nstartxref\n{table}\n%%EOF\n".encode()


def stream(content, entries=""):
    return f"<< {entries} /Length {len(content)} >>\nstream\n".encode() + content + b"\nendstream"


def tangled_pdf(drawn, levels=12, times=10):
    """A PDF of a few kilobytes in which each form draws the next ten times, so no reader finishes it."""
    def needs(number):
        return f"/Resources << /Font << /F1 3 0 R >> /XObject << /N {number} 0 R >> >>"
    form = "/Type /XObject /Subtype /Form /BBox [0 0 612 792]"
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [4 0 R] /Count 1 >>", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
               f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {needs(6)} /Contents 5 0 R >>", stream(b"/N Do")]
    objects += [stream(b"/N Do " * times, f"{form} {needs(7 + level)}") for level in range(levels)]
    return pdf_of([*objects, stream(drawn, f"{form} /Resources << /Font << /F1 3 0 R >> >>")])


def bomb_pdf(size=300 << 20):
    """A PDF with a page whose content is compressed a thousandfold."""
    packer = zlib.compressobj(9)
    content = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(size >> 20)) + packer.flush()
    return pdf_of(["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
                   "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>", stream(content, "/Filter /FlateDecode")])


def encrypted_pdf():
    """A PDF that needs a password (the standard handler, revision 2; the password is unknown)."""
    secret = "<" + "5a" * 32 + ">"
    return pdf_of(["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
                   "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>",
                   f"<< /Filter /Standard /V 1 /R 2 /O {secret} /U {secret} /P -44 >>"], "/Encrypt 4 0 R /ID [<01> <01>]")


def packed_pdf(pages):
    """A PDF whose objects are in compressed streams, as in most files, so the number of pages is not visible in the bytes."""
    objects = {1: "<< /Type /Catalog /Pages 2 0 R >>", 3: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
               2: "<< /Type /Pages /Kids [%s] /Count %d >>" % (" ".join(f"{5 + i} 0 R" for i in range(pages)), pages)}
    for i in range(pages):
        objects[5 + i] = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents 4 0 R >>"
    body, index = "", ""
    for number, text in sorted(objects.items()):
        index += f"{number} {len(body)} "
        body += text + " "
    content, held, table = pages + 5, pages + 6, pages + 6
    out, places = b"%PDF-1.5\n", {}
    packed = zlib.compress((index + body).encode())
    for number, data in ((4, stream(b"BT /F1 12 Tf 72 720 Td (a heron) Tj ET")),
                         (content, stream(packed, f"/Type /ObjStm /N {len(objects)} /First {len(index)} /Filter /FlateDecode"))):
        places[number] = len(out)
        out += f"{number} 0 obj\n".encode() + data + b"\nendobj\n"
    start = len(out)
    order = sorted(objects)
    rows = [struct.pack(">BIH", 0, 0, 65535)]
    for number in range(1, table):
        rows.append(struct.pack(">BIH", 1, places[number], 0) if number in places else struct.pack(">BIH", 2, content, order.index(number)))
    rows.append(struct.pack(">BIH", 1, start, 0))
    out += f"{held} 0 obj\n".encode() + stream(zlib.compress(b"".join(rows)), f"/Type /XRef /Size {table + 1} /W [1 4 2] /Root 1 0 R /Filter /FlateDecode") + b"\nendobj\n"
    return out + f"startxref\n{start}\n%%EOF\n".encode()


def archive(members, compress=True):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return buffer.getvalue()


def locked(content):
    """The archive with its entries marked as encrypted."""
    out = bytearray(content)
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        place = out.find(mark)
        while place >= 0:
            out[place + at] |= 1
            place = out.find(mark, place + 4)
    return bytes(out)


def linked(name, target):
    """An archive whose entry is a symbolic link."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        entry = zipfile.ZipInfo(name)
        entry.create_system = 3
        entry.external_attr = 0o120777 << 16
        out.writestr(entry, target)
    return buffer.getvalue()


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
ODT = "application/vnd.oasis.opendocument.text"


def docx(text, head="", **more):
    body = "".join(f"<w:p><w:pPr><w:tabs><w:tab w:val='left' w:pos='720'/></w:tabs></w:pPr><w:r><w:t>{line}</w:t></w:r></w:p>"
                   for line in text.split("\n"))
    table = "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>left</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>right</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    return archive({"word/document.xml": f"<?xml version='1.0'?>{head}<w:document {W}><w:body>{body}{table}</w:body></w:document>", **more})


def alternatives(new, old):
    """Alternatives within a line: text for newer programs, and for older ones."""
    def run(line):
        return f"<w:r><w:t>{line}</w:t></w:r>"
    markup = "xmlns:mc='http://schemas.openxmlformats.org/markup-compatibility/2006'"
    return (f"</w:t></w:r><mc:AlternateContent {markup}><mc:Choice Requires='wps'>{run(new)}</mc:Choice><mc:Fallback>{run(old)}</mc:Fallback>"
            "</mc:AlternateContent><w:r><w:t>")


def relationships(*targets):
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
    each = "".join(f"<Relationship Id='r{n}' Type='{kind}{type_}' Target='{target}'/>" for n, (type_, target) in enumerate(targets))
    return f"<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'>{each}</Relationships>"


def package(folder, main, parts, body, xml):
    """An Office Open XML package: parts are (name, kind, text) that the main part refers to."""
    return archive({"_rels/.rels": relationships(("officeDocument", f"{folder}/{main}")), f"{folder}/{main}": body,
                    f"{folder}/_rels/{main}.rels": relationships(*((kind, name) for name, kind, _ in parts)),
                    **{f"{folder}/{name}": xml(text) for name, _, text in parts}})


def rich_docx(body, *parts):
    """A document with a body of runs, and further parts."""
    return package("word", "document.xml", parts, f"<w:document {W}><w:body>{body}</w:body></w:document>",
                   lambda text: f"<w:x {W}><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:x>")


def run(text, properties=""):
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


def shuffled_pptx():
    """Two slides whose files are not numbered in the order shown, with notes that are numbered differently again."""
    a = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    r = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'

    def page(text):
        return f"<sld {a}><a:p><a:r><a:t>{text}</a:t></a:r></a:p><a:p><a:fld type='slidenum'><a:t>99</a:t></a:fld></a:p></sld>"
    return archive({"_rels/.rels": relationships(("officeDocument", "ppt/presentation.xml")),
                    "ppt/presentation.xml": f"<presentation {r}><sldIdLst><sldId id='256' r:id='r1'/><sldId id='257' r:id='r0'/></sldIdLst></presentation>",
                    "ppt/_rels/presentation.xml.rels": relationships(("slide", "slides/slide1.xml"), ("slide", "slides/slide2.xml")),
                    "ppt/slides/slide1.xml": page("second"), "ppt/slides/slide2.xml": page("first"),
                    "ppt/slides/_rels/slide2.xml.rels": relationships(("notesSlide", "../notesSlides/notesSlide1.xml")),
                    "ppt/notesSlides/notesSlide1.xml": page("of the first")})


def named_docx(name, text, footnotes):
    """A document whose parts can be found only through its relationships."""
    def part(root, line):
        return f"<w:{root} {W}><w:p><w:r><w:t>{line}</w:t></w:r></w:p></w:{root}>"
    folder, own = name.rsplit("/", 1)
    return archive({"_rels/.rels": relationships(("officeDocument", "/" + name)), name: part("document", text),
                    f"{folder}/_rels/{own}.rels": relationships(("footnotes", "./notes2.xml")), f"{folder}/notes2.xml": part("footnotes", footnotes)})


def xlsx(rows):
    strings, cells = [], []
    for number, row in enumerate(rows, 1):
        line = ""
        for column, value in enumerate(row):
            place = f"{chr(65 + column)}{number}"
            if isinstance(value, str):
                line += f'<c r="{place}" t="s"><v>{len(strings)}</v></c>'
                strings.append(value)
            elif value is not None:
                line += f'<c r="{place}"><v>{value}</v></c>'
        cells.append(f'<row r="{number}">{line}</row>')
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    rel = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    return archive({
        "xl/workbook.xml": f'<workbook {main} {rel}><sheets><sheet name="Costs" sheetId="1" r:id="rId7"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
                                      '<Relationship Id="rId7" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f"<worksheet {main}><sheetData>{''.join(cells)}</sheetData></worksheet>",
        "xl/sharedStrings.xml": f"<sst {main}>{''.join(f'<si><t>{each}</t></si>' for each in strings)}</sst>"})


def styled_xlsx(cells):
    """A sheet of (value, format code), with a comment, a text box and a chart."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    a = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    formats = "".join(f'<numFmt numFmtId="{200 + n}" formatCode="{code}"/>' for n, (_, code) in enumerate(cells))
    row = "".join(f'<c r="{chr(65 + n)}1" s="{n}"><v>{value}</v></c>' for n, (value, _) in enumerate(cells))
    return archive({
        "_rels/.rels": relationships(("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook {main} xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><workbookPr date1904="1"/>'
                           '<sheets><sheet name="Days" state="hidden" sheetId="1" r:id="r0"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relationships(("worksheet", "worksheets/sheet1.xml"), ("styles", "styles.xml")),
        "xl/styles.xml": f"<styleSheet {main}><numFmts>{formats}</numFmts><cellStyleXfs><xf numFmtId='9'/></cellStyleXfs>"
                         f"<cellXfs>{''.join(f'<xf numFmtId={chr(34)}{200 + n}{chr(34)}/>' for n in range(len(cells)))}</cellXfs></styleSheet>",
        "xl/worksheets/sheet1.xml": f"<worksheet {main}><sheetData><row r='1'>{row}</row></sheetData></worksheet>",
        "xl/worksheets/_rels/sheet1.xml.rels": relationships(("comments", "../comments1.xml"), ("drawing", "../drawings/drawing1.xml")),
        "xl/comments1.xml": f"<comments {main}><commentList><comment ref='B1' authorId='0'><text><r><t>late</t></r></text></comment></commentList></comments>",
        "xl/drawings/drawing1.xml": f"<d {a}><a:p><a:r><a:t>in a box</a:t></a:r></a:p></d>",
        "xl/drawings/_rels/drawing1.xml.rels": relationships(("chart", "../charts/chart1.xml")),
        "xl/charts/chart1.xml": f"<c {a}><a:p><a:r><a:t>Herons a year</a:t></a:r></a:p></c>"})


ODF = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table", "style"))


def open_document(body, master=""):
    return archive({"mimetype": ODT, "content.xml": f"<office:document-content {ODF} xmlns:dc='http://purl.org/dc/elements/1.1/'><office:body>{body}</office:body></office:document-content>",
                    "styles.xml": f"<office:document-styles {ODF}><office:master-styles><style:master-page>{master}</style:master-page></office:master-styles></office:document-styles>"})


def pptx(slides):
    a = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    members = {"ppt/presentation.xml": "<presentation/>"}
    for number, text in enumerate(slides, 1):
        members[f"ppt/slides/slide{number}.xml"] = f"<sld {a}><a:p><a:r><a:t>{text}</a:t></a:r></a:p></sld>"
    return archive(members)


def odt(text):
    names = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    body = "".join(f"<text:p>{line}</text:p>" for line in text.split("\n"))
    return archive({"mimetype": ODT, "content.xml": f"<office:document-content {names}><office:body>{body}</office:body></office:document-content>"})
