#include "client/answers.h"

#include <atomic>
#include <nlohmann/json.hpp>

#include "support/scripted_server.h"
#include "support/test.h"

namespace reprise::answers_test {
namespace {

using Became = AnswerOutcome::Became;
using test::ScriptedConnection;
using test::ScriptedServer;

// The outcome of an answer at a server that refuses it with `code` (empty: accepts it). With `breaks` the first
// connection with the answer is reset.
AnswerOutcome Give(const std::string& code, bool breaks) {
  std::atomic<int> given{0};
  // Each request has its own connection, because libcurl repeats a request that fails on a reused one.
  ScriptedServer server([&](ScriptedConnection& connection) {
    const auto request = connection.ReadRequest();
    const bool is_answer = request && request->target == "/chats/c/interactions/int_001/approve";
    if (is_answer && ++given == 1 && breaks) return connection.Reset();
    const bool is_refused = is_answer && !code.empty();
    const std::string body =
        is_refused ? DumpJson({{"error", {{"code", code}, {"message", "because of " + code}}}}) : "{}";
    connection.Send(std::string("HTTP/1.1 ") + (is_refused ? "409 Conflict" : "200 OK") +
                    "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body);
  });
  ServerLink link({}, [](const std::string&) { return std::nullopt; }, RunningServer{.url = server.Url("")}, {});
  REQUIRE(link.Reach("").has_value());
  const PendingApproval question{*ChatId::Parse("c"), InteractionId::FromNumber(1), {}};
  AnswerOutcome answer = GiveAnswer(link, question, AnswerTo(question.request, /*approved=*/true));
  CHECK(given == (breaks ? 2 : 1));
  return answer;
}

TEST_CASE("GiveAnswer: reports whether the question needs another answer, and why", "[client]") {
  const auto [code, became, is_settled] = GENERATE(table<std::string, Became, bool>({
      {"", Became::kTaken, true},
      {"stale", Became::kStale, true},
      {"already_processed", Became::kTooLate, true},
      {"not_found", Became::kTooLate, true},
      {"no_such_approval", Became::kTooLate, true},
      {"no_such_request", Became::kTooLate, true},
      {"invalid_arguments", Became::kRefused, false},
      {"stopping", Became::kLost, false},
  }));
  const AnswerOutcome given = Give(code, /*breaks=*/false);
  CHECK(given.became == became);
  CHECK(given.is_settled() == is_settled);
  CHECK(given.why == (code.empty() ? "" : "because of " + code));
}

TEST_CASE("GiveAnswer: repeats an answer that may have been lost, and takes the first of the two as its own",
          "[client]") {
  CHECK(Give("", /*breaks=*/true).became == Became::kTaken);
  CHECK(Give("already_processed", /*breaks=*/true).became == Became::kTaken);
  CHECK(Give("stale", /*breaks=*/true).became == Became::kStale);
}

}  // namespace
}  // namespace reprise::answers_test
