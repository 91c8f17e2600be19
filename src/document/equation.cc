#include "document/equation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "document/readers.h"

namespace reprise::document {
namespace {

constexpr std::size_t kMostSign = 16;  // bytes of a bracket or separator, which may be repeated
constexpr std::array<std::string_view, 9> kArguments = {"num", "den", "e", "sup", "sub", "deg", "fName", "lim", "mr"};

bool IsArgument(std::string_view name) { return std::ranges::find(kArguments, name) != kArguments.end(); }

// Whether brackets at both ends belong together.
bool IsBracketed(std::string_view text) {
  if (!text.starts_with('(')) return false;
  int open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++open;
    if (text[i] == ')' && --open == 0) return i + 1 == text.size();
  }
  return false;
}

// In brackets, unless it is a single name or number.
std::string Grouped(const std::string& text) {
  const bool is_word = std::ranges::all_of(text, IsAsciiLetter) ||
                       std::ranges::all_of(text, [](char c) { return IsAsciiDigit(c) || c == '.'; });
  const auto follows = [](char c) { return (c & 0xc0) == 0x80; };
  const bool is_character = !text.empty() && std::all_of(text.begin() + 1, text.end(), follows);
  return is_word || is_character || IsBracketed(text) ? text : "(" + text + ")";
}

std::string Joined(const std::vector<std::string>& texts, const std::string& between) {
  std::string all;
  for (const std::string& each : texts) all += (&each == &texts.front() ? "" : between) + each;
  return all;
}

}  // namespace

void Equation::Begin(const Element& element) {
  const std::string_view name = element.name();
  // Settings stand two levels below their object: m:nary, m:naryPr, m:chr.
  if (nodes_.size() >= 2 &&
      (name == "chr" || name == "begChr" || name == "endChr" || name == "sepChr" || name == "type"))
    nodes_[nodes_.size() - 2].settings[std::string(name)] = element.Attribute("val").substr(0, kMostSign);
  nodes_.push_back({.name = std::string(name)});
}

void Equation::Add(std::string_view text) {
  if (nodes_.back().text.size() < Output::kMaxBytes) nodes_.back().text += text;
}

std::optional<std::string> Equation::End() {
  Node node = std::move(nodes_.back());
  nodes_.pop_back();
  const std::string name = node.name;
  const bool is_object = !node.parts.empty();
  std::string line = Line(std::move(node));
  if (nodes_.empty()) return line;
  Node& outer = nodes_.back();
  if (IsArgument(name)) {
    outer.parts[name].push_back(std::move(line));
  } else if (!line.empty()) {
    // "3 1/2", not "31/2".
    const bool meets = !outer.text.empty() && IsAsciiAlnum(outer.text.back()) && IsAsciiAlnum(line.front());
    if (meets && (is_object || outer.after_object)) outer.text += ' ';
    outer.text += line;
    outer.after_object = is_object;
  }
  return std::nullopt;
}

std::string Equation::Line(Node node) {
  const auto part = [&](const char* name) { return Joined(node.parts[name], ", "); };
  const auto with = [&](const char* sign, const char* name) {
    const std::string text = part(name);
    return text.empty() ? std::string() : sign + Grouped(text);
  };
  const auto setting = [&](const char* name, const char* usual) {
    const auto found = node.settings.find(name);
    return found == node.settings.end() ? std::string(usual) : found->second;
  };
  const std::string& name = node.name;
  if (name == "f") return Grouped(part("num")) + (setting("type", "") == "noBar" ? "¦" : "/") + Grouped(part("den"));
  if (name == "sSup" || name == "sSub" || name == "sSubSup")
    return Grouped(part("e")) + with("_", "sub") + with("^", "sup");
  if (name == "sPre") return with("_", "sub") + with("^", "sup") + Grouped(part("e"));
  if (name == "rad") {
    const std::string degree = part("deg");
    return "√" + (degree.empty() ? "" : "[" + degree + "]") + Grouped(part("e"));
  }
  if (name == "nary") return setting("chr", "∫") + with("_", "sub") + with("^", "sup") + " " + part("e");
  if (name == "d")
    return setting("begChr", "(") + Joined(node.parts["e"], setting("sepChr", "|")) + setting("endChr", ")");
  if (name == "func") return part("fName") + " " + part("e");
  if (name == "limLow") return part("e") + with("_", "lim");
  if (name == "limUpp") return part("e") + with("^", "lim");
  if (name == "acc") return Grouped(part("e")) + setting("chr", "\u0302");
  if (name == "m") return "[" + Joined(node.parts["mr"], "; ") + "]";
  if (name == "eqArr") return Joined(node.parts["e"], "; ");
  return node.text + part("e");
}

std::string Raised(std::string_view text, bool is_low) {
  constexpr std::string_view kPlain = "0123456789+-=()nix";
  constexpr std::array<std::string_view, 18> kHigh = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸",
                                                      "⁹", "⁺", "⁻", "⁼", "⁽", "⁾", "ⁿ", "ⁱ", "ˣ"};
  constexpr std::array<std::string_view, 18> kLow = {"₀", "₁", "₂", "₃", "₄", "₅", "₆", "₇", "₈",
                                                     "₉", "₊", "₋", "₌", "₍", "₎", "ₙ", "ᵢ", "ₓ"};
  constexpr std::string_view kMinus = "\u2212";
  std::string raised;
  for (std::string_view rest = text; !rest.empty();) {
    const bool is_minus = rest.starts_with(kMinus);
    const std::size_t at = kPlain.find(is_minus ? '-' : rest.front());
    if (at == std::string_view::npos) return std::string(text);
    raised += is_low ? kLow[at] : kHigh[at];
    rest.remove_prefix(is_minus ? kMinus.size() : 1);
  }
  return raised;
}

}  // namespace reprise::document
