#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "document/archive.h"

namespace reprise::document {

// An element that begins. Names are without their prefix; they and the values are good during the call only.
class Element {
 public:
  explicit Element(void* reader, std::string_view name) : reader_(reader), name_(name) {}
  std::string_view name() const { return name_; }
  // By its local name ("val" of w:val), in any namespace, or with that prefix; empty: there is none.
  std::string Attribute(std::string_view name, std::string_view prefix = {}) const;

 private:
  void* const reader_;
  const std::string_view name_;
};

struct XmlHandler {
  std::function<void(const Element&)> begin{};
  std::function<void(std::string_view name)> end{};
  std::function<void(std::string_view text)> text{};
};

// Reads XML as a stream. Document types, with all that they could declare, are refused; nothing is fetched. Throws
// Unreadable. Returns when `done` says so, too.
void ReadXml(const Archive::Read& read, const XmlHandler& handler, const std::function<bool()>& done);

}  // namespace reprise::document
