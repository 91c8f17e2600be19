#include "engine/request_body.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "crypto/digest.h"
#include "support/test.h"

namespace reprise::request_body_test {

using Kind = BodyPiece::Kind;

std::string Quoted(std::string_view text) {
  std::string quoted;
  AppendJsonString(quoted, text);
  return quoted;
}

RequestPlace PlaceAt(std::size_t index) { return {InteractionId::FromNumber(7), index}; }

std::size_t TextIn(const SentBody& sent) {
  std::size_t bytes = 0;
  for (const BodyPiece& piece : sent.pieces) bytes += piece.text.view().size();
  return bytes;
}

bool Has(const SentBody& sent, Kind kind) {
  return std::ranges::find(sent.pieces, kind, &BodyPiece::kind) != sent.pieces.end();
}

Message Says(Role role, std::string text) { return {.role = role, .content = std::move(text)}; }
Message Calls(std::string arguments) {
  return {.role = Role::kAssistant,
          .tool_calls = {{.id = "call_1", .name = "read", .arguments = std::move(arguments)}}};
}

// Shortens one body after another and checks that each is restored.
class Sender {
 public:
  SentBody Send(const std::string& body, const Messages& messages) {
    auto [sent, marks] = ShortenBody(body, marks_ ? &*marks_ : nullptr, messages);
    CHECK(sent.bytes == body.size());
    CHECK(sent.digest == Sha256Digest({body}));
    CHECK(sent.before.has_value() == (Has(sent, Kind::kHead) || Has(sent, Kind::kTail)));
    if (sent.before) CHECK(*sent.before == PlaceAt(count_ - 1));
    CHECK(RestoreBody(sent, before_, messages) == body);
    marks.place = PlaceAt(count_++);
    marks_ = std::move(marks);
    before_ = body;
    return sent;
  }
  const RequestMarks& marks() const { return *marks_; }

 private:
  std::optional<RequestMarks> marks_;
  std::string before_;
  std::size_t count_ = 0;
};

// How a provider's requests look.
struct Shape {
  std::string system = "You are a careful agent, and answer in one sentence.";
  std::string tools = R"([{"name":"read","description":"Reads a file of the workspace."}])";
  bool raw_arguments = false;
  bool marks_last = false;  // with cache_control

  std::string Element(const Message& message, bool is_last) const {
    std::string out = R"({"role":)" + Quoted(message.role == Role::kUser ? "user" : "assistant");
    if (message.content) out += R"(,"content":)" + Quoted(*message.content);
    for (const ToolCall& call : message.tool_calls) {
      out += R"(,"call":{"name":)" + Quoted(call.name) + R"(,"arguments":)";
      out += (raw_arguments ? call.arguments : Quoted(call.arguments)) + "}";
    }
    if (is_last && marks_last) out += R"(,"cache_control":{"type":"ephemeral"})";
    return out + "}";
  }
  std::string List(const Messages& messages) const {
    std::string out = "[";
    for (std::size_t i = 0; i < messages.size(); ++i)
      out += (i == 0 ? "" : ",") + Element(messages[i], i + 1 == messages.size());
    return out + "]";
  }
};

using Writer = std::function<std::string(const Shape&, const Messages&)>;

std::string ChatCompletions(const Shape& shape, const Messages& messages) {
  return R"({"model":"m","messages":)" + shape.List(messages) + R"(,"tools":)" + shape.tools + R"(,"stream":true})";
}
std::string Responses(const Shape& shape, const Messages& messages) {
  return R"({"model":"m","instructions":)" + Quoted(shape.system) + R"(,"input":)" + shape.List(messages) +
         R"(,"tools":)" + shape.tools + "}";
}
std::string Anthropic(const Shape& shape, const Messages& messages) {
  return R"({"model":"m","max_tokens":4096,"tools":)" + shape.tools + R"(,"system":[{"type":"text","text":)" +
         Quoted(shape.system) + R"(}],"messages":)" + shape.List(messages) + R"(,"stream":true})";
}

// A question, a call, its result and an answer. Texts hold what JSON escapes.
std::vector<Message> Turn(int i) {
  const std::string n = std::to_string(i);
  const std::string noise = "\t\"quoted\" \\ back\nline \x01\x1f\x7f \u00e9\u4e2d\U0001F600 messages\":[{]}, ";
  return {Says(Role::kUser, "Question " + n + " is about this: " + noise + std::string(200, 'q')),
          Calls(R"({"path":"src/file)" + n + R"(.cc", "note":"a \"quoted\" word\n"})"),
          Says(Role::kTool, noise + "The file's content " + n + " " + std::string(1000, 'c')),
          Says(Role::kAssistant, "The answer " + n + " is not that simple: " + noise)};
}

