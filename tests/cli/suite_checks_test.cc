#include "cli/suite_checks.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json.h"
#include "support/schema_validator.h"
#include "support/test.h"

namespace reprise::test::suite_checks_test {
namespace {

const std::string kFile = "fixtures/a.checks.json";

// Each is valid.
const std::vector<std::string> kSamples = {
    R"({"calls":{"list":[{"name":"read_file","arguments":{"path":"a.txt","deep":{"x":[1,{"matches":"^b"}]}}}]}})",
    R"({"calls":{"mode":"exact","list":[]},"never":["run_shell",{"name":"write_file","arguments":{"path":"b"}}]})",
    R"({"calls":{"mode":"in_order","list":[{"name":"a"},{"name":"b"}]},"answer":{"matches":"(?i)done"}})",
    R"({"answer":{"equals":""}})",
    R"({"answer":{"contains":"x"},"max":{"rounds":3,"calls":0,"input_tokens":1000,"output_tokens":9,"seconds":1.5}})",
    R"({"answer":{"schema":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}}})",
    R"({"files":{"a.txt":{"equals":"x"},"b/c.txt":{"matches":"x+"},"..c":{"contains":"x"},"d":{"absent":true},
        "e":{"changed":true}}})",
    R"({"command":["./check.sh","--all"],"judge":{"model":"openai/gpt-5.1","question":"Is it polite?"},
        "at_least":"4/5"})",
    R"({"$schema":"https://example.org/checks.schema.json","turns":{"1":{"answer":{"contains":"x"}},
        "int_002":{"never":["run_shell"]}}})"};

struct Fault {
  std::string json, place, why;
};

