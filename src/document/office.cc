#include "document/office.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "document/archive.h"
#include "document/xml.h"

namespace reprise::document {
namespace {

constexpr std::size_t kMaxGap = 64;             // empty cells that are shown between two
constexpr std::size_t kMaxStrings = 1'000'000;  // shared by the cells of a spreadsheet
constexpr std::size_t kMaxStringBytes = 64u << 20;

// One entry, if there is one.
void ReadEntry(Archive& archive, std::string_view name, const XmlHandler& handler, const Output& out) {
  archive.ForEach(
      [&](const std::string& each) { return each == name; },
      [&](const std::string&, const Archive::Read& read) { ReadXml(read, handler, [&] { return out.full(); }); });
}

// The number in "ppt/slides/slide12.xml"; 0: it is not of that form.
unsigned NumberIn(const std::string& name, std::string_view before) {
  if (!name.starts_with(before) || !name.ends_with(".xml")) return 0;
  const std::string digits = name.substr(before.size(), name.size() - before.size() - 4);
  if (digits.empty() || digits.size() > 6 || digits.find_first_not_of("0123456789") != std::string::npos) return 0;
  return static_cast<unsigned>(std::atoi(digits.c_str()));
}

std::vector<std::string> Numbered(const Archive& archive, std::string_view before) {
  std::map<unsigned, std::string> found;
  for (const std::string& name : archive.names()) {
    if (const unsigned number = NumberIn(name, before); number > 0) found.emplace(number, name);
  }
  std::vector<std::string> names;
  for (auto& [number, name] : found) names.push_back(name);
  return names;
}

// --- docx and pptx: paragraphs of runs of text
// -------------------------------------------------------------------------

struct Paragraphs {
  Output& out;
  int in_text = 0, in_cell = 0, in_stops = 0;  // the last: of the places where tabs lead to

