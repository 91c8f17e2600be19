#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "domain/codec.h"
#include "support/test.h"

namespace reprise::request_codec_test {

using Kind = BodyPiece::Kind;

SentRequest Sample() {
  return {.round = 2,
          .purpose = SentRequest::Purpose::kSubAgent,
          .at = *ParseTimestamp("2026-01-15T10:00:00.000Z"),
          .model = "gpt-5.1",
          .address = "api.openai.com",
          .body = {.digest = "sha256:" + std::string(64, 'a'),
                   .bytes = 48'211,
                   .before = RequestPlace{InteractionId::FromNumber(3), 1},
                   .pieces = {{.kind = Kind::kHead, .first = 100},
                              {.text = ",{\"role\":\"user\",\"content\":\""},
                              {.kind = Kind::kContent, .first = 7},
                              {.kind = Kind::kArguments, .first = 8, .second = 1},
                              {.kind = Kind::kQuoted, .first = 8, .second = 2},
                              {.kind = Kind::kFile, .text = "file_0123456789abcdef0123456789abcdef"},
                              {.kind = Kind::kTail, .first = 20}}}};
}

TEST_CASE("A request is read as it was written") {
  const SentRequest sent = Sample();
  CHECK(SentRequestFromJson(ToJson(sent)) == sent);
  const SentRequest least{.at = sent.at, .model = "m", .body = {.digest = sent.body.digest}};
  CHECK(SentRequestFromJson(ToJson(least)) == least);
  const RequestMarks marks{.place = {InteractionId::FromNumber(3), 1},
                           .heads = {{10, "00112233445566778899"}, {20, "aa112233445566778899"}},
                           .tail = BodyMark{5, "bb112233445566778899"}};
  CHECK(RequestMarksFromJson(ToJson(marks)) == marks);
  CHECK(RequestMarksFromJson(ToJson(RequestMarks{.place = marks.place})) == RequestMarks{.place = marks.place});
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
