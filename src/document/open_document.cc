#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "document/equation.h"
#include "document/office_parts.h"
#include "document/paragraphs.h"

namespace reprise::document {
namespace {

// Reads text, tables and slides of an entry; notes and comments follow at the end.
class OpenDocument {
 public:
  explicit OpenDocument(Output& out) : out_(out), row_(out) {}

  XmlHandler Handler() {
    return {.begin = [this](const Element& element) { Begin(element); },
            .end = [this](std::string_view name) { End(name); },
            .text =
                [this](std::string_view text) {
                  if (in_description_) AddTo(description_, text);
                  if (left_out_ > 0 || in_paragraph_ == 0 || in_description_) return;
                  Add(raised_.back() == 0 ? std::string(text) : Raised(text, raised_.back() < 0));
                }};
  }

  // Notes which styles hide what has them, or raise text.
  void LearnStyle(const Element& element) {
    const std::string_view name = element.name();
    if (name == "style") style_ = element.Attribute("name");
    const std::string position = name == "text-properties" ? element.Attribute("text-position") : std::string();
    const bool is_low = position.starts_with("sub") || position.starts_with('-');
    if (!position.empty() && !position.starts_with("0%") && raising_.size() < kMaxStyles) raising_[style_] = is_low;
    if (hiding_.size() < kMaxStyles && name.ends_with("-properties") &&
        (element.Attribute("display") == "none" || element.Attribute("display") == "false" ||
         element.Attribute("visibility") == "hidden"))
      hiding_.insert(std::string(name.substr(0, name.find("-properties"))) + " " + style_);
  }

  // Whether it is a text document (office:text), not sheets or slides. Known after reading.
  bool is_text() const { return is_text_; }

  void Finish() {
    out_.EndLine();
    if (!IsBlank(notes_)) out_.Heading("--- Notes ---"), out_.Add(notes_), out_.EndLine();
    if (!IsBlank(comments_)) out_.Heading("--- Comments ---"), out_.Add(comments_), out_.EndLine();
  }

 private:
  static constexpr std::size_t kMaxRepeated = 1000;  // equal cells or lines shown

  static std::size_t Times(const Element& element, std::string_view attribute) {
    const std::string times = element.Attribute(attribute);
    return times.empty() ? 1 : std::clamp<std::size_t>(std::strtoull(times.c_str(), nullptr, 10), 1, 1u << 20);
  }

  // Whether it has a style that hides such elements.
  bool IsHidden(const Element& element, const char* family) const {
    return !hiding_.empty() && hiding_.contains(std::string(family) + " " + element.Attribute("style-name"));
  }

  // Elements that a reader does not see: deleted and hidden text, phonetic guides, names of pictures, authors of
  // comments.
  bool IsLeftOut(const Element& element) const {
    const std::string_view name = element.name();
    if (name == "section" && element.Attribute("display") == "none") return true;
    if (name == "section" && element.Attribute("is-hidden") == "true") return true;
    if (name == "span" || name == "p" || name == "h") return IsHidden(element, "text");
    return name == "tracked-changes" || name == "ruby-text" || (name == "title" && in_frame_ > 0) ||
           name == "note-citation" ||
           (in_comment_ > 0 && (name == "creator" || name == "date" || name == "date-string"));
  }

  void Add(std::string_view text) {
    if (in_comment_ > 0) {
      AddTo(comments_, text);
    } else if (in_note_ > 0) {
      AddTo(notes_, text);
    } else if (in_cell_ > 0) {
      AddTo(cell_, text);
    } else {
      out_.Add(text);
    }
  }
  static void AddTo(std::string& gathered, std::string_view text) {
    if (gathered.size() < Output::kMaxBytes) gathered += text;
  }
  static void EndLineOf(std::string& gathered) {
    while (gathered.ends_with(' ')) gathered.pop_back();
    AddTo(gathered, "\n");
  }
  void Space() {
    if (in_comment_ > 0 || in_note_ > 0 || in_cell_ > 0) {
      std::string& gathered = in_comment_ > 0 ? comments_ : in_note_ > 0 ? notes_ : cell_;
      if (!gathered.empty() && gathered.back() != ' ' && gathered.back() != '\n') gathered += ' ';
    } else {
      out_.EndLine();
    }
  }

