#include "doors/api/requests.h"

#include "support/test.h"

namespace reprise::requests_test {

TEST_CASE("requests: reads a start body with its defaults", "[api]") {
  const auto plain = ParseStartBody(R"({"user_message":"hi"})");
  REQUIRE(plain);
  CHECK(plain->request.user_message == "hi");
  CHECK(plain->request.model.empty());
  CHECK(plain->stream);
  CHECK(plain->request.on_disconnect == OnDisconnect::kCancel);
  const auto full = ParseStartBody(
      R"({"user_message":"hi","model":"m","stream":false,"on_disconnect":"continue","if_running":"reject","attachments":null})");
  REQUIRE(full);
  CHECK(full->request.model == "m");
  CHECK_FALSE(full->stream);
  CHECK(full->request.on_disconnect == OnDisconnect::kContinue);
}

TEST_CASE("requests: names the error in a body", "[api]") {
  const auto error_of = [](std::string_view body) {
    const auto parsed = ParseStartBody(body);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == ErrorCode::kInvalidArgument);
    return parsed.error().reason + ": " + parsed.error().message;
  };
  CHECK(error_of("") == "invalid_member: \"user_message\" is missing");
  CHECK(error_of("[]") == "invalid_body: the body must be a JSON object");
  CHECK(error_of("{").starts_with("invalid_json"));
  CHECK(error_of(std::string(100'000, '[')).starts_with("too_deep"));
  CHECK(error_of("{\"user_message\":\"\xc3\"}").starts_with("invalid_utf8"));
  CHECK(error_of(R"({"user_message":""})") == "invalid_member: \"user_message\" must not be empty");
  CHECK(error_of(R"({"user_message":5})") == "invalid_member: \"user_message\" must be a string");
  CHECK(error_of(R"({"user_message":"a","stream":"no"})") == "invalid_member: \"stream\" must be true or false");
  CHECK(error_of(R"({"user_message":"a","mesage":1})") == "unknown_member: unknown member \"mesage\"");
  CHECK(error_of(R"({"user_message":"a","if_running":"wait"})") ==
        "invalid_member: \"if_running\": \"wait\" is not supported");
  CHECK(error_of(R"({"user_message":"a","on_disconnect":"x"})") ==
        "invalid_member: \"on_disconnect\": \"x\" is not supported");
  CHECK(error_of(R"({"user_message":"a","attachments":["x"]})") ==
        "invalid_member: \"attachments\" must be ids of files, as POST /chats/{chat_id}/files gives them");
}

TEST_CASE("requests: an approval may have arguments as an object or as its text", "[api]") {
  const auto object =
      ParseApprovalBody(R"({"approval_id":"a","approved":true,"arguments":{"b":1,"a":2}})", std::nullopt);
  REQUIRE(object);
  CHECK(object->answer.arguments == R"({"b":1,"a":2})");
  const auto text =
      ParseApprovalBody(R"({"approval_id":"a","approved":true,"arguments":"{ \"b\": 1 }"})", std::nullopt);
  REQUIRE(text);
  CHECK(text->answer.arguments == R"({ "b": 1 })");
  for (const char* bad : {R"("no object")", "[1]", "7"}) {
    CHECK_FALSE(
        ParseApprovalBody(R"({"approval_id":"a","approved":true,"arguments":)" + std::string(bad) + "}", std::nullopt));
  }
}

TEST_CASE("requests: an approval needs its id and its answer", "[api]") {
  CHECK_FALSE(ParseApprovalBody(R"({"approved":true})", std::nullopt));
  CHECK_FALSE(ParseApprovalBody(R"({"approval_id":"a"})", std::nullopt));
  CHECK_FALSE(ParseApprovalBody(R"({"approval_id":"a","approved":"yes"})", std::nullopt));
  CHECK_FALSE(ParseApprovalBody(R"({"approval_id":"b","approved":true})", "a"));
  CHECK_FALSE(ParseApprovalBody(R"({"approved":true,"scope":"ever"})", "a"));
  CHECK(ParseApprovalBody(R"({"approved":true,"scope":"always"})", "a")->answer.scope == ApprovalScope::kAlways);
  const auto answer =
      ParseApprovalBody(R"({"approved":false,"scope":"chat","feedback":"no","arguments_digest":"d"})", "a");
  REQUIRE(answer);
  CHECK(answer->approval_id == "a");
  CHECK_FALSE(answer->answer.approved);
  CHECK(answer->answer.scope == ApprovalScope::kChat);
  CHECK(answer->answer.feedback == "no");
  CHECK(answer->answer.arguments_digest == "d");
}

TEST_CASE("requests: a message may be queued, or cancel the run before it", "[api]") {
  const auto start = [](const std::string& choice) {
    return ParseStartBody(R"({"user_message":"a","if_running":")" + choice + "\"}")->request.if_running;
  };
  CHECK(start("reject") == IfRunning::kReject);
  CHECK(start("queue") == IfRunning::kQueue);
  CHECK(start("cancel") == IfRunning::kCancel);
  CHECK(ParseEditBody(R"({"new_user_message":"a","if_running":"cancel"})")->request.if_running == IfRunning::kCancel);
  CHECK_FALSE(ParseEditBody(R"({"new_user_message":"a","if_running":"queue"})"));
  CHECK_FALSE(ParseRegenerateBody(R"({"if_running":"queue"})"));
  CHECK(ParseQueuedBody(R"({"user_message":"b"})") == "b");
  CHECK_FALSE(ParseQueuedBody("{}"));
  CHECK_FALSE(ParseQueuedBody(R"({"user_message":"b","model":"m"})"));
}

TEST_CASE("requests: reads edit, chat, title and head bodies", "[api]") {
  const auto edit = ParseEditBody(R"({"new_user_message":"x","dry_run":true})");
  REQUIRE(edit);
  CHECK(edit->dry_run);
  CHECK_FALSE(ParseEditBody(R"({"user_message":"x"})"));
  CHECK(ParseRegenerateBody(""));
  CHECK_FALSE(ParseRegenerateBody(R"({"user_message":"x"})"));
  const auto chat = ParseCreateChatBody("{}");
  REQUIRE(chat);
  CHECK(chat->id.str().starts_with("chat_"));
  CHECK_FALSE(ParseCreateChatBody(R"({"id":"../x"})"));
  CHECK_FALSE(ParseChatSettings(R"({"title":""})"));
  CHECK_FALSE(ParseChatSettings("{}"));
  CHECK_FALSE(ParseChatSettings(R"({"title":null})"));
  CHECK_FALSE(ParseChatSettings(R"({"approval_mode":"maybe"})"));
  CHECK(ParseChatSettings(R"({"approval_mode":"deny_all"})")->approval_mode == ApprovalMode::kDenyAll);
  CHECK_FALSE(ParseChatSettings(R"({"model":"a/b"})")->approval_mode);
  const auto taken_back = ParseChatSettings(R"({"approval_mode":null,"model":null})");
  REQUIRE(taken_back);
  REQUIRE(taken_back->approval_mode);
  CHECK_FALSE(*taken_back->approval_mode);
  CHECK(taken_back->model == "");
  CHECK_FALSE(ParseChatSettings(R"({"title":")" + std::string(201, 'x') + "\"}"));
  CHECK(ParseHeadBody(R"({"interaction_id":"int_002"})")->interaction.number() == 2);
  CHECK_FALSE(ParseHeadBody(R"({"interaction_id":"2"})"));
  CHECK_FALSE(ParseEmptyBody(R"({"x":1})"));
}

}  // namespace reprise::requests_test