void CheckGrowing(const Writer& write, const Shape& shape) {
  Sender sender;
  Messages messages;
  for (int i = 0; i < 100; ++i) {
    for (Message& message : Turn(i)) {
      messages.push_back(std::move(message));
      const SentBody sent = sender.Send(write(shape, messages), messages);
      CHECK(sent.before.has_value() == ((messages.size() - 1) % 129 != 0));  // no row is longer
      if (!sent.before) continue;
      CHECK(TextIn(sent) < 200);
      CHECK(sent.pieces.size() <= 10);
      CHECK(Has(sent, Kind::kHead));
      CHECK(Has(sent, Kind::kTail));
    }
  }
}

TEST_CASE("RequestBody: a growing conversation costs little per request", "[engine]") {
  CheckGrowing(ChatCompletions, {});
  CheckGrowing(Responses, {});
  CheckGrowing(Anthropic, {.raw_arguments = true, .marks_last = true});
}

TEST_CASE("RequestBody: without a request before, texts of all messages are found", "[engine]") {
  Messages messages;
  for (int i = 0; i < 300; ++i) messages.Append(Turn(i));
  const Shape shape;
  const std::string body = ChatCompletions(shape, messages);
  const SentBody sent = Sender().Send(body, messages);
  CHECK(TextIn(sent) < 300 * 350);
  CHECK(std::ranges::count(sent.pieces, Kind::kContent, &BodyPiece::kind) == 900);
  CHECK(std::ranges::count(sent.pieces, Kind::kQuoted, &BodyPiece::kind) == 300);

  // A compacted conversation lacks most of them.
  Messages kept{Says(Role::kUser, "A summary of it all, which is in no message.")};
  kept.Append(messages, 1000, messages.size());
  const SentBody compacted = Sender().Send(ChatCompletions(shape, kept), messages);
  CHECK(TextIn(compacted) < 50 * 350 + 300);

  // It still repeats what is before its messages.
  Sender sender;
  const std::string instructions = "Always be brief. ";
  Shape long_shape;
  for (int i = 0; i < 1000; ++i) long_shape.system += instructions;
  sender.Send(Anthropic(long_shape, messages), messages);
  CHECK(TextIn(sender.Send(Anthropic(long_shape, kept), messages)) < 50 * 350 + 300);
}

TEST_CASE("RequestBody: what changes before or after the conversation is new text", "[engine]") {
  Messages messages(Turn(1));
  Shape shape;
  for (const Writer& write : {Writer(ChatCompletions), Writer(Responses), Writer(Anthropic)}) {
    Sender sender;
    Shape changing = shape;
    sender.Send(write(changing, messages), messages);
    changing.system += " Today is Monday.";
    sender.Send(write(changing, messages), messages);
    changing.tools = R"([{"name":"write","description":"Writes a file of the workspace."}])";
    const SentBody sent = sender.Send(write(changing, messages), messages);
    CHECK(TextIn(sent) < 700);
  }
  Sender openai;
  openai.Send(ChatCompletions(shape, messages), messages);
  shape.tools = "[]";
  const SentBody sent = openai.Send(ChatCompletions(shape, messages), messages);
  CHECK(Has(sent, Kind::kHead));
  CHECK_FALSE(Has(sent, Kind::kTail));
  CHECK(TextIn(sent) == std::string_view(R"(],"tools":[],"stream":true})").size());
}