  XmlHandler Handler() {
    return {.begin =
                [this](const Element& element) {
                  const std::string_view name = element.name();
                  if (name == "t") ++in_text;
                  if (name == "tc") ++in_cell;
                  if (name == "tabs" || name == "tabLst") ++in_stops;
                  if (name == "tab" && in_stops == 0) out.Add("\t");
                  if (name == "br" || name == "cr") in_cell > 0 ? out.AddSpace() : out.Add("\n");
                },
            .end =
                [this](std::string_view name) {
                  if (name == "t") --in_text;
                  if (name == "tabs" || name == "tabLst") --in_stops;
                  if (name == "p") in_cell > 0 ? out.AddSpace() : out.EndLine();
                  if (name == "tc") --in_cell, out.Add("\t");
                  if (name == "tr") out.EndLine();
                },
            .text =
                [this](std::string_view text) {
                  if (in_text > 0) out.Add(text);
                }};
  }
};

void ReadParagraphs(Archive& archive, const std::string& entry, Output& out) {
  Paragraphs paragraphs{out};
  ReadEntry(archive, entry, paragraphs.Handler(), out);
  out.EndLine();
}

void ReadDocx(Archive& archive, Output& out) {
  ReadParagraphs(archive, "word/document.xml", out);
  for (const auto& [entry, heading] :
       {std::pair{"word/footnotes.xml", "Footnotes"}, std::pair{"word/endnotes.xml", "Endnotes"},
        std::pair{"word/comments.xml", "Comments"}}) {
    if (!archive.Has(entry)) continue;
    Output more;
    ReadParagraphs(archive, entry, more);
    if (more.text().find_first_not_of(" \n") == std::string::npos) continue;
    out.Heading(std::string("--- ") + heading + " ---");
    out.Add(more.text());
  }
}

void ReadPptx(Archive& archive, Output& out) {
  int number = 0;
  for (const std::string& slide : Numbered(archive, "ppt/slides/slide")) {
    out.Heading("--- Slide " + std::to_string(++number) + " ---");
    ReadParagraphs(archive, slide, out);
    const std::string notes =
        "ppt/notesSlides/notesSlide" + std::to_string(NumberIn(slide, "ppt/slides/slide")) + ".xml";
    if (!archive.Has(notes)) continue;
    out.Heading("Notes:");
    ReadParagraphs(archive, notes, out);
  }
}

// --- xlsx
// --------------------------------------------------------------------------------------------------------------

std::vector<std::string> SharedStrings(Archive& archive, const Output& out) {
  std::vector<std::string> strings;
  std::size_t bytes = 0;
  int in_text = 0, in_phonetic = 0;
  const XmlHandler handler{.begin =
                               [&](const Element& element) {
                                 if (element.name() == "si") strings.emplace_back();
                                 if (element.name() == "t") ++in_text;
                                 if (element.name() == "rPh") ++in_phonetic;
                                 if (strings.size() > kMaxStrings) throw Unreadable{"it has too many texts"};
                               },
                           .end =
                               [&](std::string_view name) {
                                 if (name == "t") --in_text;
                                 if (name == "rPh") --in_phonetic;
                               },
                           .text =
                               [&](std::string_view text) {
                                 if (in_text == 0 || in_phonetic > 0 || strings.empty()) return;
                                 bytes += text.size();
                                 if (bytes > kMaxStringBytes) throw Unreadable{"its texts are too long"};
                                 strings.back() += text;
                               }};
  ReadEntry(archive, "xl/sharedStrings.xml", handler, out);
  return strings;
}

struct Sheet {
  std::string name, relation, entry;
};

std::vector<Sheet> Sheets(Archive& archive, const Output& out) {
  std::vector<Sheet> sheets;
  ReadEntry(archive, "xl/workbook.xml",
            {.begin =
                 [&](const Element& element) {
                   if (element.name() == "sheet")
                     sheets.push_back({element.Attribute("name"), element.Attribute("id"), {}});
                 }},
            out);
  std::map<std::string, std::string> targets;
  ReadEntry(archive, "xl/_rels/workbook.xml.rels",
            {.begin =
                 [&](const Element& element) {
                   if (element.name() == "Relationship") targets[element.Attribute("Id")] = element.Attribute("Target");
                 }},
            out);
  for (Sheet& sheet : sheets) {
    const std::string& target = targets[sheet.relation];
    sheet.entry = target.starts_with('/') ? target.substr(1) : "xl/" + target;
  }
  std::erase_if(sheets, [&](const Sheet& sheet) { return !archive.Has(sheet.entry); });
  if (!sheets.empty()) return sheets;
  for (std::string& entry : Numbered(archive, "xl/worksheets/sheet")) sheets.push_back({entry, {}, entry});
  return sheets;
}

// 3 of "C7".
std::size_t ColumnOf(std::string_view cell) {
  std::size_t column = 0;
  for (const char c : cell) {
    if (c < 'A' || c > 'Z' || column > 20'000) break;
    column = column * 26 + static_cast<std::size_t>(c - 'A') + 1;
  }
  return column;
}

void ReadSheet(Archive& archive, const Sheet& sheet, const std::vector<std::string>& strings, Output& out) {
  std::string type, value;
  std::size_t column = 0, at = 0;  // of the cell, and where the line is
  int in_value = 0;
  const auto end_cell = [&] {
    if (value.empty()) return;
    if (column == 0) column = at + 1;
    const std::size_t gap = column > at ? std::min(column - at - (at == 0 ? 1 : 0), kMaxGap) : 0;
    out.Add(std::string(gap, '\t'));
    at = column;
    if (type == "s") {
      const auto number = static_cast<std::size_t>(std::strtoull(value.c_str(), nullptr, 10));
      value = number < strings.size() ? strings[number] : "";
    }
    if (type == "b") value = value == "1" ? "TRUE" : "FALSE";
    std::replace(value.begin(), value.end(), '\n', ' ');
    out.Add(value);
  };
  ReadEntry(archive, sheet.entry,
            {.begin =
                 [&](const Element& element) {
                   if (element.name() == "c") {
                     type = element.Attribute("t");
                     column = ColumnOf(element.Attribute("r"));
                     value.clear();
                   }
                   if (element.name() == "v" || element.name() == "t") ++in_value;
                   if (element.name() == "row") at = 0;
                 },
             .end =
                 [&](std::string_view name) {
                   if (name == "v" || name == "t") --in_value;
                   if (name == "c") end_cell();
                   if (name == "row" && at > 0) out.EndLine();
                 },
             .text =
                 [&](std::string_view text) {
                   if (in_value > 0 && value.size() < Output::kMaxBytes) value += text;
                 }},
            out);
}

void ReadXlsx(Archive& archive, Output& out) {
  const std::vector<std::string> strings = SharedStrings(archive, out);
  for (const Sheet& sheet : Sheets(archive, out)) {
    out.Heading("--- Sheet " + sheet.name + " ---");
    ReadSheet(archive, sheet, strings, out);
  }
}

// --- OpenDocument
// ------------------------------------------------------------------------------------------------------

void ReadOpenDocument(Archive& archive, Output& out) {
  if (!archive.Has("content.xml")) throw Unreadable{"it has no content.xml"};
  int in_paragraph = 0, in_cell = 0, pages = 0;
  ReadEntry(archive, "content.xml",
            {.begin =
                 [&](const Element& element) {
                   const std::string_view name = element.name();
                   if (name == "p" || name == "h") ++in_paragraph;
                   if (name == "table-cell") ++in_cell;
                   if (name == "tab") out.Add("\t");
                   if (name == "s") out.Add(" ");
                   if (name == "line-break") in_cell > 0 ? out.AddSpace() : out.Add("\n");
                   if (name == "page") out.Heading("--- Slide " + std::to_string(++pages) + " ---");
                   if (name == "table") out.Heading("--- Table " + element.Attribute("name") + " ---");
                 },
             .end =
                 [&](std::string_view name) {
                   if (name == "p" || name == "h") {
                     --in_paragraph;
                     in_cell > 0 ? out.AddSpace() : out.EndLine();
                   }
                   if (name == "table-cell") --in_cell, out.Add("\t");
                   if (name == "table-row") out.EndLine();
                 },
             .text =
                 [&](std::string_view text) {
                   if (in_paragraph > 0) out.Add(text);
                 }},
            out);
}

}  // namespace

void ReadOffice(Output& out) {
  Archive archive(0);
  if (archive.Has("word/document.xml")) return ReadDocx(archive, out);
  if (archive.Has("xl/workbook.xml")) return ReadXlsx(archive, out);
  if (archive.Has("ppt/presentation.xml")) return ReadPptx(archive, out);
  if (archive.Has("content.xml")) return ReadOpenDocument(archive, out);
  throw Unreadable{"the archive holds none of the documents that are known (docx, xlsx, pptx, odt, ods, odp)"};
}

}  // namespace reprise::document
