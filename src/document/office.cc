#include "document/office.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
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
constexpr std::size_t kMaxRelationships = 20'000;

// Passes on the first of several alternatives (mc:AlternateContent): the others say the same for other programs.
class FirstAlternative {
 public:
  explicit FirstAlternative(const XmlHandler& handler) : handler_(handler) {}

  XmlHandler Handler() {
    return {.begin = [this](const Element& element) { Begin(element); },
            .end = [this](std::string_view name) { End(name); },
            .text =
                [this](std::string_view text) {
                  if (left_out_ == 0 && handler_.text) handler_.text(text);
                }};
  }

 private:
  void Begin(const Element& element) {
    const std::string_view name = element.name();
    const bool is_alternative = !has_one_.empty() && (name == "Choice" || name == "Fallback");
    if (left_out_ > 0 || (is_alternative && has_one_.back())) {
      ++left_out_;
      return;
    }
    if (is_alternative) has_one_.back() = true;
    if (name == "AlternateContent") has_one_.push_back(false);
    if (handler_.begin) handler_.begin(element);
  }
  void End(std::string_view name) {
    if (left_out_ > 0) {
      --left_out_;
      return;
    }
    if (name == "AlternateContent" && !has_one_.empty()) has_one_.pop_back();
    if (handler_.end) handler_.end(name);
  }

  const XmlHandler& handler_;
  std::vector<bool> has_one_;  // of the alternatives that are open: one was passed on
  std::size_t left_out_ = 0;   // elements that are open and not passed on
};

// One entry, if there is one. Ends early when `done` says so.
void ReadEntryUntil(Archive& archive, std::string_view name, const XmlHandler& handler,
                    const std::function<bool()>& done) {
  FirstAlternative first(handler);
  archive.ForEach([&](const std::string& each) { return each == name; },
                  [&](const std::string&, const Archive::Read& read) { ReadXml(read, first.Handler(), done); });
}

void ReadEntry(Archive& archive, std::string_view name, const XmlHandler& handler, const Output& out) {
  ReadEntryUntil(archive, name, handler, [&] { return out.full(); });
}

// --- parts of an Office Open XML package: what leads from one to another

struct Relationship {
  std::string id, kind, entry;  // kind: the last word of its type, "footnotes"
};

// "word/" of "word/document.xml".
std::string FolderOf(std::string_view entry) {
  const std::size_t slash = entry.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(entry.substr(0, slash + 1));
}

// The entry that a target means, seen from a part in `folder`.
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

// Of a part; "": of the package. None if the archive does not tell any.
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

// The entry of that kind that the archive has, else `usual`.
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

void ReadDocx(Archive& archive, const std::string& document, Output& out) {
  ReadParagraphs(archive, document, out);
  const auto relationships = RelationshipsOf(archive, document, out);
  for (const auto& [kind, heading] :
       {std::pair{"footnotes", "Footnotes"}, std::pair{"endnotes", "Endnotes"}, std::pair{"comments", "Comments"}}) {
    const std::string entry = EntryOf(archive, relationships, kind, std::string("word/") + kind + ".xml");
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

std::vector<std::string> SharedStrings(Archive& archive, const std::string& entry, const Output& out) {
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
  ReadEntry(archive, entry, handler, out);
  return strings;
}

struct Sheet {
  std::string name, relation, entry;
};

std::vector<Sheet> Sheets(Archive& archive, const std::string& workbook, const std::vector<Relationship>& relationships,
                          const Output& out) {
  std::vector<Sheet> sheets;
  ReadEntry(archive, workbook,
            {.begin =
                 [&](const Element& element) {
                   if (element.name() == "sheet")
                     sheets.push_back({element.Attribute("name"), element.Attribute("id"), {}});
                 }},
            out);
  std::map<std::string, std::string> entries;
  for (const Relationship& each : relationships) entries[each.id] = each.entry;
  for (Sheet& sheet : sheets) sheet.entry = entries[sheet.relation];
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

void ReadXlsx(Archive& archive, const std::string& workbook, Output& out) {
  const auto relationships = RelationshipsOf(archive, workbook, out);
  const std::vector<std::string> strings =
      SharedStrings(archive, EntryOf(archive, relationships, "sharedStrings", "xl/sharedStrings.xml"), out);
  for (const Sheet& sheet : Sheets(archive, workbook, relationships, out)) {
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
  // The package names its main part. Word for the web calls it word/document2.xml.
  const std::string main = EntryOf(archive, RelationshipsOf(archive, "", out), "officeDocument", "");
  const std::string root = main.empty() ? std::string() : RootOf(archive, main);
  if (root == "document") return ReadDocx(archive, main, out);
  if (root == "workbook") return ReadXlsx(archive, main, out);
  if (root == "presentation") return ReadPptx(archive, out);
  if (archive.Has("word/document.xml")) return ReadDocx(archive, "word/document.xml", out);
  if (archive.Has("xl/workbook.xml")) return ReadXlsx(archive, "xl/workbook.xml", out);
  if (archive.Has("ppt/presentation.xml")) return ReadPptx(archive, out);
  if (archive.Has("content.xml")) return ReadOpenDocument(archive, out);
  throw Unreadable{"the archive holds none of the documents that are known (docx, xlsx, pptx, odt, ods, odp)"};
}

}  // namespace reprise::document