  void Begin(const Element& element) {
    const std::string_view name = element.name();
    if (left_out_ > 0 || IsLeftOut(element)) {
      ++left_out_;
      return;
    }
    LearnStyle(element);
    if (name == "desc") in_description_ = true;
    if (name == "span") {
      const auto found = raising_.find(element.Attribute("style-name"));
      raised_.push_back(found == raising_.end() ? raised_.back() : found->second ? -1 : 1);
    }
    if (name == "text") is_text_ = true;
    if (name == "frame") ++in_frame_;
    if (name == "note")
      AddTo(notes_, "[" + std::to_string(++note_number_) + "] "), Add("[" + std::to_string(note_number_) + "]"),
          ++in_note_;
    if (name == "annotation") ++in_comment_;
    if (name == "p" || name == "h") {
      if (in_paragraph_ > 0) Space();  // a paragraph in a box within another
      if (in_comment_ == 0) value_.clear();
      ++in_paragraph_;
    }
    if (name == "table-cell" || name == "covered-table-cell") {
      if (in_cell_++ == 0) {
        cell_.clear(), cell_times_ = Times(element, "number-columns-repeated");
        for (const char* kind : {"string-value", "date-value", "time-value", "boolean-value", "value"})
          if (value_.empty()) value_ = element.Attribute(kind);
      }
    }
    const auto is_hidden = [](const Element& part) {
      return part.Attribute("visibility") == "collapse" || part.Attribute("visibility") == "filter";
    };
    if (name == "table-row" && in_cell_ == 0) {
      row_times_ = Times(element, "number-rows-repeated"), column_ = 0;
      cells_.clear();
      row_hidden_ = is_hidden(element);
      hidden_columns_.Tell(out_);
    }
    if (name == "table-column" && in_cell_ == 0) {
      const std::size_t first = columns_ + 1;
      columns_ += Times(element, "number-columns-repeated");
      if (is_hidden(element)) hidden_columns_.Add(first, columns_);
    }
    if (name == "tab") Add("\t");
    if (name == "s") Add(std::string(std::min<std::size_t>(Times(element, "c"), 256), ' '));
    if (name == "line-break") in_cell_ + in_note_ + in_comment_ > 0 ? Space() : out_.Add("\n");
    const auto mark = [&](const char* family) { return IsHidden(element, family) ? " (hidden) ---" : " ---"; };
    if (name == "page") out_.Heading("--- Slide " + std::to_string(++pages_) + mark("drawing-page"));
    if (name == "notes") out_.Heading("Notes:");
    if (name == "table" && in_cell_ == 0)
      out_.Heading("--- Table " + element.Attribute("name") + mark("table")), columns_ = 0;
  }

  void End(std::string_view name) {
    if (left_out_ > 0) {
      --left_out_;
      return;
    }
    if (name == "desc") in_description_ = false;
    if (name == "span") raised_.pop_back();
    if (name == "image") has_picture_ = true;
    if (name == "frame" && --in_frame_ == 0) EndFrame();
    if (name == "p" || name == "h") --in_paragraph_, Space();
    if (name == "note") --in_note_, EndLineOf(notes_);
    if (name == "annotation") --in_comment_, EndLineOf(comments_);
    if ((name == "table-cell" || name == "covered-table-cell") && --in_cell_ == 0) EndCell();
    if (name == "table-row" && in_cell_ == 0) EndRow();
  }