TEST_CASE("RequestBody: arguments are found raw and quoted", "[engine]") {
  const Messages messages{Calls(R"({"path":"a \"b\"", "and":"something longer"})")};
  CHECK(Has(Sender().Send(ChatCompletions({}, messages), messages), Kind::kQuoted));
  CHECK(Has(Sender().Send(Anthropic({.raw_arguments = true}, messages), messages), Kind::kArguments));
}

TEST_CASE("RequestBody: marks are before the first element and at the ends of the last four", "[engine]") {
  const auto marks_of = [](const std::string& body) { return ShortenBody(body, nullptr, {}).marks; };
  const std::string body =
      R"( {"a":[{"messages":[1]}], "x":"\"messages\":[", "messages" : [1 , {"b":[2,"],"]}, "3" ,4 ] , "t":[]} )";
  const RequestMarks marks = marks_of(body);
  REQUIRE(marks.heads.size() == 5);
  CHECK(body.substr(0, marks.heads[0].bytes).ends_with(R"("messages" : [)"));
  CHECK(body.substr(0, marks.heads[1].bytes).ends_with("[1"));
  CHECK(body.substr(0, marks.heads[2].bytes).ends_with(R"("],"]})"));
  CHECK(body.substr(0, marks.heads[3].bytes).ends_with(R"("3")"));
  CHECK(body.substr(0, marks.heads[4].bytes).ends_with(",4"));
  CHECK(marks.heads[4].digest == Sha256Digest({body.substr(0, marks.heads[4].bytes)}).substr(7, 20));
  REQUIRE(marks.tail);
  CHECK(body.substr(body.size() - marks.tail->bytes) == R"(] , "t":[]} )");

  CHECK(marks_of(R"({"input":[ ]})").heads.size() == 1);
  CHECK(marks_of(R"({"input":[ ]})").tail->bytes == 2);
  CHECK(marks_of(R"({"input":["a"]})").heads.size() == 2);
  for (const char* none : {"", "{", "{}", "[1]", R"({"messages":"[1]"})", R"({"a":"messages"},[1])",
                           R"({"a":{"input":[1]}})", R"({"x":"messages","b":[1]})", R"({"messages":[1,)",
                           R"({"messages":["a\)", R"("messages":[1])", "}]}]", R"({"messages)", "plain text"}) {
    const RequestMarks empty = marks_of(none);
    CHECK(empty.heads.empty());
    CHECK_FALSE(empty.tail);
  }
}

TEST_CASE("RequestBody: bodies that are no conversation are restored too", "[engine]") {
  const Messages messages{Says(Role::kUser, "A text that is long enough to be found"),
                          Calls("\x80\xff not UTF-8, but long enough"),
                          Says(Role::kTool, "invalid \xff\xfe\xc3 bytes in the middle of it"), Says(Role::kUser, "")};
  Sender sender;
  CHECK(sender.Send("", messages).pieces.empty());
  for (const std::string& body :
       {std::string("{}"), std::string("no JSON: A text that is long enough to be found!"),
        std::string("\0\xff\xc3", 3), ChatCompletions({}, messages), *messages[0].content, std::string(5000, '"'),
        std::string(5000, '['), std::string("\"messages\":[\xff,\xff]"), std::string()}) {
    sender.Send(body, messages);
  }
  // What clients send in place of invalid bytes is found.
  CHECK(Sender().Send(Quoted(*messages[2].content), messages).pieces.size() == 3);
}

TEST_CASE("RequestBody: texts with the same beginning are told apart in bounded time", "[engine]") {
  Messages messages;
  std::string body;
  for (int i = 0; i < 200; ++i) {
    messages.push_back(Says(Role::kUser, std::string(1000, 'a') + std::to_string(i)));
    body += '\n' + *messages.back().content;
  }
  CHECK(Sender().Send(body, messages).pieces.size() == 400);
  Sender().Send(std::string(1 << 20, 'a'), messages);
}

