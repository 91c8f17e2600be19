#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/text.h"

namespace reprise::document {

// Gathers the text. Collapses blank lines and spaces. Cuts the text at its limit, in front of a character.
class Output {
 public:
  static constexpr std::size_t kMaxBytes = 4u << 20;
  static constexpr std::string_view kCut = "\n[cut here: the document has more text than 4 MiB]\n";

  // Something did not fit.
  bool full() const { return full_; }
  void Add(std::string_view text) {
    if (full_) return;
    full_ = text.size() > kMaxBytes - text_.size();
    if (full_) text = text.substr(0, kMaxBytes - text_.size());
    text_ += text.substr(0, text.size() - (full_ ? IncompleteUtf8Tail(text) : 0));
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
  // The text, with a note at its end if it was cut.
  std::string Told() const { return full_ ? text_ + std::string(kCut) : text_; }

 private:
  std::string text_;
  bool full_ = false;
};

// Thrown to end the reading; `why` is for people: "it is encrypted".
struct Unreadable {
  std::string why;
};

// Converts the text on stdin to UTF-8, from UTF-16 (recognized by its byte order mark or its zeros) or Windows-1252.
// Invalid characters become U+FFFD.
void ReadEncodedText(Output& out);

// Extracts the text of the HTML page on stdin, without scripts, styles and tags. Fetches nothing. Invalid characters
// become U+FFFD, or are read as Windows-1252 if the page is in UTF-8. Throws Unreadable.
void ReadHtml(Output& out);

// Extracts the text of the document in the ZIP archive on stdin: docx, xlsx, pptx (Office Open XML), odt, ods, odp
// (OpenDocument). Finds the type in the archive. Throws Unreadable.
void ReadOffice(Output& out);

}  // namespace reprise::document
