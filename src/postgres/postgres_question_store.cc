#include "postgres/postgres_question_store.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "base/try.h"
#include "domain/question_codec.h"

namespace reprise {
namespace {

// Milliseconds from now on, when the database's clock counts: this machine's may be wrong.
std::optional<std::int64_t> ExpiryOf(const PendingQuestion& question) {
  const auto* const approval = std::get_if<PendingApproval>(&question);
  if (!approval || !approval->request.expires_at) return std::nullopt;
  const auto left = *approval->request.expires_at - approval->request.created_at;
  return std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
}

RecordPlace PlaceOf(const InteractionRef& run, const std::string& id, bool is_answer) {
  return {.chat = run.chat_id, .interaction = run.interaction_id, .question = id, .is_answer = is_answer};
}

Error TooLate(std::string reason, std::string message) {
  return Error{.code = ErrorCode::kInvalidArgument, .reason = std::move(reason), .message = std::move(message)};
}

}  // namespace

Result<void> PostgresQuestionStore::Open(const std::vector<PendingQuestion>& questions) {
  for (const PendingQuestion& question : questions) {
    const InteractionRef run = QuestionRun(question);
    const std::string& id = QuestionId(question);
    std::string record = TRY(store_.Seal(PlaceOf(run, id, /*is_answer=*/false), DumpJson(QuestionToJson(question))));
    const bool is_approval = std::holds_alternative<PendingApproval>(question);
    const Rows held = TRY(database_.Execute(
        {.sql =
             "with held as (select 1 from reprise.runs where tenant = $1 and chat = $3 and number = $4::int and owner "
             "= $8::uuid for share), asked as (insert into reprise.questions(tenant, id, chat, number, kind, request, "
             "expires_at) select $1, $2, $3, $4::int, $5, $6, clock_timestamp() + $7::bigint * interval "
             "'1 millisecond' from held on conflict (tenant, id) do nothing) select count(*) from held",
         .values = {store_.tenant(), id, run.chat_id.str(), std::int64_t{run.interaction_id.number()},
                    is_approval ? "approval" : "input", SqlValue::Bytes(std::move(record)),
                    SqlValue::OrNull(ExpiryOf(question)), instance_},
         .is_patient = true}));
    if (held.number(0, 0) == 0) {
      return Fail(Error{
          .code = ErrorCode::kConflict, .reason = "fenced", .message = "another server has taken up this interaction"});
    }
  }
  return {};
}

Result<PendingQuestion> PostgresQuestionStore::OpenRow(const Rows& rows, std::size_t row) {
  const ChatId chat = TRY(ChatId::Parse(rows.text(row, 1)));
  const InteractionRef run{chat, NumberedId(rows.number(row, 2))};
  const std::string plaintext =
      TRY(store_.Open(PlaceOf(run, std::string(rows.text(row, 0)), /*is_answer=*/false), rows.text(row, 3)));
  return ParseJson(plaintext).and_then([&](const Json& json) { return QuestionFromJson(run, json); });
}

Result<PendingQuestion> PostgresQuestionStore::Find(const std::string& id) {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select id, chat, number, request, answer is not null, coalesce(expires_at <= clock_timestamp(), false) "
              "from reprise.questions where tenant = $1 and id = $2",
       .values = {store_.tenant(), id}}));
  if (rows.empty()) return Fail(ErrorCode::kNotFound, "there is no such question");
  if (rows.truth(0, 4)) return Fail(TooLate("already_processed", "this question was already processed"));
  if (rows.truth(0, 5)) return Fail(TooLate("expired", "this question has expired"));
  return OpenRow(rows, 0);
}

Result<std::vector<PendingQuestion>> PostgresQuestionStore::Waiting() {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select id, chat, number, request from reprise.questions where tenant = $1 and answer is null and "
              "(expires_at is null or expires_at > clock_timestamp()) order by created_at",
       .values = {store_.tenant()}}));
  std::vector<PendingQuestion> waiting;
  for (std::size_t row = 0; row < rows.size(); ++row) waiting.push_back(TRY(OpenRow(rows, row)));
  return waiting;
}

Result<void> PostgresQuestionStore::Answer(const InteractionRef& run, const std::string& id,
                                           const GivenAnswer& answer) {
  const std::string record = TRY(store_.Seal(PlaceOf(run, id, /*is_answer=*/true), DumpJson(ToJson(id, answer))));
  const Rows answered = TRY(database_.Execute(
      {.sql = "update reprise.questions q set answer = $3 where tenant = $1 and id = $2 and chat = $4 and number = "
              "$5::int and (answer is null and (expires_at is null or expires_at > clock_timestamp()) or answer = $3) "
              "returning (select owner::text from reprise.runs r where (r.tenant, r.chat, r.number) = (q.tenant, "
              "q.chat, q.number))",
       .values = {store_.tenant(), id, SqlValue::Bytes(record), run.chat_id.str(),
                  std::int64_t{run.interaction_id.number()}}}));
  if (answered.empty()) {
    const auto why = Find(id);
    return Fail(why ? TooLate("expired", "this question has expired") : why.error());
  }
  // Committed: the owner may look. It also looks by itself, so that this may be lost.
  if (!answered.is_null(0, 0)) signals_.TellAnswer(std::string(answered.text(0, 0)), {store_.tenant(), run});
  return {};
}

Result<std::vector<std::pair<std::string, GivenAnswer>>> PostgresQuestionStore::Answered(const InteractionRef& run) {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select id, answer from reprise.questions where tenant = $1 and chat = $2 and number = $3::int and "
              "length(answer) > 0",
       .values = {store_.tenant(), run.chat_id.str(), std::int64_t{run.interaction_id.number()}}}));
  std::vector<std::pair<std::string, GivenAnswer>> answered;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::string id(rows.text(row, 0));
    const std::string plaintext = TRY(store_.Open(PlaceOf(run, id, /*is_answer=*/true), rows.text(row, 1)));
    answered.push_back(TRY(ParseJson(plaintext).and_then(AnswerFromJson)));
  }
  return answered;
}

}  // namespace reprise