  void EndCell() {
    if (const std::string value = std::exchange(value_, {}); cell_.empty()) cell_ = value;
    while (cell_.ends_with(' ')) cell_.pop_back();
    const std::size_t shown = cell_.empty() ? 0 : std::min(cell_times_, kMaxRepeated);
    for (std::size_t i = 0; i < shown; ++i) cells_.emplace_back(column_ + i + 1, cell_);
    column_ += cell_times_;
  }
  void EndRow() {
    const std::size_t times = cells_.empty() ? 0 : std::min(row_times_, kMaxRepeated);
    for (std::size_t i = 0; i < times && !out_.full(); ++i) {
      for (const auto& [column, text] : cells_) row_.Add(column, text);
      row_.End(row_hidden_);
    }
    cells_.clear();
  }
  // Names what cannot be shown.
  void EndFrame() {
    if (!has_picture_ && description_.empty()) return;
    const bool is_inline = in_paragraph_ + in_cell_ > 0;
    if (!is_inline) Space();
    Add(NotShown(has_picture_ ? "picture" : "drawing", std::exchange(description_, {})));
    if (!is_inline) Space();
    has_picture_ = false;
  }

  Output& out_;
  Row row_;
  std::vector<std::pair<std::size_t, std::string>> cells_;  // the row's, with column and text
  std::string cell_, notes_, comments_;
  std::string value_;                    // of the cell, as long as it has no text
  std::string style_, description_;      // of the frame
  std::set<std::string> hiding_;         // styles, each behind its family
  std::map<std::string, bool> raising_;  // styles; true for subscript
  std::vector<int> raised_{0};           // the open spans: 1 is superscript, -1 subscript
  HiddenColumns hidden_columns_;
  std::size_t columns_ = 0, column_ = 0, cell_times_ = 1, row_times_ = 1;
  bool is_text_ = false, row_hidden_ = false, in_description_ = false, has_picture_ = false;
  int left_out_ = 0, in_paragraph_ = 0, in_cell_ = 0, in_frame_ = 0, in_note_ = 0, in_comment_ = 0, pages_ = 0,
      note_number_ = 0;
};

// Headers and footers are part of the page styles.
void ReadMasterPages(Archive& archive, Output& out) {
  OpenDocument document(out);
  const XmlHandler inner = document.Handler();
  int in_edge = 0;
  const auto is_edge = [](std::string_view name) {
    return name == "header" || name == "footer" || name == "header-first" || name == "footer-first" ||
           name == "header-left" || name == "footer-left";
  };
  ReadEntry(archive, "styles.xml",
            {.begin =
                 [&](const Element& element) {
                   if (in_edge > 0) inner.begin(element);
                   if (is_edge(element.name()) && element.Attribute("display") != "false") ++in_edge;
                 },
             .end =
                 [&](std::string_view name) {
                   if (in_edge > 0 && is_edge(name)) --in_edge;
                   if (in_edge > 0) inner.end(name);
                 },
             .text =
                 [&](std::string_view text) {
                   if (in_edge > 0) inner.text(text);
                 }},
            out);
  document.Finish();
}

}  // namespace

void ReadOpenDocument(Archive& archive, Output& out) {
  if (!archive.Has("content.xml")) throw Unreadable{"it has no content.xml"};
  const auto refuse_encrypted = [](const Element& element) {
    if (element.name() == "encryption-data") throw Unreadable{"it is encrypted"};
  };
  ReadEntry(archive, "META-INF/manifest.xml", {.begin = refuse_encrypted}, out);
  OpenDocument document(out);
  ReadEntry(archive, "styles.xml", {.begin = [&](const Element& element) { document.LearnStyle(element); }}, out);
  ReadEntry(archive, "content.xml", document.Handler(), out);
  document.Finish();
  std::set<std::string> seen;
  // Those of sheets hold fields ("???") that readers never see.
  if (document.is_text())
    AddSection(
        out, "--- Header and footer ---", [&](Output& more) { ReadMasterPages(archive, more); }, seen);
}

}  // namespace reprise::document
