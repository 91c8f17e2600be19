#include "approval/requests.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "support/test.h"

namespace reprise::requests_test {
namespace {

PendingApproval Request(std::uint32_t interaction = 1) {
  return {*ChatId::Parse("c"), InteractionId::FromNumber(interaction), {}};
}

// The requests, with a thread for each call that comes later.
template <typename Kind>
class Book {
 public:
  using Pending = typename Kind::Pending;
  using Answer = typename Kind::Answer;
  using Within = std::optional<InteractionRef>;
  explicit Book(std::function<Timestamp()> now = Now) : requests(Later(), std::move(now)) {}

  Result<void> Give(std::string_view id, Answer answer, const Within& within = {}) {
    return requests.Find(id, within).and_then([&](const auto& found) { return requests.Give(found, answer); });
  }
  Async<typename Requests<Kind>::Answered> Await(std::vector<std::string> ids, std::stop_token stop) {
    const Executor at_once = [](const std::function<void()>& job) { job(); };
    FromCallback<typename Requests<Kind>::Answered> awaited(
        at_once, [&](auto done) { requests.Await(ids, stop, std::move(done)); });
    co_return co_await awaited;
  }
  auto WaitAny(std::vector<std::string> ids, std::stop_token stop) { return WaitFor(Await(std::move(ids), stop)); }
  Result<Answer> Wait(const std::string& id, std::stop_token stop) {
    return WaitAny({id}, stop).map([](const auto& answered) { return answered.second; });
  }
  void Open(Pending& pending) {
    requests.Name(pending);
    requests.Reopen(pending);
  }
  std::vector<Pending> Waiting() const { return requests.Waiting(); }
  std::size_t waiting_count() const { return requests.waiting_count(); }

  Requests<Kind> requests;

 private:
  Delay Later() {
    return [this](std::chrono::milliseconds pause, std::function<void()> call) {
      const std::lock_guard lock(mutex_);
      threads_.emplace_back([pause, call = std::move(call)](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock own(mutex);
        never.wait_for(own, stop, pause, [] { return false; });
        if (!stop.stop_requested()) call();
      });
    };
  }
  std::mutex mutex_;
  std::vector<std::jthread> threads_;  // guarded by mutex_
};
using ApprovalBook = Book<ApprovalKind>;
using InputBook = Book<InputKind>;

}  // namespace

TEST_CASE("ApprovalBook: of many simultaneous answers exactly one wins", "[approval]") {
  ApprovalBook book;
  for (int round = 0; round < 200; ++round) {
    PendingApproval pending = Request();
    book.Open(pending);
    std::atomic<int> won = 0, late = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
          auto result = book.Give(pending.request.approval_id, {.approved = i % 2 == 0}, std::nullopt);
          if (result) ++won;
          if (!result && result.error().reason == "already_processed") ++late;
        });
      }
    }
    CHECK(won == 1);
    CHECK(late == 3);
    CHECK(book.Wait(pending.request.approval_id, {}));
  }
  CHECK(book.waiting_count() == 0);
}

TEST_CASE("ApprovalBook: an answer and a cancellation race to one outcome", "[approval]") {
  ApprovalBook book;
  for (int round = 0; round < 500; ++round) {
    PendingApproval pending = Request();
    book.Open(pending);
    std::stop_source stop;
    Result<ApprovalAnswer> outcome = Fail(ErrorCode::kInternal, "");
    Result<void> answered = Fail(ErrorCode::kInternal, "");
    {
      std::jthread waiter([&] { outcome = book.Wait(pending.request.approval_id, stop.get_token()); });
      std::jthread canceller([&] { stop.request_stop(); });
      std::jthread answerer(
          [&] { answered = book.Give(pending.request.approval_id, {.approved = true}, std::nullopt); });
    }
    CHECK(outcome.has_value() == answered.has_value());
  }
}

TEST_CASE("ApprovalBook: an id is found only within its own interaction", "[approval]") {
  ApprovalBook book;
  PendingApproval pending = Request(1);
  book.Open(pending);
  const InteractionRef other{*ChatId::Parse("c"), InteractionId::FromNumber(2)};
  const InteractionRef own{*ChatId::Parse("c"), InteractionId::FromNumber(1)};
  CHECK(book.Give(pending.request.approval_id, {}, other).error().code == ErrorCode::kNotFound);
  CHECK(book.Give("approval_0", {}, own).error().code == ErrorCode::kNotFound);
  CHECK(book.Give(pending.request.approval_id, {}, own));
}

TEST_CASE("InputBook: a question is opened, listed, answered and then only remembered", "[approval]") {
  InputBook book;
  PendingInput pending{*ChatId::Parse("c"), InteractionId::FromNumber(1), {}};
  pending.request.question = "Which?";
  book.Open(pending);
  CHECK(pending.request.request_id.starts_with("request_"));
  REQUIRE(book.Waiting().size() == 1);
  CHECK(book.Waiting()[0].request.question == "Which?");
  CHECK(book.Give(pending.request.request_id, {.response = "this"}, std::nullopt));
  const auto answer = book.Wait(pending.request.request_id, {});
  REQUIRE(answer);
  CHECK(answer->response == "this");
  const auto late = book.Give(pending.request.request_id, {.response = "that"}, std::nullopt);
  CHECK(late.error().reason == "already_processed");
  CHECK(late.error().message == "this question was already processed");
  CHECK(book.Give("request_x", {}, std::nullopt).error().code == ErrorCode::kNotFound);
}