// `sent` with one change is refused.
void CheckRefused(SentBody sent, const std::string& before, const Messages& messages,
                  const std::function<void(SentBody&)>& change) {
  REQUIRE(RestoreBody(sent, before, messages));
  change(sent);
  const auto restored = RestoreBody(sent, before, messages);
  REQUIRE_FALSE(restored);
  CHECK(restored.error().code == ErrorCode::kCorruption);
  CHECK(restored.error().Is(Reason::kIntegrityAuth));
}

TEST_CASE("RequestBody: a damaged record is refused", "[engine]") {
  const Messages messages(Turn(1));
  Messages earlier = messages;
  earlier.Truncate(1);
  const std::string before = ChatCompletions({}, earlier), body = ChatCompletions({}, messages);
  RequestMarks marks = ShortenBody(before, nullptr, earlier).marks;
  marks.place = PlaceAt(0);
  const SentBody sent = ShortenBody(body, &marks, messages).body;
  const auto refused = [&](const auto& change) { CheckRefused(sent, before, messages, change); };

  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < sent.pieces.size(); ++i) {
    refused([&](SentBody& each) { each.pieces.erase(each.pieces.begin() + static_cast<std::ptrdiff_t>(i)); });
    refused([&](SentBody& each) { each.pieces[i] = {.text = std::string(body.size() + 1, 'x')}; });
    for (const Kind kind : {Kind::kHead, Kind::kTail, Kind::kContent, Kind::kArguments, Kind::kQuoted}) {
      for (const std::uint64_t number :
           {std::uint64_t{before.size() + 1}, std::uint64_t{messages.size()}, kMost, kMost / 2}) {
        refused([&](SentBody& each) { each.pieces[i] = {.kind = kind, .first = number}; });
        refused([&](SentBody& each) { each.pieces[i] = {.kind = kind, .first = 1, .second = number}; });
      }
    }
  }
  refused([](SentBody& each) { each.digest.back() ^= 1; });
  refused([](SentBody& each) { each.digest.clear(); });
  refused([](SentBody& each) { --each.bytes; });
  refused([](SentBody& each) { ++each.bytes; });
  refused([](SentBody& each) { each.bytes = 0; });
  refused([](SentBody& each) { each.before.reset(); });
  refused([](SentBody& each) {
    each.bytes = kMost;
    each.pieces.assign(100000, BodyPiece{.kind = Kind::kContent, .first = 2});
  });

  CHECK_FALSE(RestoreBody(sent, "", messages));
  std::string other = before;
  other[before.find("Question")] = 'q';
  CHECK_FALSE(RestoreBody(sent, other, messages));
  CHECK_FALSE(RestoreBody(sent, before, {}));
}

TEST_CASE("RequestBody: random bodies are restored", "[engine]") {
  std::mt19937 random(20240611);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto text = [&] {
    constexpr std::string_view kParts[] = {"a", "bc", "\"", "\\", "\n", "\x02",           "é", "😀",
                                           "[", "]",  "{",  "}",  ",",  "\"messages\":[", " "};
    std::string out;
    for (std::size_t i = below(60); i > 0; --i) out += kParts[below(std::size(kParts))];
    return out;
  };
  Messages messages;
  Sender sender;
  std::string body;
  for (int i = 0; i < 500; ++i) {
    if (below(3) != 0) messages.push_back(below(2) == 0 ? Says(Role::kUser, text()) : Calls(text()));
    const Shape shape{
        .system = below(20) == 0 ? text() : "system", .raw_arguments = below(10) == 0, .marks_last = below(2) == 0};
    switch (below(6)) {
      case 0:
        body = Anthropic(shape, messages);
        break;
      case 1:
        body = text() + text();
        break;
      case 2:  // the body before, with a change somewhere
        body.insert(below(body.size() + 1), text());
        break;
      case 3:
        body.erase(below(body.size() + 1), below(40));
        break;
      default:
        body = ChatCompletions(shape, messages);
    }
    sender.Send(body, messages);
  }
}

}  // namespace reprise::request_body_test