// A table of planted faults; `place` and `why` are in the message.
const std::vector<Fault> kFaults = {
    {"", "", "is not valid JSON"},
    {"{", "", "is not valid JSON (line 1)"},
    {"\xff", "", "is not valid UTF-8"},
    {"null", "", "must be an object"},
    {"[]", "", "must be an object"},
    {"{}", "", "must not be empty"},
    {R"({"$schema":"x"})", "", "must not be empty"},
    {R"({"answer":{"equals":"a"},"answer":{"equals":"b"}})", "", "twice"},
    {R"({"anser":{"equals":"a"}})", "/anser", "did you mean answer?"},
    {R"({"calls":[]})", "/calls", "must be an object"},
    {R"({"calls":{}})", "/calls", "must not be empty"},
    {R"({"calls":{"mode":"exact"}})", "/calls", "must have a member list"},
    {R"({"calls":{"lst":[]}})", "/calls/lst", "did you mean list?"},
    {R"({"calls":{"list":[]}})", "/calls/list", "is empty"},
    {R"({"calls":{"mode":"in_order","list":[]}})", "/calls/list", "is empty"},
    {R"({"calls":{"list":{"name":"a"}}})", "/calls/list", "must be a list"},
    {R"({"calls":{"mode":"inorder","list":[{"name":"a"}]}})", "/calls/mode", "did you mean in_order?"},
    {R"({"calls":{"mode":7,"list":[{"name":"a"}]}})", "/calls/mode", "must be a text"},
    {R"({"calls":{"list":["a"]}})", "/calls/list/0", "must be an object"},
    {R"({"calls":{"list":[{"name":"a"},{"name":""}]}})", "/calls/list/1/name", "must not be empty"},
    {R"({"calls":{"list":[{"arguments":{}}]}})", "/calls/list/0", "must have a member name"},
    {R"({"calls":{"list":[{"name":"a","argument":{}}]}})", "/calls/list/0/argument", "did you mean arguments?"},
    {R"({"calls":{"list":[{"name":"a","arguments":"{}"}]}})", "/calls/list/0/arguments", "must be an object"},
    {R"({"calls":{"list":[{"name":"a","arguments":{"b/c~":[{"matches":"("}]}}]}})",
     "/calls/list/0/arguments/b~1c~0/0/matches", "this is no RE2 pattern: missing )"},
    {R"({"never":[]})", "/never", "must not be empty"},
    {R"({"never":"run_shell"})", "/never", "must be a list"},
    {R"({"never":[7]})", "/never/0", "must be an object"},
    {R"({"never":[""]})", "/never/0", "must not be empty"},
    {R"({"answer":"x"})", "/answer", "must be an object"},
    {R"({"answer":{"equals":"x","contains":"x"}})", "/answer",
     "must have only one member: equals, contains, matches or"},
    {R"({"answer":{"is":"x"}})", "/answer/is", "there is no such member"},
    {R"({"answer":{"absent":true}})", "/answer/absent", "there is no such member"},
    {R"x({"answer":{"matches":"a(?=b)"}})x", "/answer/matches", "this is no RE2 pattern: invalid perl operator: (?="},
    {R"({"answer":{"matches":""}})", "/answer/matches", "must not be empty"},
    {R"({"answer":{"contains":""}})", "/answer/contains", "must not be empty"},
    {R"({"answer":{"equals":null}})", "/answer/equals", "must be a text"},
    {R"({"answer":{"schema":true}})", "/answer/schema", "must be a JSON Schema"},
    {R"({"answer":{"schema":{"type":7}}})", "/answer/schema", "this is no JSON Schema (draft-07)"},
    {R"({"answer":{"schema":{"requird":["a"]}}})", "/answer/schema/requird", "did you mean required?"},
    {R"({"answer":{"schema":{"properties":{"a":{"pattern":"x"}}}}})", "/answer/schema/properties/a/pattern",
     "cannot have this keyword"},
    {R"({"answer":{"schema":{"$ref":"#"}}})", "/answer/schema/$ref", "cannot have this keyword"},
    {R"({"answer":{"schema":{"anyOf":[{"uniqueItems":true}]}}})", "/answer/schema/anyOf/0/uniqueItems",
     "cannot have this keyword"},
    {R"({"answer":{"schema":{"items":{"multipleOf":0}}}})", "/answer/schema/items/multipleOf", "above 0"},
    {R"({"answer":{"schema":{"properties":[]}}})", "/answer/schema/properties", "must be an object"},
    {R"({"files":{}})", "/files", "must not be empty"},
    {R"({"files":["a"]})", "/files", "must be an object"},
    {R"({"files":{"/etc/passwd":{"changed":true}}})", "/files/~1etc~1passwd", "must be a path in the workspace"},
    {R"({"files":{"a/../b":{"changed":true}}})", "/files/a~1..~1b", "must be a path in the workspace"},
    {R"({"files":{"":{"changed":true}}})", "/files/", "must be a path in the workspace"},
    {R"({"files":{"a":{"changed":false}}})", "/files/a/changed", "must be true"},
    {R"({"files":{"a":{"absent":"yes"}}})", "/files/a/absent", "must be true"},
    {R"({"files":{"a":{"changed":true,"contains":"x"}}})", "/files/a", "must have only one member"},
    {R"({"files":{"a":{"schema":{}}}})", "/files/a/schema", "there is no such member"},
    {R"({"max":{}})", "/max", "must not be empty"},
    {R"({"max":{"tokens":5}})", "/max/tokens", "there is no such member"},
    {R"({"max":{"rounds":1.5}})", "/max/rounds", "must be a whole number"},
    {R"({"max":{"calls":-1}})", "/max/calls", "must be from 0"},
    {R"({"max":{"seconds":"5"}})", "/max/seconds", "must be a number"},
    {R"({"max":{"input_tokens":1e300}})", "/max/input_tokens", "must be a whole number"},
    {R"({"max":{"output_tokens":9223372036854775807}})", "/max/output_tokens", "must be from 0"},
    {R"({"command":"make"})", "/command", "must be a list"},
    {R"({"command":["make",1]})", "/command/1", "must be a text"},
    {R"({"command":[""]})", "/command/0", "must be a program"},
    {R"({"command":["./check.sh\u0000x"]})", "/command/0", "NUL"},
    {R"({"command":{"argv":[]}})", "/command/argv", "must"},
    {R"({"command":{"argv":["x"],"seconds":0}})", "/command/seconds", "must be more than 0"},
    {R"({"max":{"cost":"1"}})", "/max/cost", "must be a number"},
    {R"({"judge":{"question":"?"}})", "/judge", "must have a member model"},
    {R"({"judge":{"model":"m","question":""}})", "/judge/question", "must not be empty"},
    {R"({"at_least":0.8})", "/at_least", "must be a text"},
    {R"({"at_least":"5/4"})", "/at_least", "such as 4/5"},
    {R"({"at_least":"04/5"})", "/at_least", "such as 4/5"},
    {R"({"at_least":"4"})", "/at_least", "such as 4/5"},
    {R"({"at_least":"4/5000"})", "/at_least", "at most 1,000 runs"},
    {R"({"turns":{}})", "/turns", "must not be empty"},
    {R"({"turns":{"last":{"never":["a"]}}})", "/turns/last", "such as int_002"},
    {R"({"turns":{"0":{"never":["a"]}}})", "/turns/0", "such as int_002"},
    {R"({"turns":{"int_2":{"never":["a"]}}})", "/turns/int_2", "such as int_002"},
    {R"({"turns":{"1":{}}})", "/turns/1", "must not be empty"},
    {R"({"turns":{"1":{"turns":{"2":{}}}}})", "/turns/1/turns", "there is no such member"},
    {R"({"turns":{"1":{"answer":{"matches":"["}}}})", "/turns/1/answer/matches", "this is no RE2 pattern"},
};

SuiteChecks Parsed(const std::string& json) {
  auto checks = ParseChecks(json, kFile);
  INFO(json << (checks ? "" : " " + checks.error().message));
  REQUIRE(checks.has_value());
  return *std::move(checks);
}

void Add(Interaction& turn, EventPayload payload, std::uint32_t round = 0) {
  AgentEvent event;
  event.seq = turn.events.size() + 1;
  event.round_index = round;
  event.payload = std::move(payload);
  turn.events.push_back(std::move(event));
}

FileVersion Version(const std::string& digest) { return {.mode = 0644, .size = 1, .digest = digest}; }

// Two rounds: two reads and a change, then an answer.
Interaction Turn() {
  Interaction turn{.id = InteractionId::FromNumber(2), .chat_id = *ChatId::Parse("trip")};
  turn.status = InteractionStatus::kCompleted;
  turn.usage = {.input_tokens = 1200, .output_tokens = 40};
  turn.created_at = *ParseTimestamp("2025-01-15T10:00:00.000Z");
  turn.completed_at = *ParseTimestamp("2025-01-15T10:00:02.500Z");
  Add(turn, event::Usage{{600, 20}});
  Add(turn, event::ToolCallStarted{"c1", "read_file", R"({"path":"a.txt","limit":5})"});
  Add(turn, event::ToolCallStarted{"c2", "read_file", R"({"path":"b.txt","lines":[1,{"to":9,"x":0}]})"});
  Add(turn, event::ToolCallStarted{"c3", "write_file", R"({"path":"c.txt"})"});
  Add(turn, event::Nested{"c3", 0, event::ToolCallStarted{"n1", "run_shell", R"({"command":"rm -rf x"})"}});
  Add(turn, event::ToolCallStarted{"c4", "odd", "not JSON"});
  Add(turn, event::FilesChanged{"c3",
                                {{.path = "c.txt", .before = std::nullopt, .after = Version("sha256:1")},
                                 {.path = "gone", .before = Version("sha256:2"), .after = std::nullopt},
                                 {.path = "same", .before = Version("sha256:3"), .after = Version("sha256:4")}}});
  Add(turn,
      event::FilesChanged{
          "c3",
          {{.path = "c.txt", .before = Version("sha256:1"), .after = Version("sha256:5")},
           {.path = "same", .before = Version("sha256:4"), .after = Version("sha256:3")},
           {.path = "large", .before = std::nullopt, .after = FileVersion{.size = 9}},
           {.path = "folder", .before = std::nullopt, .after = FileVersion{.kind = FileVersion::Kind::kDirectory}}},
          2});
  Add(turn, event::Usage{{600, 20}}, 1);
  Add(turn, event::Answer{"It is done.\nTwo files, 7 lines.\n"}, 1);
  return turn;
}

std::optional<std::string> Content(const FileVersion& version) {
  return version.digest == "sha256:5" ? std::optional<std::string>("one\ntwo\n") : std::nullopt;
}

// The failures, "check: message" on a line each.
std::string Outcome(const std::string& json, const Interaction& turn = Turn(), const ContentOf& content_of = Content) {
  std::string lines;
  for (const CheckFailure& failure : RunChecks(Parsed(json), turn, 2, content_of, 0.5)) {
    lines += failure.check + ": " + failure.message + "\n";
  }
  return lines;
}

Interaction Answering(const std::string& answer) {
  Interaction turn{.id = InteractionId::FromNumber(2), .chat_id = *ChatId::Parse("trip")};
  Add(turn, event::Answer{answer});
  return turn;
}

bool Contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Calls `use` with the document after each small change of one place in it.
template <typename Use>
void EachMutation(const Json& root, const Use& use) {
  const std::vector<Json> others = {
      nullptr,          true,          false, 7, -1, 0.5, "", "x", "4/5", "(", Json::array(), Json::object(),
      Json::array({1}), Json{{"x", 1}}};
  const Json flat = root.flatten();
  std::set<std::string> places = {""};
  for (const auto& [leaf, value] : flat.items()) {
    for (std::size_t end = leaf.size(); end > 0 && end != std::string::npos; end = leaf.rfind('/', end - 1)) {
      places.insert(leaf.substr(0, end));
    }
  }
  for (const std::string& place : places) {
    const Json::json_pointer at(place);
    for (const Json& other : others) {
      Json changed = root;
      changed[at] = other;
      use(changed);
    }
    Json more = root;
    if (more[at].is_object()) more[at]["surprise"] = 1;
    if (more[at].is_array()) more[at].push_back(1);
    use(more);
    if (place.empty()) continue;
    Json less = root;
    Json& parent = less[at.parent_pointer()];
    parent.is_array() ? parent.erase(std::stoul(at.back())) : void(parent.erase(at.back()));
    use(less);
  }
}

}  // namespace

TEST_CASE("ParseChecks: takes every sample, as the schema does", "[checks]") {
  const SchemaValidator schema("checks");
  for (const std::string& sample : kSamples) {
    Parsed(sample);
    CHECK(schema.Complaint(sample).empty());
  }
  Parsed("// why\n{\"never\": [\"run_shell\"] /* at all */}");
}

TEST_CASE("ParseChecks: names the place of each planted fault", "[checks]") {
  REQUIRE(kFaults.size() >= 40);
  for (const Fault& fault : kFaults) {
    const auto checks = ParseChecks(fault.json, kFile);
    INFO(fault.json);
    REQUIRE_FALSE(checks.has_value());
    INFO(checks.error().message);
    CHECK(checks.error().code == ErrorCode::kInvalidArgument);
    CHECK(checks.error().message.starts_with(kFile + ": " + fault.place + (fault.place.empty() ? "" : ": ")));
    CHECK(Contains(checks.error().message, fault.why));
  }
}

TEST_CASE("ParseChecks: refuses all that the schema refuses", "[checks]") {
  const SchemaValidator schema("checks");
  std::size_t refused = 0, taken = 0;
  for (const std::string& sample : kSamples) {
    EachMutation(*ParseJson(sample), [&](const Json& changed) {
      const std::string text = DumpJson(changed);
      const bool takes = ParseChecks(text, kFile).has_value();
      takes ? ++taken : ++refused;
      if (takes && !schema.Complaint(text).empty()) FAIL_CHECK(text << " " << schema.Complaint(text));
    });
  }
  std::size_t seen = 0;
  for (const Fault& fault : kFaults) seen += ParseJson(fault.json) && !schema.Complaint(fault.json).empty() ? 1 : 0;
  CHECK(seen > 50);
  CHECK(refused > 500);
  CHECK(taken > 50);
}

TEST_CASE("ParseChecks: huge, deep and hostile input is an error", "[checks]") {
  const auto message = [](const std::string& json) { return ParseChecks(json, kFile).error().message; };
  CHECK(Contains(message(std::string(1024 * 1024 + 1, ' ')), "larger than 1 MiB"));
  CHECK(Contains(message(R"({"never":)" + std::string(100'000, '[')), "nested too deeply"));
  CHECK(message("{\"" + std::string(100'000, 'x') + "\":1}").size() < 300);
  std::string many = "\"a\"";
  for (int i = 0; i < 1000; ++i) many += ",\"a\"";
  CHECK(Contains(message("{\"never\":[" + many + "]}"), "more than 1,000 entries"));
  CHECK(Contains(message(R"({"answer":{"matches":")" + std::string(5000, '(') + "\"}}"), "this is no RE2 pattern"));
}

TEST_CASE("ParseChecks: keeps what runs with a model need", "[checks]") {
  const SuiteChecks checks = Parsed(kSamples[7]);
  CHECK(checks.every.command->argv == std::vector<std::string>{"./check.sh", "--all"});
  REQUIRE(checks.every.judge.has_value());
  CHECK(checks.every.judge->model == "openai/gpt-5.1");
  CHECK(checks.every.judge->question == "Is it polite?");
  REQUIRE(checks.every.at_least.has_value());
  CHECK(checks.every.at_least->passed == 4);
  CHECK(checks.every.at_least->times == 5);
  CHECK(ChecksForModel(checks, Turn(), 2) == std::vector<std::string>{"command", "judge", "at_least"});
  CHECK(ChecksForModel(Parsed(R"({"turns":{"3":{"command":["a"]}}})"), Turn(), 2).empty());
  CHECK(Outcome(kSamples[7]).empty());
}

TEST_CASE("RunChecks: calls", "[checks]") {
  const auto outcome = [](const std::string& mode, const std::string& list) {
    return Outcome(R"({"calls":{"mode":")" + mode + R"(","list":[)" + list + "]}}");
  };
  const std::string a = R"({"name":"read_file","arguments":{"path":"a.txt"}})", any = R"({"name":"read_file"})",
                    write = R"({"name":"write_file"})", odd = R"({"name":"odd"})", none = R"({"name":"none"})";
  CHECK(outcome("subset", write + "," + a).empty());
  CHECK(outcome("subset", any + "," + a).empty());  // the first must leave a.txt to the second
  CHECK(outcome("subset", any + "," + any + "," + any) ==
        "calls: the turn did not call read_file; it called read_file {\"path\":\"a.txt\",\"limit\":5}, read_file "
        "{\"path\":\"b.txt\",\"lines\":[1,{\"to\":9,\"x\":0}]}, write_file {\"path\":\"c.txt\"}, odd not JSON\n");
  CHECK(Contains(outcome("subset", R"({"name":"run_shell"})"), "did not call run_shell"));  // a sub-agent's
  CHECK(Contains(outcome("subset", R"({"name":"odd","arguments":{}})"), "did not call odd {}"));
  CHECK(outcome("in_order", a + "," + write).empty());
  CHECK(Contains(outcome("in_order", write + "," + a), "did not call read_file {\"path\":\"a.txt\"} after the calls"));
  CHECK(outcome("exact", any + "," + any + "," + write + "," + odd).empty());
  CHECK(Contains(outcome("exact", any + "," + write), "call 2 is read_file {\"path\":\"b.txt\""));
  CHECK(Contains(outcome("exact", any + "," + any + "," + write), "made 4 calls, not 3"));
  CHECK(Contains(outcome("exact", ""), "made 4 calls, not 0"));
  CHECK(Contains(Outcome(R"({"calls":{"list":[{"name":"a"}]}})", Answering("x")), "it called no tool"));
}

TEST_CASE("RunChecks: arguments are a subset on each level", "[checks]") {
  const auto passes = [](const std::string& arguments) {
    return Outcome(R"({"calls":{"list":[{"name":"read_file","arguments":)" + arguments + "}]}}").empty();
  };
  CHECK(passes("{}"));
  CHECK(passes(R"({"limit":5.0})"));
  CHECK(passes(R"({"path":{"matches":"^b\\."}})"));
  CHECK(passes(R"({"lines":[1,{"to":9}]})"));
  CHECK_FALSE(passes(R"({"lines":[1]})"));
  CHECK_FALSE(passes(R"({"lines":[{"to":9},1]})"));
  CHECK_FALSE(passes(R"({"lines":[1,{"to":8}]})"));
  CHECK_FALSE(passes(R"({"limit":{"matches":"5"}})"));
  CHECK_FALSE(passes(R"({"limit":"5"})"));
  CHECK_FALSE(passes(R"({"path":{"x":1}})"));
  CHECK_FALSE(passes(R"({"nothing":null})"));
}

TEST_CASE("RunChecks: never counts sub-agents, and arguments that cannot be read", "[checks]") {
  CHECK(Outcome(R"({"never":["delete_file",{"name":"read_file","arguments":{"path":"z"}}]})").empty());
  CHECK(Outcome(R"({"never":[{"name":"run_shell","arguments":{"command":{"matches":"\\brm\\b"}}}]})") ==
        "never: a sub-agent called run_shell {\"command\":\"rm -rf x\"}\n");
  CHECK(Outcome(R"({"never":[{"name":"odd","arguments":{"path":"x"}}]})") ==
        "never: the turn called odd not JSON, arguments that cannot be read\n");
  CHECK(Outcome(R"({"never":["read_file"]})").size() > 100);  // each call
}

TEST_CASE("RunChecks: the answer", "[checks]") {
  CHECK(Outcome(R"({"answer":{"equals":"It is done.\nTwo files, 7 lines.\n"}})").empty());
  CHECK(Outcome(R"({"answer":{"contains":"done"}})").empty());
  CHECK(Outcome(R"({"answer":{"matches":"\\d+ lines"}})").empty());
  CHECK(Outcome(R"({"answer":{"equals":"It is done.\nThree files."}})") ==
        "answer: the answer is not the expected text: line 2 is \"Two files, 7 lines.\", not \"Three files.\"\n");
  CHECK(Contains(Outcome(R"({"answer":{"equals":"It is done."}})"), "line 2 should not be there"));
  CHECK(Contains(Outcome(R"({"answer":{"equals":"It is done.\nTwo files, 7 lines.\n\nx"}})"), "line 3 is missing"));
  CHECK(Contains(Outcome(R"({"answer":{"equals":"It is done.\nTwo files, 7 lines."}})"), "differs in its line ends"));
  CHECK(Contains(Outcome(R"({"answer":{"contains":"Done"}})"), "does not contain \"Done\": \"It is done."));
  CHECK(Contains(Outcome(R"({"answer":{"matches":"^\\d"}})"), "does not match \"^\\\\d\": \"It is"));
  Interaction failed{.id = InteractionId::FromNumber(2), .chat_id = *ChatId::Parse("trip")};
  failed.status = InteractionStatus::kFailed;
  CHECK(Outcome(R"({"answer":{"matches":"."}})", failed) == "answer: the turn has no answer; its status is FAILED\n");
}

TEST_CASE("RunChecks: an answer that must be JSON", "[checks]") {
  const std::string checks = R"({"answer":{"schema":{"type":["object","array"],"required":["id"],
      "properties":{"id":{"type":"integer","minimum":1},"kind":{"anyOf":[{"const":"a"},{"type":"null"}]}},
      "items":{"type":"string"}}}})";
  CHECK(Outcome(checks, Answering(R"({"id":3.0,"kind":null})")).empty());
  CHECK(Outcome(checks, Answering(" [\"x\"]\n")).empty());
  CHECK(Outcome(checks, Answering("{}")).starts_with("answer: invalid answer: "));
  CHECK(Contains(Outcome(checks, Answering(R"({"id":"x"})")), R"("id": must be of type "integer". It is "{\"id)"));
  CHECK(Contains(Outcome(checks, Answering(R"({"id":1,"kind":"b"})")), "\"kind\": "));
  CHECK(Contains(Outcome(checks, Answering("5")), "must be of type"));
  CHECK(Contains(Outcome(checks, Answering("")), "cannot be used"));
  CHECK(Contains(Outcome(checks, Answering("Here: {\"id\":1}")), "cannot be used"));
  CHECK(Contains(Outcome(checks, Answering(std::string(100'000, '['))), "nested deeper"));
  std::string wrong = "[1";
  for (int i = 0; i < 100'000; ++i) wrong += ",1";
  CHECK(Contains(Outcome(checks, Answering(wrong + "]")), "must be of type \"string\""));
}

TEST_CASE("RunChecks: files that the turn changed", "[checks]") {
  const auto outcome = [](const std::string& path, const std::string& check, const ContentOf& content_of = Content) {
    return Outcome("{\"files\":{\"" + path + "\":{" + check + "}}}", Turn(), content_of);
  };
  CHECK(outcome("c.txt", R"("equals":"one\ntwo\n")").empty());
  CHECK(outcome("c.txt", R"("matches":"(?m)^two$")").empty());
  CHECK(outcome("c.txt", R"("changed":true)").empty());
  CHECK(outcome("gone", R"("absent":true)").empty());
  CHECK(outcome("c.txt", R"("contains":"three")") == "files: c.txt does not contain \"three\": \"one\\ntwo\\n\"\n");
  CHECK(outcome("c.txt", R"("absent":true)") == "files: c.txt exists after the turn\n");
  CHECK(outcome("gone", R"("contains":"x")") == "files: gone does not exist after the turn\n");
  CHECK(outcome("same", R"("changed":true)") == "files: same is the same after the turn as before it\n");
  CHECK(outcome("same", R"("contains":"x")") == "files: the content of same after the turn is not on record\n");
  CHECK(outcome("large", R"("contains":"x")") == "files: the content of large after the turn is not on record\n");
  CHECK(outcome("c.txt", R"("contains":"one")", nullptr) ==
        "files: the content of c.txt after the turn is not on record\n");
  CHECK(outcome("folder", R"("contains":"x")") == "files: folder is not a regular file\n");
  CHECK(Contains(outcome("other", R"("absent":true)"), "did not change other, as far as the record says"));
}

TEST_CASE("RunChecks: limits", "[checks]") {
  CHECK(Outcome(R"({"max":{"rounds":2,"calls":5,"input_tokens":1200,"output_tokens":40,"seconds":2.5,"cost":0.5}})")
            .empty());
  CHECK(Outcome(R"({"max":{"cost":0.25}})") == "max: the turn cost 0.5, more than 0.25\n");
  CHECK(Outcome(R"({"max":{"rounds":1,"calls":4,"input_tokens":1199,"output_tokens":0,"seconds":2}})") ==
        "max: the turn took 2 rounds, more than 1\nmax: the turn took 5 calls, more than 4\n"
        "max: the turn took 1,200 input tokens, more than 1,199\nmax: the turn took 40 output tokens, more than 0\n"
        "max: the turn took 2.5 s, more than 2\n");
  Interaction resumed = Turn();
  resumed.record = RunRecord{.resumed_from = ResumedFrom{InteractionId::FromNumber(1), {"c1"}}};
  CHECK(Outcome(R"({"max":{"rounds":1}})", resumed).empty());
  Interaction running = Turn();
  running.completed_at = std::nullopt;
  CHECK(Contains(Outcome(R"({"max":{"seconds":9}})", running), "seconds are unknown"));
}

TEST_CASE("RunChecks: checks of one turn are added to those of every turn", "[checks]") {
  CHECK(Outcome(R"({"turns":{"1":{"never":["read_file"]},"int_003":{"never":["read_file"]}}})").empty());
  CHECK(Outcome(R"({"never":["odd"],"turns":{"2":{"answer":{"contains":"x"}},"int_002":{"max":{"calls":1}}}})") ==
        "never: the turn called odd not JSON\nanswer: the answer does not contain \"x\": \"It is done.\\nTwo files, 7 "
        "lines.\\n\"\nmax: the turn took 5 calls, more than 1\n");
  const SuiteChecks checks = Parsed(R"({"turns":{"2":{"never":["a"]},"3":{"never":["a"]},"int_007":{"never":["a"]},
      "int_008":{"never":["a"]}}})");
  const std::vector<InteractionId> turns = {InteractionId::FromNumber(1), InteractionId::FromNumber(7)};
  CHECK(UnknownTurns(checks, turns) == std::vector<std::string>{"3", "int_008"});
}

}  // namespace reprise::test::suite_checks_test
