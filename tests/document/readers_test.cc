#include "document/readers.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/system.h"
#include "support/test.h"

namespace reprise::document {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

// What a reader makes of these bytes on stdin, without empty lines.
std::string Read(void (*reader)(Output&), const std::string& bytes) {
  const UniqueFd file(::memfd_create("document", MFD_CLOEXEC)), before(::dup(0));
  REQUIRE(::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
  REQUIRE(::dup2(file.get(), 0) == 0);
  Output out;
  reader(out);
  ::dup2(before.get(), 0);
  std::string lines = out.text();
  lines.erase(std::unique(lines.begin(), lines.end(), [](char a, char b) { return a == '\n' && b == '\n'; }),
              lines.end());
  return lines;
}

std::string Office(const Entries& entries) {
  std::string bytes(1u << 20, '\0');
  std::size_t size = 0;
  ::archive* const zip = archive_write_new();
  archive_write_set_format_zip(zip);
  REQUIRE(archive_write_open_memory(zip, bytes.data(), bytes.size(), &size) == ARCHIVE_OK);
  for (const auto& [name, content] : entries) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    REQUIRE(archive_write_header(zip, entry) == ARCHIVE_OK);
    archive_write_data(zip, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(zip);
  archive_write_free(zip);
  bytes.resize(size);
  return Read(ReadOffice, bytes);
}

constexpr const char* kNames =
    " xmlns:w='w' xmlns:m='m' xmlns:a='a' xmlns:p='p' xmlns:pic='pic' xmlns:wp='wp' xmlns:text='t' xmlns:table='ta'"
    " xmlns:office='o' xmlns:style='s' xmlns:draw='d' xmlns:svg='svg' xmlns:presentation='pr' xmlns:c='c'";

std::string Xml(const std::string& root, const std::string& inside, const std::string& attributes = "") {
  return "<" + root + kNames + " " + attributes + ">" + inside + "</" + root + ">";
}

std::string Relations(const Entries& kinds) {
  std::string all = "<Relationships>";
  for (const auto& [kind, target] : kinds) {
    all += "<Relationship Id='" + kind + "' Type='x/" + kind + "' Target='" + target + "'/>";
  }
  return all + "</Relationships>";
}

std::string Docx(const std::string& body, Entries more = {}) {
  more.emplace_back("word/document.xml", Xml("w:document", "<w:body>" + body + "</w:body>"));
  return Office(more);
}

std::string Run(const std::string& text, const std::string& properties = "") {
  return "<w:r><w:rPr>" + properties + "</w:rPr><w:t>" + text + "</w:t></w:r>";
}

std::string Cell(const std::string& text, const std::string& properties = "") {
  return "<w:tc><w:tcPr>" + properties + "</w:tcPr><w:p>" + Run(text) + "</w:p></w:tc>";
}

std::string Pptx(const std::string& shapes, const std::string& attributes = "") {
  const std::string name = "ppt/slides/slide1.xml";
  return Office({{"ppt/presentation.xml", Xml("p:presentation", "")},
                 {name, Xml("p:sld", "<p:cSld><p:spTree>" + shapes + "</p:spTree></p:cSld>", attributes)},
                 {"ppt/slides/_rels/slide1.xml.rels", Relations({{"comments", "../comments/comment1.xml"}})},
                 {"ppt/comments/comment1.xml",
                  Xml("p:cmLst", "<p:cm><p:text>too loud</p:text></p:cm><p:cm><p:text>no</p:text></p:cm>")}});
}

std::string Shape(const std::string& text, const std::string& attributes = "") {
  return "<p:sp><p:nvSpPr><p:cNvPr id='1' " + attributes + "/></p:nvSpPr><p:txBody><a:p><a:r><a:t>" + text +
         "</a:t></a:r></a:p></p:txBody></p:sp>";
}

TEST_CASE("ReadOffice: deleted and hidden parts of a table are left out", "[document]") {
  const auto row = [](const std::string& properties, const std::string& cells) {
    return "<w:tr><w:trPr>" + properties + "</w:trPr>" + cells + "</w:tr>";
  };
  CHECK(Docx("<w:tbl>" + row("", Cell("one") + Cell("two")) +
             row("<w:del w:id='1'/>", Cell("gone") + "<w:tc><w:tbl>" + row("", Cell("within")) + "</w:tbl></w:tc>") +
             row("<w:hidden/>", Cell("hidden")) + row("<w:hidden w:val='0'/><w:ins w:id='2'/>", Cell("three")) +
             row("", Cell("cell gone", "<w:cellDel w:id='3'/>") + Cell("four")) +
             row("", Cell("covered", "<w:vMerge/>") + Cell("five")) + "</w:tbl><w:p>" + Run("after") +
             Run("hidden", "<w:vanish/>") + "<w:del>" + Run("gone") + "</w:del></w:p>") ==
        "one \ttwo\nthree\n\tfour\n\tfive\nafter\n");
}

TEST_CASE("ReadOffice: comments are told, and what cannot be shown is named", "[document]") {
  const std::string picture =
      "<p:pic><p:nvPicPr><p:cNvPr id='2' descr='a heron&#10;at dawn'/></p:nvPicPr></p:pic>"
      "<p:pic><p:nvPicPr><p:cNvPr id='3'/></p:nvPicPr></p:pic>";
  CHECK(Pptx(Shape("Birds") + picture + Shape("arrow", "descr='points north'")) ==
        "--- Slide 1 ---\nBirds\n[picture not shown: a heron at dawn]\n[picture not shown]\narrow\n"
        "[drawing not shown: points north]\nComments:\ntoo loud\nno\n");
  CHECK(Docx("<w:p>" + Run("see") +
             "<w:r><w:drawing><wp:docPr descr='a pond'/><pic:pic><pic:cNvPr id='0'/></pic:pic></w:drawing></w:r></w:p>"
             "<w:p>" +
             Run("next") + "<w:r><w:drawing><wp:docPr descr='sales by year'/></w:drawing></w:r></w:p>") ==
        "see [picture not shown: a pond]\nnext [drawing not shown: sales by year]\n");
  // As old programs write them.
  CHECK(Docx("<w:p>" + Run("old") +
             "<w:r><w:pict><w:shape alt='an otter'><w:imagedata/></w:shape></w:pict></w:r>"
             "<w:r><w:object><w:shape><w:imagedata/></w:shape></w:object></w:r><w:r><w:pict><w:shape/></w:pict></w:r></"
             "w:p>") == "old [picture not shown: an otter] [picture not shown]\n");
}

TEST_CASE("ReadOffice: hidden slides, rows, columns and sheets are marked", "[document]") {
  CHECK(Pptx(Shape("seen") + Shape("not seen", "hidden='1'"), "show='0'")
            .starts_with("--- Slide 1 (hidden) ---\nseen\nComments:"));
  const std::string sheet =
      Xml("worksheet",
          "<cols><col min='2' max='2' hidden='1'/><col min='4' max='28' hidden='true'/>"
          "<col min='30' max='31'/></cols><sheetData><row><c r='A1'><v>1</v></c><c r='B1'><v>2</v>"
          "</c></row><row hidden='1'><c r='A2'><v>3</v></c></row><row hidden='0'><c r='A3'><v>4"
          "</v></c></row></sheetData>");
  CHECK(Office({{"xl/workbook.xml", Xml("workbook", "")}, {"xl/worksheets/sheet1.xml", sheet}}) ==
        "--- Sheet xl/worksheets/sheet1.xml ---\n(hidden columns: B, D to AB)\n1\t2\n3\t(hidden row)\n4\n");
}

std::string Sheet(const std::string& cells, const std::string& strings_name, const std::string& strings) {
  return Office({{"_rels/.rels", Relations({{"officeDocument", "xl/workbook.xml"}})},
                 {"xl/workbook.xml",
                  Xml("workbook", "<sheets><sheet name='S' id='worksheet'/><sheet name='Gone' id='g'/></sheets>")},
                 {"XL/_rels/Workbook.xml.rels",
                  Relations({{"worksheet", "worksheets/sheet1.xml"}, {"sharedStrings", "sharedStrings.xml"}})},
                 {"xl/Worksheets/Sheet1.xml", Xml("worksheet", "<sheetData>" + cells + "</sheetData>")},
                 {strings_name, Xml("sst", strings)}});
}

TEST_CASE("ReadOffice: parts are found in any case, and named if they are missing", "[document]") {
  const std::string cells = "<row><c r='A1' t='s'><v>0</v></c><c r='B1' t='s'><v>7</v></c></row>";
  CHECK(Sheet(cells, "xl/SharedStrings.xml", "<si><t>heron</t></si>") ==
        "--- Sheet S ---\nheron\t[text not found]\n--- Sheet Gone (missing in the file) ---\n");
  CHECK(Sheet(cells, "xl/none.xml", "").starts_with("--- Sheet S ---\n[text not found]\t[text not found]\n"));
  const std::string slide = Xml("p:sld", Shape("two"));
  CHECK(Office({{"ppt/presentation.xml",
                 "<presentation xmlns:r='r'><sldId id='256' r:id='slide'/><sldId id='257' r:id='b'/></presentation>"},
                {"ppt/_rels/presentation.xml.rels",
                 "<Relationships><Relationship Id='slide' Type='x/slide' Target='slides/slide1.xml'/><Relationship "
                 "Id='b' Type='x/slide' Target='slides/Slide2.xml'/></Relationships>"},
                {"ppt/slides/slide2.xml", slide}}) == "--- Slide 1 (missing in the file) ---\n--- Slide 2 ---\ntwo\n");
  CHECK(Docx("<w:p>" + Run("body") + "</w:p>",
             {{"word/_rels/document.xml.rels", Relations({{"header", "Header1.xml"}, {"footer", "footer1.xml"}})},
              {"word/header1.xml", Xml("w:hdr", "<w:p>" + Run("above") + "</w:p>")}}) ==
        "--- Header ---\nabove\n--- Text ---\nbody\n--- Footer ---\n[missing in the file]\n");
}

TEST_CASE("ReadOffice: cells of a sheet are in their columns, with what the file says of them", "[document]") {
  const auto lines = [](const std::string& cells) {
    const std::string all =
        Sheet(cells, "xl/sharedStrings.xml", "<si><t>a_x000D_\nb _x0041__x005F_x0041_ _x1_</t></si>");
    return all.substr(std::string("--- Sheet S ---\n").size(), all.find("--- Sheet Gone") - 16);
  };
  CHECK(lines("<row><c t='str'><v>a</v></c><c/><c t='str'><v>c</v></c></row><row><c t='str'><v>d</v></c></row>") ==
        "a\t\tc\nd\n");
  CHECK(lines("<row><c r='A1' t='s'><v>0</v></c></row>") == "a b A_x0041_ _x1_\n");
  CHECK(lines("<row><c r='A1'><f t='shared' si='0'>B1*2</f></c><c r='B1'><f t='shared' si='0'/></c>"
              "<c r='C1' t='str'><f>\"\"</f><v></v></c><c r='D1' t='s'><f>X</f></c></row>") ==
        "=B1*2\t(formula without a result)\t\t=X\n");
}

std::string M(const std::string& name, const std::string& inside) {
  return "<m:" + name + ">" + inside + "</m:" + name + ">";
}
std::string Sign(const std::string& text) { return M("r", M("t", text)); }
std::string Fraction(const std::string& over, const std::string& under) {
  return M("f", M("num", over) + M("den", under));
}
std::string Power(const std::string& base, const std::string& power) {
  return M("sSup", M("e", base) + M("sup", power));
}

TEST_CASE("ReadOffice: an equation is a line", "[document]") {
  const auto equation = [](const std::string& inside) { return Docx("<w:p>" + M("oMath", inside) + "</w:p>"); };
  const std::string half = Fraction(Sign("1"), Sign("2")), x = Sign("x");
  CHECK(Docx("<w:p>" + Run("dose: ") + M("oMath", half) + Run(" tablet") + "</w:p>") == "dose: 1/2 tablet\n");
  CHECK(Docx("<w:p>" + Run("3") + M("oMath", half) + Run("5 times") + "</w:p>") == "3 1/2 5 times\n");
  CHECK(equation(Power(Sign("10"), Sign("6"))) == "10^6\n");
  CHECK(equation(Power(Sign("10"), Sign("-6"))) == "10^(-6)\n");
  CHECK(equation(Sign("3") + half + x) == "3 1/2 x\n");
  CHECK(equation(Fraction(Sign("a+b"), Sign("2") + x)) == "(a+b)/(2x)\n");
  CHECK(equation(Fraction(half, Sign("\u2212x"))) == "(1/2)/(\u2212x)\n");
  CHECK(equation(Power(M("d", M("e", Sign("a+b"))), Sign("2"))) == "(a+b)^2\n");
  CHECK(equation(M("sSubSup", M("e", x) + M("sub", Sign("i")) + M("sup", Sign("2")))) == "x_i^2\n");
  CHECK(equation(M("rad", M("radPr", "<m:degHide m:val='1'/>") + M("deg", "") + M("e", Sign("x+1")))) ==
        "\u221a(x+1)\n");
  CHECK(equation(M("rad", M("deg", Sign("3")) + M("e", x))) == "\u221a[3]x\n");
  CHECK(equation(M("nary", M("naryPr", "<m:chr m:val='\u2211'/>") + M("sub", Sign("i=1")) + M("sup", Sign("n")) +
                               M("e", x))) == "\u2211_(i=1)^n x\n");
  CHECK(equation(M("d", M("dPr", "<m:begChr m:val='['/><m:endChr m:val=']'/><m:sepChr m:val=';'/>") + M("e", x) +
                            M("e", Sign("y")))) == "[x;y]\n");
  CHECK(equation(M("m", M("mr", M("e", x) + M("e", Sign("y"))) + M("mr", M("e", Sign("1")) + M("e", Sign("2"))))) ==
        "[x, y; 1, 2]\n");
  CHECK(equation(M("func", M("fName", Sign("sin")) + M("e", x))) == "sin x\n");
  CHECK(equation("") == "");
  // Half a megabyte between ten thousand terms would be five gigabytes.
  std::string terms = M("dPr", "<m:sepChr m:val='" + std::string(500'000, ';') + "'/>");
  for (int i = 0; i < 10'000; ++i) terms += M("e", x);
  CHECK(equation(M("d", terms)).size() < 200'000);
  // Slides hold the same markup.
  CHECK(Pptx("<p:sp><a:p>" + M("oMathPara", M("oMath", half)) + "</a:p></p:sp>").starts_with("--- Slide 1 ---\n1/2\n"));
}

TEST_CASE("Readers: what is raised or lowered stays so", "[document]") {
  CHECK(Docx("<w:p>" + Run("10") + Run("6", "<w:vertAlign w:val='superscript'/>") + Run(" H") +
             Run("2", "<w:vertAlign w:val='subscript'/>") + Run("O, 2") +
             Run("nd", "<w:vertAlign w:val='superscript'/>") + "</w:p>") == "10\u2076 H\u2082O, 2nd\n");
  const auto run = [](const std::string& text, const std::string& baseline) {
    return "<a:r><a:rPr baseline='" + baseline + "'/><a:t>" + text + "</a:t></a:r>";
  };
  CHECK(Pptx("<p:sp><a:p>" + run("m", "0") + run("2", "30000") + run("x", "0") + run("1", "-25000") + "</a:p></p:sp>")
            .starts_with("--- Slide 1 ---\nm\u00b2x\u2081\n"));
  CHECK(Office(
            {{"xl/workbook.xml", Xml("workbook", "")},
             {"xl/sharedStrings.xml",
              Xml("sst",
                  "<si><r><t>10</t></r><r><rPr><vertAlign val='superscript'/></rPr><t>6</t></r><r><t>7</t></r></si>")},
             {"xl/worksheets/sheet1.xml", Xml("worksheet", "<sheetData><row><c t='s'><v>0</v></c></row></sheetData>")}})
            .ends_with("10\u20767\n"));
  CHECK(Read(ReadHtml, "<p>10<sup>\u22126</sup> H<sub>2</sub>O x<sup>[1]</sup> 2<sup>nd</sup>") ==
        "10\u207b\u2076 H\u2082O x[1] 2nd\n");
}

TEST_CASE("ReadOffice: numbered paragraphs have their numbers", "[document]") {
  const auto level = [](int at, const std::string& form, const std::string& text, const std::string& more = "") {
    return "<w:lvl w:ilvl='" + std::to_string(at) + "'>" + more + "<w:numFmt w:val='" + form + "'/><w:lvlText w:val='" +
           text + "'/></w:lvl>";
  };
  const std::string numbering =
      Xml("w:numbering",
          "<w:abstractNum w:abstractNumId='0'>" + level(0, "decimal", "\u00a7%1.", "<w:start w:val='3'/>") +
              level(1, "lowerLetter", "%1.%2)") + level(2, "upperRoman", "%3") + "</w:abstractNum>" +
              "<w:abstractNum w:abstractNumId='1'>" + level(0, "bullet", "\uf0b7") + "</w:abstractNum>" +
              "<w:abstractNum w:abstractNumId='2'>" + level(0, "decimal", "Part %1:", "<w:pStyle w:val='Part'/>") +
              level(1, "decimal", "%1.%2", "<w:pStyle w:val='Chapter'/>") + "</w:abstractNum>" +
              "<w:abstractNum w:abstractNumId='3'>" + level(0, "decimal", "Article %1") +
              level(1, "decimal", "Section %2", "<w:lvlRestart w:val='0'/>") +
              level(2, "decimal", "Line %3", "<w:lvlRestart w:val='1'/>") + "</w:abstractNum>" +
              "<w:num w:numId='5'><w:abstractNumId w:val='3'/></w:num>" +
              "<w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num><w:num w:numId='2'><w:abstractNumId "
              "w:val='1'/></w:num>"
              "<w:num w:numId='3'><w:abstractNumId w:val='0'/><w:lvlOverride w:ilvl='0'><w:startOverride w:val='1'/>"
              "</w:lvlOverride></w:num><w:num w:numId='4'><w:abstractNumId w:val='2'/></w:num>");
  const auto style = [](const std::string& name, const std::string& inside) {
    return "<w:style w:styleId='" + name + "'>" + inside + "</w:style>";
  };
  const std::string list4 = "<w:pPr><w:numPr><w:numId w:val='4'/></w:numPr></w:pPr>";
  const std::string styles =
      Xml("w:styles", style("Part", list4) + style("Chapter", list4) + style("Own", "<w:basedOn w:val='Chapter'/>"));
  const auto paragraph = [](const std::string& text, const std::string& properties) {
    return "<w:p><w:pPr>" + properties + "</w:pPr>" + Run(text) + "</w:p>";
  };
  const auto item = [&](const std::string& text, int list, int at = 0, const std::string& more = "") {
    return paragraph(text, "<w:numPr><w:ilvl w:val='" + std::to_string(at) + "'/><w:numId w:val='" +
                               std::to_string(list) + "'/></w:numPr>" + more);
  };
  const auto styled = [&](const std::string& text, const std::string& name, const std::string& more = "") {
    return paragraph(text, "<w:pStyle w:val='" + name + "'/>" + more);
  };
  const auto read = [&](const std::string& body) {
    return Docx(body, {{"word/numbering.xml", numbering}, {"word/styles.xml", styles}});
  };
  CHECK(read(item("one", 1) + item("two", 1) + item("a", 1, 1) + item("b", 1, 1) + item("deep", 1, 2) +
             item("three", 1) + item("again", 1, 1) + item("dot", 2) + item("anew", 3) + item("more", 3)) ==
        "\u00a73. one\n\u00a74. two\n4.a) a\n4.b) b\nI deep\n\u00a75. three\n5.a) again\n- dot\n\u00a71. anew\n"
        "\u00a72. more\n");
  CHECK(read(styled("Birds", "Part") + styled("Herons", "Chapter") + styled("Otters", "Own") +
             styled("none", "Own", "<w:numPr><w:numId w:val='0'/></w:numPr>") + styled("Fish", "Part")) ==
        "Part 1: Birds\n1.1 Herons\n1.2 Otters\nnone\nPart 2: Fish\n");
  CHECK(read(item("a", 5) + item("b", 5, 1) + item("c", 5, 2) + item("d", 5, 1) + item("e", 5, 2) + item("f", 5) +
             item("g", 5, 1) + item("h", 5, 2)) ==
        "Article 1 a\nSection 1 b\nLine 1 c\nSection 2 d\nLine 2 e\nArticle 2 f\nSection 3 g\nLine 1 h\n");
  // A deleted item is not counted, and what properties were before counts for nothing.
  CHECK(read(item("one", 1) +
             "<w:p><w:pPr><w:numPr><w:numId w:val='1'/></w:numPr><w:rPr><w:del/></w:rPr></w:pPr><w:del>" + Run("gone") +
             "</w:del></w:p>" + item("two", 1) +
             paragraph("plain", "<w:pPrChange><w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr></w:pPrChange>")) ==
        "\u00a73. one\n\u00a74. two\nplain\n");
  CHECK(read(item("far", 77) + item("x", 1, 99) + item("y", 1, -1)) == "far\nx\n\u00a73. y\n");
}

std::string OpenDocumentOf(const std::string& styles, const std::string& body) {
  return Office({{"styles.xml", Xml("office:document-styles",
                                    "<style:style style:name='Secret'><style:text-properties text:display='none'/>"
                                    "</style:style>")},
                 {"content.xml", Xml("office:document-content", "<office:automatic-styles>" + styles +
                                                                    "</office:automatic-styles><office:body>" + body +
                                                                    "</office:body>")}});
}

TEST_CASE("ReadOffice: what an OpenDocument hides is left out or marked", "[document]") {
  CHECK(OpenDocumentOf("",
                       "<office:text><text:section text:display='none'><text:p>no</text:p></text:section>"
                       "<text:section text:display='condition' text:is-hidden='true'><text:p>no</text:p>"
                       "</text:section><text:section><text:p>yes <text:span text:style-name='Secret'>no</text:span>"
                       "<text:span text:style-name='Bold'>too</text:span></text:p></text:section></office:text>") ==
        "yes too\n");
  const auto cell = [](const std::string& text) {
    return "<table:table-cell><text:p>" + text + "</text:p></table:table-cell>";
  };
  CHECK(OpenDocumentOf(
            "<style:style style:name='ta2'><style:table-properties table:display='false'/></style:style>",
            "<office:spreadsheet><table:table table:name='A' table:style-name='ta1'><table:table-column "
            "table:number-columns-repeated='2'/>"
            "<table:table-column table:visibility='collapse' table:number-columns-repeated='2'/><table:table-row>" +
                cell("1") + "</table:table-row><table:table-row table:visibility='collapse'>" + cell("2") +
                "</table:table-row></table:table><table:table table:name='B' table:style-name='ta2'>"
                "<table:table-row>" +
                cell("3") + "</table:table-row></table:table></office:spreadsheet>") ==
        "--- Table A ---\n(hidden columns: C to D)\n1\n2\t(hidden row)\n--- Table B (hidden) ---\n3\n");
  CHECK(OpenDocumentOf("<style:style style:name='dp1'><style:drawing-page-properties presentation:visibility='hidden'/>"
                       "</style:style>",
                       "<office:presentation><draw:page draw:style-name='dp1'><draw:frame><draw:image/><svg:desc>a "
                       "heron</svg:desc></draw:frame></draw:page></office:presentation>") ==
        "--- Slide 1 (hidden) ---\n[picture not shown: a heron]\n");
}

TEST_CASE("ReadOffice: cells without a text show their value, and what is encrypted is refused", "[document]") {
  const auto cells = [](const std::string& all) {
    return OpenDocumentOf("", "<office:spreadsheet><table:table table:name='T'><table:table-row>" + all +
                                  "</table:table-row></table:table></office:spreadsheet>");
  };
  CHECK(cells("<table:table-cell office:value-type='float' office:value='42'/><table:table-cell "
              "office:string-value='hello'/><table:table-cell office:value='7'><office:annotation><text:p>note</text:p>"
              "</office:annotation></table:table-cell><table:table-cell office:value='1'><text:p/></table:table-cell>"
              "<table:table-cell office:value='1'><text:p>one</text:p></table:table-cell>") ==
        "--- Table T ---\n42\thello\t7\t\tone\n--- Comments ---\nnote\n");
  try {
    Office({{"content.xml", "\1\2"}, {"META-INF/manifest.xml", "<manifest><encryption-data/></manifest>"}});
    FAIL("it was read");
  } catch (const Unreadable& unreadable) {
    CHECK(unreadable.why == "it is encrypted");
  }
}

TEST_CASE("ReadOffice: what styles hide is left out, and what only a program can show is named", "[document]") {
  const std::string styles = Xml("w:styles",
                                 "<w:style w:styleId='H'><w:rPr><w:vanish/></w:rPr></w:style><w:style w:styleId='I'>"
                                 "<w:basedOn w:val='H'/></w:style><w:style w:styleId='S'><w:basedOn w:val='H'/><w:rPr>"
                                 "<w:vanish w:val='0'/></w:rPr></w:style>");
  const auto paragraph = [](const std::string& style, const std::string& runs) {
    return "<w:p><w:pPr><w:pStyle w:val='" + style + "'/></w:pPr>" + runs + "</w:p>";
  };
  CHECK(Docx(paragraph("N", Run("no", "<w:rStyle w:val='H'/>") + Run("seen", "<w:rStyle w:val='S'/>")) +
                 paragraph("I", Run("no")) + "<w:altChunk/><w:p><w:r><w:pict><v:textpath xmlns:v='v' string='DRAFT'/>" +
                 "</w:pict></w:r><w:r><w:sym w:font='Wingdings' w:char='F0FC'/><w:sym w:font='Symbol' w:char='F0AA'/>" +
                 "<w:sym w:font='Arial' w:char='00FC'/></w:r></w:p>",
             {{"word/styles.xml", styles}}) ==
        "seen\n[embedded document not shown]\nDRAFT\u2713[symbol not shown]\u00fc\n");
}

TEST_CASE("ReadHtml: items of numbered lists have their numbers", "[document]") {
  CHECK(Read(ReadHtml,
             "<ol><li>a<ul><li>b</ul><li>c</ol><ol start=5><li><p>d</p><li value=9>e<li>f</ol><ul><li>g</ul>") ==
        "1. a\n- b\n2. c\n5. d\n9. e\n10. f\n- g\n");
}

TEST_CASE("ReadHtml: what a browser hides is left out", "[document]") {
  CHECK(Read(ReadHtml,
             "<p>a<div hidden>no<p>no<b>no</b></div><span style='Display : none'>no<br>no</span>"
             "<p style='visibility:hidden;color:red'>no</p><p style='display:block'>b</p><script>no</script>"
             "<template><div>no</div></template><p hidden>no<div>c</div>") == "a\nb\nc\n");
  CHECK(Read(ReadHtml, "<html hidden><body style='display:none'><p>all") == "all\n");
  CHECK(Read(ReadHtml, "<p><ruby>word<rp>(</rp><rt>reading</rt><rp>)</rp></ruby>s") == "words\n");
  CHECK(Read(ReadHtml, "<p>see <img alt='a &quot;heron&quot;'>, <img alt=''><img>done") ==
        "see [picture not shown: a \"heron\"], done\n");
}

TEST_CASE("ReadHtml: C1 control characters are those of Windows-1252", "[document]") {
  CHECK(Read(ReadHtml, "<p>a&#150;b &#x93;c&#148; &#128;5 &#xa9; d</p>") ==
        "a\u2013b \u201cc\u201d \u20ac5 \u00a9 d\n");
  CHECK(Read(ReadHtml, "<meta charset=iso-8859-1><p>a \x96 b\x85 caf\xe9") == "a \u2013 b\u2026 caf\u00e9\n");
}

TEST_CASE("ReadHtml: an encoding is the one that browsers take, and a bad byte does not end the page", "[document]") {
  const auto page = [](const std::string& charset, const std::string& text) {
    return Read(ReadHtml, "<meta charset=" + charset + "><p>before<p>" + text + "<p>after</p>");
  };
  CHECK(page("gb2312", "\xd6\xec\xe9\x46\xbb\xf9") == "before\n\u6731\u9555\u57fa\nafter\n");
  CHECK(page("Shift_JIS", "\x87\x40\xfb\xfc\x8b\xb4") == "before\n\u2460\u9ad9\u6a4b\nafter\n");
  CHECK(page("'EUC-KR'", "\x8c\x63\xb9\xe6") == "before\n\ub620\ubc29\nafter\n");
  CHECK(page("us-ascii", "caf\xe9 \x80") == "before\ncaf\u00e9 \u20ac\nafter\n");
  CHECK(page("\"windows-1251\"", "\xcf\xf0\xe8") == "before\n\u041f\u0440\u0438\nafter\n");
  CHECK(page("no-such-thing", "caf\xe9") == "before\ncaf\u00e9\nafter\n");
  CHECK(page("utf-8", "caf\xe9 th\u00e9") == "before\ncaf\u00e9 th\u00e9\nafter\n");
  CHECK(page("big5", "caf\u00e9") == "before\ncaf\u00e9\nafter\n");
  for (const std::string charset : {"shift_jis", "gb2312", "gbk", "euc-jp", "euc-kr", "big5"}) {
    INFO(charset);
    const std::string shown = page(charset, "mid \xff\xff dle");
    CHECK(shown == "before\nmid \ufffd\ufffd dle\nafter\n");
  }
  CHECK(Read(ReadHtml, "<meta http-equiv=Content-Type content='text/html; charset=gb2312'><p>\xd6\xec\xff<p>after") ==
        "\u6731\ufffd\nafter\n");
  CHECK(Read(ReadHtml, std::string("\xff\xfe<\0p\0>\0\x31\x67<\0p\0>\0b\0", 18)) == "\u6731\nb\n");
}

TEST_CASE("ReadEncodedText: invalid characters are replaced", "[document]") {
  CHECK(Read(ReadEncodedText, "caf\xe9 5 \x80\x81\r\nb") == "caf\u00e9 5 \u20ac\ufffd\nb");
  CHECK(Read(ReadEncodedText, std::string("\xfe\xff\0a\xdc\0\xd8\0\0b\xd8\x3d\xde\0\0", 15)) ==
        "a\ufffd\ufffdb\U0001f600\ufffd");
  CHECK(Read(ReadEncodedText, std::string("a\0\0\0b\0", 6)) == "a\ufffdb");
}

TEST_CASE("Output: a text that is cut says so at its end", "[document]") {
  Output out;
  out.Add(std::string(Output::kMaxBytes - 2, 'x'));
  out.Add("yz");
  CHECK(out.Told() == out.text());
  CHECK_FALSE(out.full());
  Output cut;
  cut.Add(std::string(Output::kMaxBytes - 2, 'x'));
  cut.Add("\u2026");
  cut.EndLine();
  cut.Add("y");
  CHECK(cut.full());
  CHECK(cut.Told() ==
        std::string(Output::kMaxBytes - 2, 'x') + "\n[cut here: the document has more text than 4 MiB]\n");
}

}  // namespace
}  // namespace reprise::document