TEST_CASE("ApprovalBook: waiting ones are listed oldest first, with unguessable ids", "[approval]") {
  ApprovalBook book;
  std::vector<std::string> ids;
  for (std::uint32_t i = 1; i <= 20; ++i) {
    PendingApproval pending = Request(i);
    book.Open(pending);
    ids.push_back(pending.request.approval_id);
    CHECK(pending.request.approval_id.size() == std::string("approval_").size() + 32);
  }
  const auto waiting = book.Waiting();
  REQUIRE(waiting.size() == ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) CHECK(waiting[i].request.approval_id == ids[i]);
}

TEST_CASE("ApprovalBook: reports the one of several that is answered, and a stop voids the others", "[approval]") {
  ApprovalBook book;
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    PendingApproval pending = Request();
    book.Open(pending);
    ids.push_back(pending.request.approval_id);
  }
  REQUIRE(book.Give(ids[2], {.approved = true}, std::nullopt));
  const auto first = book.WaitAny(ids, {});
  REQUIRE(first);
  CHECK(first->first == ids[2]);
  ids.pop_back();
  Result<std::pair<std::string, ApprovalAnswer>> second = Fail(ErrorCode::kInternal, "");
  {
    std::jthread waiter([&] { second = book.WaitAny(ids, {}); });
    CHECK(book.Give(ids[0], {.approved = false}, std::nullopt));
  }
  REQUIRE(second);
  CHECK(second->first == ids[0]);
  std::stop_source stop;
  stop.request_stop();
  CHECK(book.WaitAny({ids.back()}, stop.get_token()).error().code == ErrorCode::kCancelled);
  CHECK(book.Give(ids[1], {}, std::nullopt).error().reason == "already_processed");
  CHECK(book.waiting_count() == 0);
}

TEST_CASE("ApprovalBook: an expired request takes no answer", "[approval]") {
  ApprovalBook book;
  PendingApproval soon = Request(), later = Request();
  soon.request.expires_at = Now() + std::chrono::milliseconds(20);
  book.Open(soon);
  book.Open(later);
  const std::vector<std::string> ids{later.request.approval_id, soon.request.approval_id};
  const auto expired = book.WaitAny(ids, {});
  REQUIRE(expired);
  CHECK(expired->first == soon.request.approval_id);
  CHECK(expired->second.expired);
  CHECK_FALSE(expired->second.approved);
  CHECK(book.Waiting().size() == 1);

  PendingApproval over = Request();  // as one that another process asked
  over.request.approval_id = "approval_over";
  over.request.expires_at = Now() - std::chrono::hours(1);
  book.requests.Reopen(over);
  CHECK(book.Waiting().size() == 1);
  CHECK(book.Give("approval_over", {.approved = true}, std::nullopt).error().reason == "expired");
  CHECK(book.Wait("approval_over", {})->expired);
}

TEST_CASE("ApprovalBook: a claimed request is settled by its claimant or waits again", "[approval]") {
  ApprovalBook book;
  PendingApproval pending = Request();
  book.Open(pending);
  const std::string id = pending.request.approval_id;
  const auto found = book.requests.Find(id, std::nullopt);
  REQUIRE(found);
  REQUIRE(book.requests.Claim(*found));
  CHECK(book.Give(id, {.approved = true}, std::nullopt).error().reason == "already_processed");
  CHECK(book.requests.Settle(*found, std::nullopt));
  REQUIRE(book.requests.Claim(*found));
  CHECK(book.requests.Settle(*found, ApprovalAnswer{.approved = true}));
  CHECK_FALSE(book.requests.Settle(*found, ApprovalAnswer{.approved = false}));
  CHECK(book.Wait(id, {})->approved);
}

TEST_CASE("ApprovalBook: a clock that is set while one waits changes nothing", "[approval]") {
  Timestamp now = Now();
  ApprovalBook book([&] { return now; });
  PendingApproval soon = Request(), late = Request(2);
  soon.request.expires_at = now + std::chrono::milliseconds(1);
  late.request.expires_at = now + std::chrono::hours(1);
  book.Open(soon);
  book.Open(late);
  now -= std::chrono::hours(2);
  const auto expired = book.Wait(soon.request.approval_id, {});
  REQUIRE(expired);
  CHECK(expired->expired);
  now += std::chrono::hours(24);
  CHECK(book.waiting_count() == 1);
  CHECK(book.Give(late.request.approval_id, {.approved = true}, std::nullopt));
  // What another process opened expires by the time of day.
  PendingApproval again = Request(3);
  again.request.approval_id = "approval_again";
  again.request.expires_at = now - std::chrono::milliseconds(1);
  book.requests.Reopen(again);
  CHECK(book.Give("approval_again", {.approved = true}, std::nullopt).error().reason == "expired");
}

}  // namespace reprise::requests_test
