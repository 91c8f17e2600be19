#include "client/archive/chat_names.h"

#include <vector>

#include "support/test.h"

namespace reprise::chat_names_test {
namespace {

ChatNames Among(std::vector<NamedChat> chats, bool takes_parts = false) {
  return {.has = [](const ChatId&) -> Result<bool> { return false; },
          .all = [chats]() -> Result<std::vector<NamedChat>> { return chats; },
          .where = "in /chats",
          .takes_parts = takes_parts};
}

const std::vector<NamedChat> kChats = {{"chat_aa1", "Holiday plans"}, {"chat_aa2", "Tax return"},
                                       {"notes", "holiday"},          {"note", "Fix a/b in the parser"},
                                       {"tax", "Ünïcode first"},      {"broken", ""}};

std::string Kind(const Error& error) {
  return error.code == ErrorCode::kConflict          ? "several"
         : error.code == ErrorCode::kNotFound        ? "none"
         : error.code == ErrorCode::kInvalidArgument ? "wrong"
                                                     : "another failure";
}

std::string Found(std::string_view text, bool takes_parts = false) {
  const auto chat = FindChat(text, Among(kChats, takes_parts));
  return chat ? chat->str() : Kind(chat.error());
}

TEST_CASE("FindChat: an id beats a title, which beats the beginning of either", "[archive]") {
  CHECK(Found("notes") == "notes");
  CHECK(Found("note") == "note");  // exact, though another begins so
  CHECK(Found("holiday") == "notes");
  CHECK(Found("HOLIDAY") == "notes");
  CHECK(Found("holiday p") == "chat_aa1");
  CHECK(Found("chat_aa1") == "chat_aa1");
  CHECK(Found("tax") == "tax");
  CHECK(Found("tax r") == "chat_aa2");
  CHECK(Found("b") == "broken");
  CHECK(Found("Ünï") == "tax");
  CHECK(Found("Fix a/b") == "note");
}

TEST_CASE("FindChat: a name of several chats is refused, and lists them", "[archive]") {
  const auto chat = FindChat("chat_aa", Among(kChats));
  REQUIRE(!chat.has_value());
  CHECK(chat.error().code == ErrorCode::kConflict);
  CHECK(chat.error().message ==
        "\"chat_aa\" means any of 2 chats in /chats: chat_aa1 \"Holiday plans\", chat_aa2 \"Tax return\" "
        "(`reprise ls` lists them)");
  // Equal titles, and more than are listed. Hidden characters are spelled out.
  std::vector<NamedChat> many;
  for (int i = 0; i < 7; ++i) many.push_back({"c" + std::to_string(i), "Same\x1b[2J" + std::string(100, 'x')});
  const auto same = FindChat("same", Among(many));
  REQUIRE(!same.has_value());
  CHECK(same.error().message.find("means any of 7 chats") != std::string::npos);
  CHECK(same.error().message.find("c4 \"Same<U+001B>[2Jx") != std::string::npos);
  CHECK(same.error().message.find("c5") == std::string::npos);
  CHECK(same.error().message.size() < 600);
}

TEST_CASE("FindChat: a name of no chat is not found, or is wrong if it can be no id", "[archive]") {
  CHECK(Found("") == "wrong");
  CHECK(Found("  ") == "wrong");
  CHECK(Found("..") == "wrong");
  CHECK(Found("plans") == "none");
  CHECK(Found(std::string(100'000, 'a')) == "wrong");
  CHECK(Found("holiday\n") == "wrong");
  CHECK(FindChat("brokn", Among(kChats)).error().message ==
        "there is no chat brokn in /chats, did you mean broken? (`reprise ls` lists them)");
}

TEST_CASE("FindChat: a part of a title is the least of the matches, and only where it is wanted", "[archive]") {
  CHECK(Found("plans", true) == "chat_aa1");
  CHECK(Found("parser", true) == "note");
  CHECK(Found("i", true) == "several");
  CHECK(Found("tax", true) == "tax");
}

TEST_CASE("FindChat: an exact id needs no list, and a list that fails is no missing chat", "[archive]") {
  ChatNames names = Among({});
  names.all = []() -> Result<std::vector<NamedChat>> { return Fail(ErrorCode::kUnavailable, "gone"); };
  CHECK(FindChat("notes", names).error().code == ErrorCode::kUnavailable);
  names.has = [](const ChatId&) -> Result<bool> { return true; };
  CHECK(FindChat("notes", names)->str() == "notes");
  // A foreign server may list anything.
  CHECK(!FindChat("../x", Among({{"../x", ""}})).has_value());
}

TEST_CASE("FindRecord: the end may name an interaction, and slashes may be part of a title", "[archive]") {
  const auto found = [](std::string_view text) {
    const auto what = FindRecord(text, Among(kChats));
    if (!what) return Kind(what.error());
    return what->chat.str() + (what->interaction ? "/" + what->interaction->str() : "");
  };
  CHECK(found("chat_aa1/int_002") == "chat_aa1/int_002");
  CHECK(found("holiday p/int_002") == "chat_aa1/int_002");
  CHECK(found("fix a/b") == "note");
  CHECK(found("fix a/b/int_001") == "note/int_001");
  CHECK(found("chat_aa/int_001") == "several");
  CHECK(found("gone/int_001") == "none");
  CHECK(found("/int_001") == "wrong");
  CHECK(FindRecord("notes/one", Among(kChats)).error().message ==
        "\"notes/one\" names nothing: an interaction id looks like int_001");
}

}  // namespace
}  // namespace reprise::chat_names_test
