#include "document/office_parts.h"

#include <vector>

namespace reprise::document {
namespace {

// Passes on the first of several alternatives (mc:AlternateContent), because the others repeat it for other programs.
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
  std::vector<bool> has_one_;  // for each open alternative, whether one was passed on
  std::size_t left_out_ = 0;   // open elements not passed on
};

}  // namespace

void ReadEntryUntil(Archive& archive, std::string_view name, const XmlHandler& handler,
                    const std::function<bool()>& done) {
  FirstAlternative first(handler);
  archive.ForEach([&](const std::string& each) { return Archive::IsSame(each, name); },
                  [&](const std::string&, const Archive::Read& read) { ReadXml(read, first.Handler(), done); });
}

void ReadEntry(Archive& archive, std::string_view name, const XmlHandler& handler, const Output& out) {
  ReadEntryUntil(archive, name, handler, [&] { return out.full(); });
}

bool IsBlank(const std::string& text) { return text.find_first_not_of(" \n\t") == std::string::npos; }

void AddSection(Output& out, const std::string& heading, const std::function<void(Output&)>& read,
                std::set<std::string>& seen) {
  Output more;
  read(more);
  if (IsBlank(more.text()) || !seen.insert(heading + more.text()).second) return;
  out.Heading(heading);
  out.Add(more.text());
  out.EndLine();
}

std::string NameOfColumn(std::size_t column) {
  std::string name;
  for (; column > 0; column = (column - 1) / 26) name.insert(0, 1, static_cast<char>('A' + (column - 1) % 26));
  return name;
}

}  // namespace reprise::document
