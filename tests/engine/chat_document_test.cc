#include "engine/chat_document.h"

#include <nlohmann/json.hpp>

#include "domain/codec.h"
#include "store/memory_interaction_store.h"
#include "support/test.h"

namespace reprise::chat_document_test {
namespace {

const ChatId kName = *ChatId::Parse("name");

Message Said(Role role, const std::string& text) { return Message{.role = role, .content = text}; }

// Interaction `number` after `parent`, with its parent's messages before its own two.
Interaction Turn(std::uint32_t number, const Interaction* parent) {
  const std::string text = "turn " + std::to_string(number);
  Interaction turn{.id = InteractionId::FromNumber(number), .chat_id = kName};
  turn.status = InteractionStatus::kCompleted;
  turn.user_message = text;
  turn.created_at = turn.completed_at.emplace(*ParseTimestamp("2025-01-15T10:00:00.000Z"));
  turn.final_agent_state.emplace();
  if (parent != nullptr) {
    turn.parent_id = parent->id;
    turn.final_agent_state = parent->final_agent_state;
  }
  turn.final_agent_state->messages.push_back(Said(Role::kUser, text));
  turn.final_agent_state->messages.push_back(Said(Role::kAssistant, "answer to " + text));
  return turn;
}

// A branch of three, one beside the second, and one whose state does not continue its parent's.
std::vector<Interaction> Turns() {
  std::vector<Interaction> turns;
  turns.push_back(Turn(1, nullptr));
  turns.push_back(Turn(2, &turns[0]));
  turns.push_back(Turn(3, &turns[0]));
  turns.push_back(Turn(4, &turns[1]));
  turns.push_back(Turn(5, &turns[3]));
  const Messages whole = turns[4].final_agent_state->messages;
  turns[4].final_agent_state->messages = std::vector<Message>(whole.begin() + 1, whole.end());
  turns.push_back(Turn(6, &turns[4]));
  return turns;
}

Json Document(const std::vector<Interaction>& turns) {
  Json document = {{"id", "name"}, {"title", "its title"}, {"head", "int_004"}, {"interactions", Json::array()}};
  for (const Interaction& turn : turns) document["interactions"].push_back(ToJson(turn));
  return document;
}

std::string MessageOf(const Result<ForeignChat>& read) {
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ErrorCode::kInvalidArgument);
  CHECK(read.error().reason == "invalid_document");
  return read.error().message;
}

}  // namespace

TEST_CASE("ReadChatDocument: what an export says is what comes in, states and branches too", "[document]") {
  const std::vector<Interaction> turns = Turns();
  auto chat = ReadChatDocument(Document(turns), "here");
  REQUIRE(chat);
  CHECK(chat->notes.empty());
  // All but the first, and the one that goes its own way.
  CHECK(chat->kept_messages.size() == 4);
  CHECK(chat->interactions[3].final_agent_state->messages.size() == 2);

  MemoryInteractionStore store;
  const IncomingChat incoming = ToIncomingChat(kName, *std::move(chat));
  REQUIRE(store.ImportChat(incoming));
  for (Interaction turn : turns) {
    turn.imported = true;
    CHECK(store.LoadInteraction(kName, turn.id) == turn);
  }
  const ChatId other = NumberedName(kName, 2);
  REQUIRE(store.ImportChat(RenamedTo(other, incoming)));
  for (Interaction turn : turns) {
    turn.chat_id = other;
    turn.imported = true;
    CHECK(store.LoadInteraction(other, turn.id) == turn);
  }
  const auto summary = store.LoadSummary(kName);
  CHECK(summary->title == "its title");
  CHECK(summary->head == InteractionId::FromNumber(4));
  CHECK(summary->head_status == InteractionStatus::kCompleted);
}

