#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/moves/session.h"
#include "engine/moves/source_text.h"
#include "reprise/result.h"

// JSON documents of any size, of which no more than one element is in memory.
namespace reprise {

// Where an element of a list stands, of an object with its name: "\"id\": {...}".
struct ElementPlace {
  std::uint64_t offset = 0, length = 0;
  std::uint32_t number = 0;  // in its list, from 1
};
// Gets each element as it ends, until it returns false or fails. `list` is an index.
using VisitElement = std::function<Result<bool>(std::size_t list, const ElementPlace& place)>;

struct Outline {
  // The document with no more than the first element of each list. Not more than kMaxSourceRecord.
  std::string rest;
  std::uint64_t begin = 0, end = 0;  // of the document in the source
  bool is_alone = false;             // nothing but blanks follows it
};
// Reads the document once. A list is named by its path and what it is: "[" (the whole document), "history[",
// "chat.history.messages{". Only strings, brackets and commas are looked at, so each part has yet to be parsed.
// kInvalidArgument (reason "invalid_document") if the document is no array or object, is cut off or has a list twice;
// so is one whose rest is too large. kIo.
Result<Outline> ReadOutline(const SourceText& source, std::span<const std::string_view> lists,
                            const VisitElement& visit);

// The elements of a JSON array; an object is itself one element. Failures as above; kInvalidArgument also if something
// follows an array, after its elements.
Result<void> ForEachElement(const SourceText& source, const std::function<Result<bool>(const ElementPlace&)>& visit);

// A document without its lists.
struct MovedDocument {
  struct Element {
    SourcePlace place;
    std::uint32_t list;  // index in DocumentLists
  };
  SourceText source;
  std::uint64_t begin = 0, end = 0;  // in the source
  Json rest{};                       // Outline::rest
  std::vector<Element> elements{};

  // The elements of a list alone.
  std::vector<SourcePlace> In(std::string_view list) const;
};
// An element of an array. kInvalidArgument (reason "invalid_document"), kIo.
Result<Json> LoadElement(const SourceText& source, const SourcePlace& place);
// The elements of a list as records; those of an object are objects with this member alone.
Records ElementsOf(const MovedDocument& document, std::string_view list);

// The lists in which tools keep what grows with a session.
std::span<const std::string_view> DocumentLists();
// kInvalidArgument also if an element is larger than kMaxSourceRecord, or the rest is no JSON.
Result<MovedDocument> ReadDocument(const SourceText& source);

}  // namespace reprise
