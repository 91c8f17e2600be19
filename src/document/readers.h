#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise::document {

// The text that is being gathered. Blank lines and spaces do not pile up, and beyond its limit nothing more is taken.
class Output {
 public:
  static constexpr std::size_t kMaxBytes = 4u << 20;

  bool full() const { return text_.size() >= kMaxBytes; }
  void Add(std::string_view text) {
    if (!full()) text_ += text.substr(0, kMaxBytes - text_.size());
  }
  // White space of a layout: one space, and none at the beginning of a line.
  void AddSpace() {
    if (!text_.empty() && text_.back() != ' ' && text_.back() != '\n' && text_.back() != '\t') Add(" ");
  }
  void EndLine() {
    while (!text_.empty() && (text_.back() == ' ' || text_.back() == '\t')) text_.pop_back();
    if (!text_.empty() && !text_.ends_with("\n\n")) Add("\n");
  }
  void Heading(std::string_view text) {
    EndLine();
    if (!text_.empty() && !text_.ends_with("\n\n")) Add("\n");
    Add(text);
    EndLine();
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Ends the reading; what() is for people: "it is encrypted".
struct Unreadable {
  std::string why;
};

// The text on stdin, which is in UTF-16 (with its mark, or known by its zeros) or in Windows-1252, as UTF-8. What is no
// character becomes U+FFFD.
void ReadEncodedText(Output& out);

// The text of an HTML page, which stdin holds: without scripts, styles and tags. Nothing is fetched. Throws Unreadable.
void ReadHtml(Output& out);

// The text of a document in a ZIP archive, which stdin holds: docx, xlsx, pptx (Office Open XML), odt, ods, odp
// (OpenDocument). What it is, the archive says. Throws Unreadable.
void ReadOffice(Output& out);

}  // namespace reprise::document