TEST_CASE("ToChatDocument: it is read again as it was, and grows with what was said", "[document]") {
  std::vector<Interaction> turns = Turns();
  auto chat = ReadChatDocument(Document(turns), "here");
  REQUIRE(chat);
  chat->files.push_back(MakeFile("a.txt", "text/plain", "text").value());
  chat->files.push_back(MakeFile("b", "", std::string("\0\xff", 2)).value());
  const Json document = ToChatDocument(*chat);
  const auto again = ReadChatDocument(document, "there");
  REQUIRE(again);
  CHECK(again->notes.empty());
  CHECK(again->kept_messages == chat->kept_messages);
  CHECK(again->files == chat->files);
  for (const Interaction& turn : turns) {
    CHECK(again->Whole(turn.id).final_agent_state == turn.final_agent_state);
  }

  const auto size_of = [](std::uint32_t length) {
    std::vector<Interaction> linear = {Turn(1, nullptr)};
    for (std::uint32_t number = 2; number <= length; ++number) linear.push_back(Turn(number, &linear.back()));
    return DumpJson(ToChatDocument(*ReadChatDocument(Document(linear), "here"))).size();
  };
  CHECK(size_of(200) < 21 * size_of(10));
}

TEST_CASE("ReadChatDocument: a small document does not become a large chat", "[document]") {
  const std::vector<Interaction> turns = Turns();
  Json document = ToChatDocument(*ReadChatDocument(Document({turns[0], turns[1]}), "here"));
  Json& interactions = document["interactions"];
  interactions[0]["final_agent_state"]["messages"][0]["content"] = std::string(1 << 20, 'x');
  // Each goes on behind the first of its parent's messages, so that its state stands by itself.
  for (int number = 3; number < 100; ++number) {
    Json next = interactions[1];
    next["id"] = InteractionId::FromNumber(static_cast<std::uint32_t>(number)).str();
    next["parent_id"] = interactions.back()["id"];
    next["final_agent_state"]["kept_messages"] = 1u;
    interactions.push_back(std::move(next));
  }
  CHECK(MessageOf(ReadChatDocument(document, "here")).ends_with("kept_messages repeats too much of what came before"));
}

TEST_CASE("ReadChatDocument: kept messages must be there", "[document]") {
  const std::vector<Interaction> turns = Turns();
  Json document = ToChatDocument(*ReadChatDocument(Document({turns[0], turns[1]}), "here"));
  const Json good = document;
  Json& kept = document["interactions"][1]["final_agent_state"]["kept_messages"];
  REQUIRE(kept == 2);
  kept = 1u;
  const auto fewer = ReadChatDocument(document, "here");
  REQUIRE(fewer);
  CHECK(fewer->Whole(InteractionId::FromNumber(2)).final_agent_state->messages.size() == 3);
  for (const Json& bad : {Json(3), Json(-1), Json("2"), Json(nullptr), Json(1.5), Json(1ull << 63)}) {
    kept = bad;
    CHECK(MessageOf(ReadChatDocument(document, "here")).starts_with("here, interaction 2: kept_messages"));
  }
  document = good;
  document["interactions"][0]["final_agent_state"]["kept_messages"] = 1u;
  CHECK(MessageOf(ReadChatDocument(document, "here")).starts_with("here, interaction 1: kept_messages"));
}

TEST_CASE("ReadChatDocument: what is added to a state that is not here is no state", "[document]") {
  const std::vector<Interaction> turns = Turns();
  Json document = ToChatDocument(*ReadChatDocument(Document({turns[0], turns[1], turns[3]}), "here"));
  document["interactions"].erase(0);
  const auto chat = ReadChatDocument(document, "here");
  REQUIRE(chat);
  CHECK(chat->interactions.size() == 2);
  CHECK(chat->notes.size() == 3);  // that one begins a branch, and that both states were made
  const Messages made = chat->Whole(turns[1].id).final_agent_state->messages;
  CHECK(made == Messages{Said(Role::kUser, "turn 2")});
  CHECK(chat->Whole(turns[3].id).final_agent_state->messages == Messages{made[0], Said(Role::kUser, "turn 4")});
}

TEST_CASE("ReadChatDocument: the interactions that a chat names and lacks are its gaps", "[document]") {
  const std::vector<Interaction> turns = Turns();
  const auto gaps_without = [&](std::size_t index) {
    Json document = Document(turns);
    document["interactions"].erase(index);
    return ReadChatDocument(document, "here")->gaps;
  };
  CHECK(ReadChatDocument(Document(turns), "here")->gaps.empty());
  CHECK(gaps_without(1) == std::vector<std::string>{"int_002, which int_004 continues, is not here"});
  CHECK(gaps_without(0).size() == 2);
  CHECK(gaps_without(5).empty());  // nothing names the last one of a branch that the chat left
  Json document = Document(turns);
  document["head"] = "int_077";
  CHECK(ReadChatDocument(document, "here")->gaps ==
        std::vector<std::string>{"int_077, where the chat ends, is not here"});
  document["head"] = nullptr;
  CHECK(ReadChatDocument(document, "here")->gaps.empty());
  CHECK(ReadChatDocument(ToJson(turns[1]), "here")->gaps.empty());  // alone, as somebody took it out
}

