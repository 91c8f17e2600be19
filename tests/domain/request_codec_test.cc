#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/deflate.h"
#include "base/json.h"
#include "base/text.h"
#include "domain/codec.h"
#include "support/test.h"

namespace reprise::request_codec_test {

using Kind = BodyPiece::Kind;

ToolOrigin Server(const char* name, const char* digest) {
  return {.kind = ToolOrigin::Kind::kServer,
          .name = name,
          .version = std::string(name) + " 1.2",
          .revision = "2025-11-25",
          .digest = std::string("sha256:") + digest};
}

SentRequest Sample() {
  return {.round = 2,
          .purpose = SentRequest::Purpose::kSubAgent,
          .at = *ParseTimestamp("2026-01-15T10:00:00.000Z"),
          .model = "gpt-5.1",
          .address = "api.openai.com",
          .call_id = "call_1",
          .modules = std::vector<ToldModule>{{"10-rules", 120}, {"of an earlier version"}},
          .tools = {{"docs__find", Server("docs", "a")},
                    {"docs__read", Server("docs", "b")},
                    {"mail__send", Server("mail", "c")},
                    {"click", {.kind = ToolOrigin::Kind::kClient, .name = "browser", .digest = "sha256:d"}}},
          .body = {.digest = "sha256:" + std::string(64, 'a'),
                   .bytes = 48'211,
                   .before = RequestPlace{InteractionId::FromNumber(3), 1},
                   .pieces = {{.kind = Kind::kHead, .first = 100},
                              {.text = ",{\"role\":\"user\",\"content\":\""},
                              {.kind = Kind::kContent, .first = 7},
                              {.kind = Kind::kArguments, .first = 8, .second = 1},
                              {.kind = Kind::kQuoted, .first = 8, .second = 2},
                              {.kind = Kind::kFile, .text = "file_0123456789abcdef0123456789abcdef"},
                              {.kind = Kind::kTail, .first = 20}}},
          .response = SentResponse{.finish = SentResponse::Finish::kToolCalls,
                                   .model = "gpt-5.1-2025-11-13",
                                   .usage = {.input_tokens = 1200, .output_tokens = 34},
                                   .first_token_ms = 812,
                                   .ms = 2345,
                                   .request_id = "req_0f3a"}};
}

TEST_CASE("What came of a request leaves out what its request says") {
  const auto kept = [](const SentResponse& response) { return ToJson(response, "gpt-5.1"); };
  CHECK(kept({.model = "gpt-5.1", .ms = 7}) == Json{{"ms", 7}});
  CHECK(kept({.ms = 7}) == Json{{"ms", 7}, {"model", ""}});
  CHECK(kept({.error = "provider_overloaded", .ms = 7}) == Json{{"ms", 7}, {"error", "provider_overloaded"}});
  for (const SentResponse& each : {SentResponse{.model = "gpt-5.1", .ms = 7}, SentResponse{.ms = 7},
                                   SentResponse{.error = "provider_timeout", .first_token_ms = 0}}) {
    CHECK(SentResponseFromJson(kept(each), "gpt-5.1") == each);
  }
  for (const char* member : {"ms", "first_token_ms", "error", "finish", "model", "usage", "request_id"}) {
    Json broken = kept({.ms = 7});
    broken[member] = Json::array({1});
    CAPTURE(member);
    CHECK_FALSE(SentResponseFromJson(broken, "gpt-5.1"));
  }
  CHECK_FALSE(SentResponseFromJson({{"ms", 7}, {"finish", "bored"}}, "gpt-5.1"));
}

TEST_CASE("Only failed requests count as attempts") {
  const SentResponse failed{.error = "provider_overloaded"};
  std::vector<SentRequest> sent(6);
  sent[0].response = failed;
  sent[1].purpose = SentRequest::Purpose::kSummary;
  sent[1].response = SentResponse{};
  sent[3].round = 1;
  sent[4] = sent[5] = {.round = 1, .purpose = SentRequest::Purpose::kSubAgent, .call_id = "r1"};
  sent[4].response = failed;
  std::vector<std::size_t> attempts;
  for (std::size_t i = 0; i < sent.size(); ++i) attempts.push_back(AttemptOf(sent, i));
  CHECK(attempts == std::vector<std::size_t>{0, 0, 1, 0, 0, 1});
  sent[4].response = SentResponse{};
  CHECK(AttemptOf(sent, 5) == 0);
}

TEST_CASE("A turn's usage is in its event alone") {
  Interaction interaction{.id = InteractionId::FromNumber(1), .chat_id = *ChatId::Parse("c")};
  const TokenUsage usage{.input_tokens = 1200, .output_tokens = 34}, other{.input_tokens = 1};
  interaction.events = {{.seq = 2, .payload = event::Usage{other}}, {.seq = 3, .payload = event::Usage{usage}}};
  interaction.record.emplace();
  interaction.model = "some/m";
  const auto requests = [&](SentRequest request) {
    request.model = "m";
    request.body.digest = Sample().body.digest;
    interaction.record->requests = {request};
    const Json json = ToJson(interaction);
    CHECK(InteractionFromJson(json) == interaction);
    return json["record"]["requests"][0].value("response", Json());
  };
  CHECK(requests({.response = SentResponse{.model = "m", .usage = usage}}) == Json{{"ms", 0}});
  CHECK(requests({.response = SentResponse{.model = "m", .usage = other}}).contains("usage"));
  CHECK(requests({.response = SentResponse{.model = "m"}}).contains("usage"));
  CHECK(requests({.round = 1, .response = SentResponse{.model = "m"}}) == Json{{"ms", 0}});
  CHECK_FALSE(requests({.response = SentResponse{.error = "provider_overloaded"}}).contains("usage"));
  CHECK(requests({.purpose = SentRequest::Purpose::kSummary, .response = SentResponse{.usage = usage}})
            .contains("usage"));
  CHECK(requests({}).is_null());
  CHECK_FALSE(ToJson(interaction)["record"]["requests"][0].contains("model"));
  interaction.model = "another";
  CHECK(ToJson(interaction)["record"]["requests"][0]["model"] == "m");
  CHECK(InteractionFromJson(ToJson(interaction)) == interaction);
}

TEST_CASE("A request is read as it was written") {
  SentRequest sent = Sample();
  CHECK(SentRequestFromJson(ToJson(sent)) == sent);
  std::string text;
  AppendJson(text, sent);
  CHECK(text == DumpJson(ToJson(sent)));
  // Of one origin, in a row or not; a name twice, as only a damaged record has it.
  const ToolOrigin docs{.kind = ToolOrigin::Kind::kServer, .name = "docs", .digest = "d1"};
  ToolOrigin newer = docs;
  newer.version = "2";
  sent.tools = {{"a", docs}, {"b", docs}, {"c", newer}, {"d", docs}, {"d", docs}};
  CHECK(SentRequestFromJson(ToJson(sent)) == sent);
  CHECK(ToJson(sent.tools).size() == 4);
  const SentRequest least{.at = sent.at, .model = "m", .body = {.digest = sent.body.digest}};
  CHECK(SentRequestFromJson(ToJson(least)) == least);
  const RequestMarks marks{.place = {InteractionId::FromNumber(3), 1},
                           .heads = {{10, "00112233445566778899"}, {20, "aa112233445566778899"}},
                           .tail = BodyMark{5, "bb112233445566778899"}};
  CHECK(RequestMarksFromJson(ToJson(marks)) == marks);
  CHECK(RequestMarksFromJson(ToJson(RequestMarks{.place = marks.place})) == RequestMarks{.place = marks.place});
}

TEST_CASE("A text that many chats have is stored packed") {
  std::string tools;
  for (int i = 0; i < 200; ++i) tools += "{\"name\":\"tool_" + std::to_string(i * i) + "\"},";
  SentRequest sent = Sample();
  sent.body.pieces[1].text = {std::make_shared<const std::string>(tools),
                              std::make_shared<const std::string>(PackedLiteral(tools))};
  const auto stored = [&] {
    std::string text;
    AppendJson(text, sent);
    return text;
  };
  const std::string packed = stored();
  CHECK(packed.size() < tools.size() / 2);
  CHECK(ToJson(sent)["body"][1] == tools);
  const SentRequest read = SentRequestFromJson(ParseJson(packed).value()).value();
  CHECK(read == sent);
  sent = read;
  CHECK(stored() == packed);  // as it was, when it is copied
  // What is short, or so much alike that a small file could become a large one.
  for (const std::string& text : {std::string("short"), std::string(100'000, 'a'), std::string(300'000, 'b')}) {
    CHECK(PackedLiteral(text) == '"' + text + '"');
  }
}

TEST_CASE("A packed text that is none is refused") {
  const auto with = [](const Json& deflated) {
    Json json = ToJson(Sample());
    json["body"][1] = {{"deflated", deflated}};
    return SentRequestFromJson(json);
  };
  const auto packed = [](const std::string& text) { return EncodeBase64Url(Deflate(text)); };
  CHECK(with(packed("as it should be")));
  for (const Json& deflated : {Json(packed("a") + "="), Json(packed("abc").substr(0, 3)), Json(packed("\xff")),
                               Json(packed(std::string(100'000, 'a'))), Json("not packed"), Json(""), Json(7),
                               Json(nullptr), Json::array({packed("a")})}) {
    CAPTURE(DumpJson(deflated));
    CHECK_FALSE(with(deflated));
  }
}

TEST_CASE("A request that is none is refused") {
  const auto with = [](const char* member, const char* value) {
    Json json = ToJson(Sample());
    json[member] = ParseJson(value).value();
    return json;
  };
  for (const char* piece :
       {"7", "null", "{}", R"({"head":-1})", R"({"head":1.5})", R"({"head":"1"})", R"({"head":[1,2]})",
        R"({"content":null})", R"({"arguments":1})", R"({"arguments":[1]})", R"({"quoted":[1,2,3]})",
        R"({"quoted":[1,"2"]})", R"({"file":1})", R"({"other":1})", R"({"head":1,"tail":2})", R"({"text":"words"})"}) {
    CAPTURE(piece);
    CHECK_FALSE(SentRequestFromJson(with("body", (std::string("[") + piece + "]").c_str())));
  }
  for (const char* place :
       {"null", "7", "[]", R"(["int_003"])", R"(["int_003",-1])", R"(["int_3",1])", R"([3,1])", R"(["int_003",1,2])"}) {
    CAPTURE(place);
    CHECK_FALSE(SentRequestFromJson(with("before", place)));
    CHECK_FALSE(RequestMarksFromJson({{"place", ParseJson(place).value()}}));
  }
  for (const char* module : {"7", "[]", "[\"a\"]", "[1,2]", "[\"a\",-1]", "[\"a\",1,2]"}) {
    CAPTURE(module);
    CHECK_FALSE(SentRequestFromJson(with("modules", (std::string("[") + module + "]").c_str())));
  }
  for (const char* tool : {"7", "{}", R"({"server":1,"tools":{}})", R"({"server":"s"})", R"({"tools":{"a":"b"}})",
                           R"({"client":"c","tools":{"a":1}})", R"({"server":"s","tools":["a"]})"}) {
    CAPTURE(tool);
    CHECK_FALSE(SentRequestFromJson(with("tools", (std::string("[") + tool + "]").c_str())));
  }
  CHECK_FALSE(SentRequestFromJson(with("response", "7")));
  CHECK_FALSE(SentRequestFromJson(with("purpose", "\"fun\"")));
  CHECK_FALSE(SentRequestFromJson(with("body", "\"text\"")));
  CHECK_FALSE(SentRequestFromJson(with("digest", "null")));
  CHECK_FALSE(SentRequestFromJson(Json::object()));
  for (const char* mark : {"7", "[]", "[1]", R"(["1","2"])", R"([1,2])", R"([-1,"2"])"}) {
    CAPTURE(mark);
    CHECK_FALSE(RequestMarksFromJson({{"place", {"int_003", 1}}, {"tail", ParseJson(mark).value()}}));
    CHECK_FALSE(RequestMarksFromJson({{"place", {"int_003", 1}}, {"heads", Json::array({ParseJson(mark).value()})}}));
  }
}

}  // namespace reprise::request_codec_test
