#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "document/archive.h"

namespace reprise::document {

// Writes an equation of Office Open XML (m:oMath) in a line: "1/2", "10^6", "√(x+1)", "∑_(i=1)^n x_i". Give it all
// elements and texts from the beginning of the m:oMath to its end.
class Equation {
 public:
  bool is_open() const { return !nodes_.empty(); }
  void Begin(const Element& element);
  void Add(std::string_view text);
  // The equation, at its end.
  std::optional<std::string> End();

 private:
  struct Node {
    std::string name, text{};
    bool after_object = false;                                // the text ends with an object (a fraction, a root)
    std::map<std::string, std::vector<std::string>> parts{};  // an object's arguments
    std::map<std::string, std::string> settings{};
  };
  static std::string Line(Node node);

  std::vector<Node> nodes_;  // from the outermost open element to the innermost
};

// Superscript or subscript in Unicode ("10⁶", "H₂O"); unchanged if a character has no such form ("2nd").
std::string Raised(std::string_view text, bool is_low);

}  // namespace reprise::document
