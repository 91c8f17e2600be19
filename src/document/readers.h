#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise::document {

// Gathers the text. Collapses blank lines and spaces; ignores text beyond its limit.
class Output {
 public:
  static constexpr std::size_t kMaxBytes = 4u << 20;

  bool full() const { return text_.size() >= kMaxBytes; }
  void Add(std::string_view text) {
    if (!full()) text_ += text.substr(0, kMaxBytes - text_.size());
  }
  // Adds layout white space: one space, but none at the beginning of a line.
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

// Thrown to end the reading; `why` is for people: "it is encrypted".
struct Unreadable {
  std::string why;
};

// Converts the text on stdin to UTF-8, from UTF-16 (recognized by its byte order mark or its zeros) or Windows-1252.
// Invalid characters become U+FFFD.
void ReadEncodedText(Output& out);

// Extracts the text of the HTML page on stdin, without scripts, styles and tags. Fetches nothing. Throws Unreadable.
void ReadHtml(Output& out);

// Extracts the text of the document in the ZIP archive on stdin: docx, xlsx, pptx (Office Open XML), odt, ods, odp
// (OpenDocument). Finds the type in the archive. Throws Unreadable.
void ReadOffice(Output& out);

}  // namespace reprise::document
