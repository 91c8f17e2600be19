#include <algorithm>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "document/archive.h"
#include "document/equation.h"
#include "document/list_numbers.h"
#include "document/number_format.h"
#include "document/office_parts.h"
#include "document/paragraphs.h"
#include "document/readers.h"

namespace reprise::document {
namespace {

constexpr std::size_t kMaxStrings = 1'000'000;  // shared by the cells of a spreadsheet
constexpr std::size_t kMaxStringBytes = 64u << 20;
constexpr std::size_t kMaxRelationships = 20'000;

// --- parts of an Office Open XML package and their relationships

struct Relationship {
  std::string id, kind, entry;  // kind: the last word of its type, "footnotes"
};

// "word/" of "word/document.xml".
std::string FolderOf(std::string_view entry) {
  const std::size_t slash = entry.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(entry.substr(0, slash + 1));
}

// Resolves a relationship's target from a part in `folder`.
std::string EntryAt(std::string folder, std::string_view target) {
  if (target.starts_with('/')) folder.clear(), target.remove_prefix(1);
  for (;;) {
    if (target.starts_with("./")) {
      target.remove_prefix(2);
    } else if (target.starts_with("../")) {
      target.remove_prefix(3);
      folder = FolderOf(std::string_view(folder).substr(0, folder.empty() ? 0 : folder.size() - 1));
    } else {
      return folder + std::string(target);
    }
  }
}

// The relationships of a part, or of the package if `part` is empty.
std::vector<Relationship> RelationshipsOf(Archive& archive, const std::string& part, const Output& out) {
  const std::string folder = FolderOf(part);
  std::vector<Relationship> found;
  ReadEntry(archive, folder + "_rels/" + part.substr(folder.size()) + ".rels",
            {.begin =
                 [&](const Element& element) {
                   if (element.name() != "Relationship" || element.Attribute("TargetMode") == "External") return;
                   if (found.size() >= kMaxRelationships) throw Unreadable{"it has too many relationships"};
                   const std::string type = element.Attribute("Type");
                   found.push_back({element.Attribute("Id"), type.substr(type.rfind('/') + 1),
                                    EntryAt(folder, element.Attribute("Target"))});
                 }},
            out);
  return found;
}

// The archive's entry of that kind, else `usual`.
std::string EntryOf(const Archive& archive, const std::vector<Relationship>& relationships, std::string_view kind,
                    std::string usual) {
  for (const Relationship& each : relationships) {
    if (each.kind == kind && archive.Has(each.entry)) return each.entry;
  }
  return usual;
}

std::string RootOf(Archive& archive, const std::string& entry) {
  std::string root;
  ReadEntryUntil(archive, entry,
                 {.begin =
                      [&](const Element& element) {
                        if (root.empty()) root = element.name();
                      }},
                 [&] { return !root.empty(); });
  return root;
}

// The number in "ppt/slides/slide12.xml"; 0 if the name has another form.
unsigned NumberIn(const std::string& name, std::string_view before) {
  if (!LowerCase(name).starts_with(before) || !LowerCase(name).ends_with(".xml")) return 0;
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

// --- docx and pptx
// -----------------------------------------------------------------------------------------------------------

void ReadParagraphs(Archive& archive, const std::string& entry, Output& out, NoteNumbers* footnotes = nullptr,
                    NoteNumbers* endnotes = nullptr, ListNumbers* lists = nullptr) {
  Paragraphs paragraphs(out, footnotes, endnotes, lists);
  ReadEntry(archive, entry, paragraphs.Handler(), out);
  out.EndLine();
}

// Adds the related parts of some kinds, each under its kind's heading. The text of charts and diagrams is in separate
// parts.
void AddParts(Archive& archive, const std::vector<Relationship>& relationships,
              std::initializer_list<std::pair<std::string_view, const char*>> kinds, Output& out) {
  std::set<std::string> seen;
  for (const auto& [kind, heading] : kinds) {
    for (const Relationship& each : relationships) {
      if (each.kind != kind) continue;
      AddSection(
          out, heading,
          [&](Output& more) {
            archive.Has(each.entry) ? ReadParagraphs(archive, each.entry, more) : more.Add("[missing in the file]");
          },
          seen);
    }
  }
}

void ReadDocx(Archive& archive, const std::string& document, Output& out) {
  const auto relationships = RelationshipsOf(archive, document, out);
  AddParts(archive, relationships, {{"header", "--- Header ---"}}, out);
  if (!out.text().empty()) out.Heading("--- Text ---");
  NoteNumbers footnotes, endnotes;
  ListNumbers lists;
  ReadEntry(archive, EntryOf(archive, relationships, "numbering", "word/numbering.xml"),
            {.begin = [&](const Element& element) { lists.LearnList(element); }}, out);
  ReadEntry(archive, EntryOf(archive, relationships, "styles", "word/styles.xml"),
            {.begin = [&](const Element& element) { lists.LearnStyle(element); }}, out);
  ReadParagraphs(archive, document, out, &footnotes, &endnotes, &lists);
  AddParts(archive, relationships,
           {{"diagramData", "--- Diagram ---"}, {"chart", "--- Chart ---"}, {"footer", "--- Footer ---"}}, out);
  std::set<std::string> seen;
  for (const auto& [kind, heading] :
       {std::pair{"footnotes", "Footnotes"}, std::pair{"endnotes", "Endnotes"}, std::pair{"comments", "Comments"}}) {
    const std::string entry = EntryOf(archive, relationships, kind, std::string("word/") + kind + ".xml");
    if (!archive.Has(entry)) continue;
    AddSection(
        out, std::string("--- ") + heading + " ---",
        [&](Output& more) { ReadParagraphs(archive, entry, more, &footnotes, &endnotes); }, seen);
  }
}

// The slides in display order.
std::vector<std::string> Slides(Archive& archive, const std::string& presentation, const Output& out) {
  std::map<std::string, std::string> entries;
  for (const Relationship& each : RelationshipsOf(archive, presentation, out)) {
    if (each.kind == "slide") entries[each.id] = each.entry;
  }
  std::vector<std::string> slides;  // some may be missing
  ReadEntry(archive, presentation,
            {.begin =
                 [&](const Element& element) {
                   if (element.name() != "sldId") return;
                   // Two attributes have this local name; r:id is the relationship's.
                   slides.push_back(entries[element.Attribute("id", "r")]);
                 }},
            out);
  const bool has_any = std::ranges::any_of(slides, [&](const std::string& entry) { return archive.Has(entry); });
  return has_any ? slides : Numbered(archive, "ppt/slides/slide");
}

void ReadPptx(Archive& archive, const std::string& presentation, Output& out) {
  int number = 0;
  for (const std::string& slide : Slides(archive, presentation, out)) {
    bool is_hidden = false, is_read = false;
    ReadEntryUntil(archive, slide,
                   {.begin =
                        [&](const Element& element) {
                          const std::string show = is_read ? std::string() : element.Attribute("show");
                          is_hidden = is_hidden || show == "0" || show == "false";
                          is_read = true;
                        }},
                   [&] { return is_read; });
    out.Heading("--- Slide " + std::to_string(++number) + (is_hidden ? " (hidden)" : "") +
                (archive.Has(slide) ? " ---" : " (missing in the file) ---"));
    ReadParagraphs(archive, slide, out);
    const auto relationships = RelationshipsOf(archive, slide, out);
    AddParts(archive, relationships,
             {{"diagramData", "Diagram:"}, {"chart", "Chart:"}, {"notesSlide", "Notes:"}, {"comments", "Comments:"}},
             out);
  }
}

// --- xlsx
// --------------------------------------------------------------------------------------------------------------

// A text of a spreadsheet, in which _x000D_ stands for a character that XML cannot hold. Drops control characters.
std::string Unescaped(std::string text) {
  for (std::size_t at = 0; (at = text.find("_x", at)) != std::string::npos;) {
    const std::string digits = text.substr(at + 2, 4);
    const bool is_code = text.substr(std::min(at + 6, text.size()), 1) == "_" && digits.size() == 4 &&
                         std::ranges::all_of(digits, [](char c) { return HexDigit(c) >= 0; });
    if (!is_code) {
      at += 2;
      continue;
    }
    const auto code = static_cast<char32_t>(std::strtoul(digits.c_str(), nullptr, 16));
    const std::string sign = code >= 0x20 || code == '\t' || code == '\n' ? Utf8Of(code) : std::string();
    text.replace(at, 7, sign);
    at += sign.size();
  }
  return text;
}

std::vector<std::string> SharedStrings(Archive& archive, const std::string& entry, const Output& out) {
  std::vector<std::string> strings;
  std::size_t bytes = 0;
  int in_text = 0, in_phonetic = 0, raised = 0;
  const XmlHandler handler{.begin =
                               [&](const Element& element) {
                                 if (element.name() == "si") strings.emplace_back();
                                 if (element.name() == "t") ++in_text;
                                 if (element.name() == "rPh") ++in_phonetic;
                                 const std::string align = element.Attribute("val");
                                 if (element.name() == "vertAlign" && align != "baseline")
                                   raised = align == "subscript" ? -1 : 1;
                                 if (strings.size() > kMaxStrings) throw Unreadable{"it has too many texts"};
                               },
                           .end =
                               [&](std::string_view name) {
                                 if (name == "t") --in_text;
                                 if (name == "rPh") --in_phonetic;
                                 if (name == "r") raised = 0;
                                 if (name == "si" && !strings.empty())
                                   strings.back() = Unescaped(std::move(strings.back()));
                               },
                           .text =
                               [&](std::string_view text) {
                                 if (in_text == 0 || in_phonetic > 0 || strings.empty()) return;
                                 bytes += text.size();
                                 if (bytes > kMaxStringBytes) throw Unreadable{"its texts are too long"};
                                 strings.back() += raised == 0 ? std::string(text) : Raised(text, raised < 0);
                               }};
  ReadEntry(archive, entry, handler, out);
  return strings;
}

struct Sheet {
  std::string name, relation, entry{};
  bool is_hidden = false;
};

struct Workbook {
  std::vector<Sheet> sheets;
  std::vector<std::string> strings;
  std::vector<std::string> formats;  // the format code of each cell style
  bool from_1904 = false;
};

// The format codes of the workbook's cell styles.
std::vector<std::string> Formats(Archive& archive, const std::string& entry, const Output& out) {
  std::map<unsigned, std::string> own;
  std::vector<std::string> formats;
  int in_styles = 0;
  const auto number = [](const std::string& text) {
    return static_cast<unsigned>(std::strtoul(text.c_str(), nullptr, 10));
  };
  ReadEntry(archive, entry,
            {.begin =
                 [&](const Element& element) {
                   const std::string_view name = element.name();
                   if (name == "numFmt" && own.size() < kMaxStyles)
                     own[number(element.Attribute("numFmtId"))] = element.Attribute("formatCode");
                   if (name == "cellXfs") ++in_styles;
                   if (name != "xf" || in_styles == 0 || formats.size() >= kMaxStyles) return;
                   const unsigned id = number(element.Attribute("numFmtId"));
                   const auto found = own.find(id);
                   formats.push_back(found != own.end() ? found->second : std::string(BuiltInFormat(id)));
                 },
             .end =
                 [&](std::string_view name) {
                   if (name == "cellXfs") --in_styles;
                 }},
            out);
  return formats;
}

Workbook ReadWorkbook(Archive& archive, const std::string& workbook, const Output& out) {
  Workbook book;
  std::map<std::string, std::string> entries;
  const auto relationships = RelationshipsOf(archive, workbook, out);
  for (const Relationship& each : relationships) entries[each.id] = each.entry;
  ReadEntry(
      archive, workbook,
      {.begin =
           [&](const Element& element) {
             if (element.name() == "workbookPr") {
               const std::string value = element.Attribute("date1904");
               book.from_1904 = value == "1" || value == "true";
             }
             if (element.name() != "sheet") return;
             const std::string state = element.Attribute("state");
             book.sheets.push_back({element.Attribute("name"), element.Attribute("id"),
                                    entries[element.Attribute("id")], state == "hidden" || state == "veryHidden"});
           }},
      out);
  if (std::ranges::none_of(book.sheets, [&](const Sheet& sheet) { return archive.Has(sheet.entry); })) {
    auto numbered = Numbered(archive, "xl/worksheets/sheet");
    if (!numbered.empty()) book.sheets.clear();
    for (std::string& entry : numbered) book.sheets.push_back({entry, {}, entry});
  }
  book.strings = SharedStrings(archive, EntryOf(archive, relationships, "sharedStrings", "xl/sharedStrings.xml"), out);
  book.formats = Formats(archive, EntryOf(archive, relationships, "styles", "xl/styles.xml"), out);
  return book;
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

// "C" of 3.
void ReadSheet(Archive& archive, const Sheet& sheet, const Workbook& book, Output& out) {
  std::string type, value, formula;
  std::size_t column = 0, style = 0;
  int in_value = 0, in_formula = 0, in_phonetic = 0;
  bool is_hidden = false;                        // the row
  bool has_formula = false, has_result = false;  // the cell
  HiddenColumns hidden;
  Row row(out);
  const auto is_on = [](const std::string& flag) { return flag == "1" || flag == "true"; };
  const auto number_in = [](const std::string& text) {
    return static_cast<std::size_t>(std::strtoull(text.c_str(), nullptr, 10));
  };
  const auto end_cell = [&] {
    if (has_formula && !has_result)
      return row.Add(column, formula.empty() ? "(formula without a result)" : "=" + formula);
    if (value.empty()) return;
    if (type == "s") {
      const std::size_t number = number_in(value);
      value = number < book.strings.size() ? book.strings[number] : "[text not found]";
    } else if (type == "b") {
      value = value == "1" ? "TRUE" : "FALSE";
    } else if (type.empty() || type == "n") {
      value = FormatNumber(value, style < book.formats.size() ? book.formats[style] : "General", book.from_1904);
    } else {
      value = Unescaped(std::move(value));
    }
    row.Add(column, value);
  };
  ReadEntry(archive, sheet.entry,
            {.begin =
                 [&](const Element& element) {
                   if (element.name() == "c") {
                     type = element.Attribute("t");
                     const std::size_t named = ColumnOf(element.Attribute("r"));
                     column = named == 0 ? column + 1 : named;
                     style = number_in(element.Attribute("s"));
                     value.clear();
                     formula.clear();
                     has_formula = has_result = false;
                   }
                   if (element.name() == "v" || element.name() == "t") ++in_value, has_result = true;
                   if (element.name() == "f") ++in_formula, has_formula = true;
                   if (element.name() == "rPh") ++in_phonetic;
                   if (element.name() == "row") row.End(), column = 0, is_hidden = is_on(element.Attribute("hidden"));
                   if (element.name() == "col" && is_on(element.Attribute("hidden")))
                     hidden.Add(number_in(element.Attribute("min")), number_in(element.Attribute("max")));
                   if (element.name() == "sheetData") hidden.Tell(out);
                 },
             .end =
                 [&](std::string_view name) {
                   if (name == "v" || name == "t") --in_value;
                   if (name == "f") --in_formula;
                   if (name == "rPh") --in_phonetic;
                   if (name == "c") end_cell();
                   if (name == "row") row.End(is_hidden), is_hidden = false;
                 },
             .text =
                 [&](std::string_view text) {
                   if (in_value > 0 && in_phonetic == 0 && value.size() < Output::kMaxBytes) value += text;
                   if (in_formula > 0 && formula.size() < Output::kMaxBytes) formula += text;
                 }},
            out);
}

// Reads what a sheet has besides its cells: comments, text boxes, charts.
void ReadBesideCells(Archive& archive, const Sheet& sheet, Output& out) {
  const auto relationships = RelationshipsOf(archive, sheet.entry, out);
  std::set<std::string> seen;
  for (const Relationship& each : relationships) {
    if (each.kind != "comments" || !archive.Has(each.entry)) continue;
    AddSection(
        out, "Comments:",
        [&](Output& more) {
          int in_text = 0;
          ReadEntry(archive, each.entry,
                    {.begin =
                         [&](const Element& element) {
                           if (element.name() == "comment") more.Add(element.Attribute("ref") + ": ");
                           if (element.name() == "t") ++in_text;
                         },
                     .end =
                         [&](std::string_view name) {
                           if (name == "t") --in_text;
                           if (name == "comment") more.EndLine();
                         },
                     .text =
                         [&](std::string_view text) {
                           if (in_text > 0) more.Add(text);
                         }},
                    out);
        },
        seen);
  }
  AddParts(archive, relationships, {{"drawing", "Text boxes:"}}, out);
  for (const Relationship& each : relationships) {
    if (each.kind != "drawing" || !archive.Has(each.entry)) continue;
    AddParts(archive, RelationshipsOf(archive, each.entry, out), {{"chart", "Chart:"}, {"diagramData", "Diagram:"}},
             out);
  }
}

void ReadXlsx(Archive& archive, const std::string& workbook, Output& out) {
  const Workbook book = ReadWorkbook(archive, workbook, out);
  for (const Sheet& sheet : book.sheets) {
    out.Heading("--- Sheet " + sheet.name + (sheet.is_hidden ? " (hidden)" : "") +
                (archive.Has(sheet.entry) ? " ---" : " (missing in the file) ---"));
    ReadSheet(archive, sheet, book, out);
    ReadBesideCells(archive, sheet, out);
  }
}

}  // namespace

void ReadOffice(Output& out) {
  Archive archive(0);
  // The package names its main part. Word for the web calls it word/document2.xml.
  const std::string main = EntryOf(archive, RelationshipsOf(archive, "", out), "officeDocument", "");
  const std::string root = main.empty() ? std::string() : RootOf(archive, main);
  if (root == "document") return ReadDocx(archive, main, out);
  if (root == "workbook") return ReadXlsx(archive, main, out);
  if (root == "presentation") return ReadPptx(archive, main, out);
  if (archive.Has("word/document.xml")) return ReadDocx(archive, "word/document.xml", out);
  if (archive.Has("xl/workbook.xml")) return ReadXlsx(archive, "xl/workbook.xml", out);
  if (archive.Has("ppt/presentation.xml")) return ReadPptx(archive, "ppt/presentation.xml", out);
  if (archive.Has("content.xml")) return ReadOpenDocument(archive, out);
  throw Unreadable{"the archive holds none of the documents that are known (docx, xlsx, pptx, odt, ods, odp)"};
}

}  // namespace reprise::document
