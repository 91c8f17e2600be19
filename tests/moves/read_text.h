#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "engine/chat_document.h"
#include "engine/moves/formats.h"
#include "engine/moves/moved_turns.h"
#include "support/test.h"

// What becomes of the text of a source.
namespace reprise::test {

struct Read {
  std::string format;  // empty: none
  std::vector<Result<ForeignChat>> chats{};
  std::string failure{};              // of the source
  std::vector<std::string> failed{};  // sessions of a list
};

inline Read ReadText(const std::string& text) {
  const SourceText source = SourceText::Of(text, "the source");
  const auto format = RecognizeFormat(source, {});
  if (!format) return {.format = "", .failure = format.error().message};
  if (*format == nullptr) return {};
  Read read{.format = std::string((*format)->name)};
  const auto add = [&](const FoundSession& session) -> Result<void> {
    const auto turns = session.plan();
    read.chats.push_back(turns.and_then([](const auto& each) { return each->ReadAll("chat"); }));
    return {};
  };
  const auto done =
      ForEachSession(source, **format, {}, add, [&](const Error& error) { read.failed.push_back(error.message); });
  if (!done) read.failure = done.error().message;
  return read;
}

// The only chat of a source.
inline ForeignChat Chat(const std::string& text) {
  const Read read = ReadText(text);
  INFO(read.format << ": " << read.failure);
  REQUIRE(read.chats.size() == 1);
  INFO((read.chats[0] ? "" : read.chats[0].error().message));
  REQUIRE(read.chats[0]);
  return *read.chats[0];
}

// The steps of a session, read once.
inline std::vector<MovedMessage> StepsOf(MovedSession& session) {
  std::vector<MovedMessage> steps;
  for (std::size_t record = 0; record < session.records(); ++record) {
    auto read = session.Read(record).value();
    std::ranges::move(read, std::back_inserter(steps));
  }
  return steps;
}

// A line of Claude Code.
inline std::string ClaudeLine(const std::string& type, const std::string& uuid, const std::string& parent,
                              const std::string& content, const std::string& more = "") {
  const std::string role = type == "assistant" ? "assistant" : "user";
  return R"({"type":")" + type + R"(","sessionId":"s","uuid":")" + uuid + R"(","parentUuid":)" +
         (parent.empty() ? "null" : "\"" + parent + "\"") + R"(,"message":{"role":")" + role + R"(","id":"m)" + uuid +
         R"(","content":)" + content + "}" + more + "}\n";
}

}  // namespace reprise::test