TEST_CASE("ReadChatDocument: a long chat takes memory and time for what was said", "[document][long]") {
  constexpr std::uint32_t kTurns = 20'000;
  Json document = {{"id", "name"}, {"interactions", Json::array()}};
  for (std::uint32_t number = 1; number <= kTurns; ++number) {
    AddedInteraction added{.interaction = Turn(number, nullptr), .kept_messages = 2 * (number - 1)};
    if (number > 1) added.interaction.parent_id = InteractionId::FromNumber(number - 1);
    document["interactions"].push_back(ToJson(added));
  }
  auto chat = ReadChatDocument(std::move(document), "here");
  REQUIRE(chat);
  const IncomingChat incoming = ToIncomingChat(kName, *std::move(chat));
  for (const InteractionId id : incoming.interactions) {
    REQUIRE(incoming.load(id)->final_agent_state->messages.size() == 2 * id.number());
  }
}

TEST_CASE("ReadChatDocument: an interaction alone is a chat too", "[document]") {
  const auto chat = ReadChatDocument(ToJson(Turn(1, nullptr)), "here");
  REQUIRE(chat);
  CHECK(chat->name == "name");
  CHECK(chat->interactions.size() == 1);
}

TEST_CASE("ReadChatDocument: what cannot be used is named, with no word of the chat", "[document]") {
  CHECK(MessageOf(ReadChatDocument(Json::array(), "here")) == "here: it is no JSON object");
  CHECK(MessageOf(ReadChatDocument(Json::object(), "here")) == "here: it is neither a chat nor an interaction");
  CHECK(MessageOf(ReadChatDocument({{"interactions", 7}}, "here")).find("neither") != std::string::npos);
  CHECK(MessageOf(ReadChatDocument({{"ciphertext", "x"}}, "here")).find("sealed") != std::string::npos);
  Json document = Document(Turns());
  document["interactions"][2]["user_message"] = 7;
  const std::string message = MessageOf(ReadChatDocument(document, "here"));
  CHECK(message.starts_with("here, interaction 3: "));
  CHECK(message.find("answer to") == std::string::npos);
  document = Document(Turns());
  document["files"] = Json::array({7});
  CHECK(MessageOf(ReadChatDocument(document, "here")).starts_with("here, file 1: "));
}

TEST_CASE("ReadChatDocument: a file comes in with a plain name and its own content, once", "[document]") {
  Json document = Document(Turns());
  StoredFile file = MakeFile("a.txt", "text/plain", "text").value();
  file.info.filename = "../../a\r\nb.txt";
  document["files"] = Json::array({ToJson(file)});
  const auto chat = ReadChatDocument(document, "here");
  REQUIRE(chat);
  CHECK(chat->files.at(0).info.filename == "ab.txt");
  CHECK(chat->files.at(0).info.id == file.info.id);
  CHECK(chat->files.at(0).content == "text");

  document["files"].push_back(document["files"][0]);
  CHECK(MessageOf(ReadChatDocument(document, "here")) == "here, file 2: there are two files of this id");
  document["files"] = Json::array({ToJson(file)});
  document["files"][0]["content"] = "other";
  CHECK(MessageOf(ReadChatDocument(document, "here")).starts_with("here, file 1: "));
  document["files"] = Json::array({ToJson(file)});
  document["files"][0]["mime_type"] = "text/plain\r\nSet-Cookie: a=b";
  CHECK(MessageOf(ReadChatDocument(document, "here")).starts_with("here, file 1: "));
}

TEST_CASE("NumberedName: it stays a chat's name", "[document]") {
  CHECK(NumberedName(kName, 2).str() == "name-2");
  const ChatId longest = *ChatId::Parse(std::string(64, 'a'));
  CHECK(NumberedName(longest, 12).str() == std::string(61, 'a') + "-12");
}

}  // namespace reprise::chat_document_test
