// The facts that hold for every CheckpointStore and ChatStore.
#include <set>
#include <thread>

#include "store/conformance/store_under_test.h"
#include "store/sample.h"
#include "support/test.h"

namespace reprise::interaction_store_conformance_test {
namespace {

// A chat with 001 <- 002, 001 <- 003 (an edit of 002) <- 004, saved in this order.
void SaveTree(InteractionStore& store) {
  REQUIRE(store.ReserveInteraction(Chat1()) == Id(1));
  REQUIRE(store.SaveInteraction(Sample(1, {}, "one")));
  REQUIRE(store.ReserveInteraction(Chat1()) == Id(2));
  REQUIRE(store.SaveInteraction(Sample(2, 1, "two")));
  REQUIRE(store.ReserveInteraction(Chat1()) == Id(3));
  REQUIRE(store.SaveInteraction(Sample(3, 1, "two, edited")));
  REQUIRE(store.ReserveInteraction(Chat1()) == Id(4));
  REQUIRE(store.SaveInteraction(Sample(4, 3, "three")));
}

template <typename T>
ErrorCode CodeOf(const Result<T>& result) {
  REQUIRE_FALSE(result);
  return result.error().code;
}

}  // namespace

TEST_CASE("InteractionStore: a saved interaction is loaded equal, also after reopening", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    SaveTree(under_test.store());
    for (int round = 0; round < 2; ++round) {
      InteractionStore& store = under_test.store();
      CHECK(store.LoadInteraction(Chat1(), Id(1)) == Sample(1, {}, "one"));
      CHECK(store.LoadInteraction(Chat1(), Id(3)) == Sample(3, 1, "two, edited"));
      const auto chat = store.LoadChat(Chat1());
      REQUIRE(chat);
      CHECK(chat->interactions ==
            std::vector{Sample(1, {}, "one"), Sample(2, 1, "two"), Sample(3, 1, "two, edited"), Sample(4, 3, "three")});
      CHECK(chat->damaged.empty());
      CHECK(chat->summary.head == Id(4));
      CHECK(chat->summary.head_status == InteractionStatus::kCompleted);
      CHECK(chat->summary.title == "one");
      CHECK(chat->summary.updated_at >= At(41));
      under_test.Reopen();
    }
  });
}

TEST_CASE("InteractionStore: a final state is the saved one, however often it is loaded", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    SaveTree(under_test.store());
    for (int round = 0; round < 2; ++round) {
      InteractionStore& store = under_test.store();
      for (int time = 0; time < 2; ++time) {
        CHECK(store.LoadFinalState(Chat1(), Id(1)).value() == Sample(1, {}, "one").final_agent_state);
        CHECK(store.LoadFinalState(Chat1(), Id(4)).value() == Sample(4, 3, "three").final_agent_state);
      }
      CHECK(CodeOf(store.LoadFinalState(Chat1(), Id(9))) == ErrorCode::kNotFound);
      CHECK(CodeOf(store.LoadFinalState(*ChatId::Parse("nowhere"), Id(1))) == ErrorCode::kNotFound);
      under_test.Reopen();
    }
  });
}

TEST_CASE("InteractionStore: the state before an interaction is its parent's", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    SaveTree(under_test.store());
    for (int round = 0; round < 2; ++round) {
      InteractionStore& store = under_test.store();
      CHECK(store.LoadPreviousState(Chat1(), Id(1)).value() == std::optional<AgentState>());
      CHECK(store.LoadPreviousState(Chat1(), Id(3)).value() == Sample(1, {}, "one").final_agent_state);
      CHECK(store.LoadPreviousState(Chat1(), Id(4)).value() == Sample(3, 1, "two, edited").final_agent_state);
      CHECK(CodeOf(store.LoadPreviousState(Chat1(), Id(9))) == ErrorCode::kNotFound);
      under_test.Reopen();
    }
  });
}

TEST_CASE("InteractionStore: reserved numbers rise and are never used twice", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    CHECK(under_test.store().ReserveInteraction(Chat1()) == Id(1));
    CHECK(under_test.store().ReserveInteraction(Chat1()) == Id(2));
    REQUIRE(under_test.store().SaveInteraction(Sample(2, {}, "the first was given up")));
    under_test.Reopen();
    CHECK(under_test.store().ReserveInteraction(Chat1()) == Id(3));
    CHECK(under_test.store().LoadSummary(Chat1())->head == Id(2));
  });
}

TEST_CASE("InteractionStore: reserving creates the chat", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    REQUIRE(under_test.store().ReserveInteraction(Chat1()));
    const auto summary = under_test.store().LoadSummary(Chat1());
    REQUIRE(summary);
    CHECK(summary->title.empty());
    CHECK_FALSE(summary->head);
    CHECK(CodeOf(under_test.store().CreateChat(Chat1(), {.title = "title"})) == ErrorCode::kConflict);
    CHECK(under_test.store().ListChats()->size() == 1);
  });
}

TEST_CASE("InteractionStore: a chat is created only once, with its title", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    const auto created = under_test.store().CreateChat(Chat1(), {.title = "T\xc3\xaftle"});
    REQUIRE(created);
    CHECK(created->title == "T\xc3\xaftle");
    const auto again = under_test.store().CreateChat(Chat1(), {.title = "other"});
    REQUIRE_FALSE(again);
    CHECK(again.error().reason == "chat_exists");
    under_test.Reopen();
    CHECK(under_test.store().LoadSummary(Chat1()) == *created);
    REQUIRE(under_test.store().SaveInteraction(Sample(1, {}, "a message")));
    CHECK(under_test.store().LoadSummary(Chat1())->title == "T\xc3\xaftle");
  });
}

TEST_CASE("InteractionStore: a chat keeps the settings that it is created with, and works where it worked last",
          "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    const ChatSettings settings{
        .title = "t", .approval_mode = ApprovalMode::kReadOnly, .model = "m/x", .workspace = "/home/ann/a"};
    const auto created = under_test.store().CreateChat(Chat1(), settings);
    REQUIRE(created);
    CHECK(created->approval_mode == ApprovalMode::kReadOnly);
    CHECK(created->chosen_model == "m/x");
    CHECK(created->workspace == "/home/ann/a");
    under_test.Reopen();
    CHECK(under_test.store().LoadSummary(Chat1()) == *created);
    Interaction moved = Sample(1, {}, "a message");
    moved.workspace = "/home/ann/b";
    REQUIRE(under_test.store().SaveInteraction(moved));
    under_test.Reopen();
    CHECK(under_test.store().LoadSummary(Chat1())->workspace == "/home/ann/b");
    CHECK(under_test.store().LoadInteraction(Chat1(), moved.id)->workspace == "/home/ann/b");
    Interaction imported = Sample(2, 1, "from elsewhere");
    imported.workspace = "/home/bob";
    imported.imported = true;
    REQUIRE(under_test.store().SaveInteraction(imported));
    CHECK(under_test.store().LoadSummary(Chat1())->workspace == "/home/ann/b");
  });
}

TEST_CASE("InteractionStore: an interaction may be saved twice, but no other one under its id", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    SaveTree(under_test.store());
    for (int round = 0; round < 2; ++round) {
      CHECK(under_test.store().SaveInteraction(Sample(2, 1, "two")));
      const auto other = under_test.store().SaveInteraction(Sample(2, 1, "another two"));
      REQUIRE_FALSE(other);
      CHECK(other.error().code == ErrorCode::kConflict);
      CHECK(other.error().reason == "interaction_exists");
      CHECK(under_test.store().LoadSummary(Chat1())->head == Id(4));
      CHECK(under_test.store().LoadInteraction(Chat1(), Id(2)) == Sample(2, 1, "two"));
      under_test.Reopen();
    }
  });
}

TEST_CASE("InteractionStore: an interaction whose parent is not stored is refused", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    CHECK(CodeOf(under_test.store().SaveInteraction(Sample(2, 1, "an orphan"))) == ErrorCode::kNotFound);
    CHECK(CodeOf(under_test.store().LoadSummary(Chat1())) == ErrorCode::kNotFound);
    SaveTree(under_test.store());
    CHECK(CodeOf(under_test.store().SaveInteraction(Sample(9, 8, "an orphan"))) == ErrorCode::kNotFound);
    CHECK(CodeOf(under_test.store().LoadInteraction(Chat1(), Id(9))) == ErrorCode::kNotFound);
  });
}

TEST_CASE("InteractionStore: the head moves to stored interactions only, and stays there", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    SaveTree(under_test.store());
    const auto moved = under_test.store().MoveHead(Chat1(), Id(2));
    REQUIRE(moved);
    CHECK(moved->head == Id(2));
    CHECK(CodeOf(under_test.store().MoveHead(Chat1(), Id(7))) == ErrorCode::kNotFound);
    under_test.Reopen();
    CHECK(under_test.store().LoadSummary(Chat1()) == *moved);
    REQUIRE(under_test.store().SaveInteraction(Sample(5, 2, "on the old branch")));
    under_test.Reopen();
    CHECK(under_test.store().LoadSummary(Chat1())->head == Id(5));
    CHECK(under_test.store().LoadChat(Chat1())->interactions.size() == 5);
  });
}

TEST_CASE("InteractionStore: a renamed chat keeps its name", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    SaveTree(under_test.store());
    const auto renamed = under_test.store().ChangeChat(Chat1(), {.title = "new name"});
    REQUIRE(renamed);
    REQUIRE(under_test.store().SaveInteraction(Sample(5, 4, "later")));
    under_test.Reopen();
    CHECK(under_test.store().LoadSummary(Chat1())->title == "new name");
    CHECK(under_test.store().LoadSummary(Chat1())->head == Id(5));
  });
}

TEST_CASE("InteractionStore: the settings of a chat stay, and are copied with it except for approve_all", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    SaveTree(under_test.store());
    const ChatId strict = *ChatId::Parse("strict"), loose = *ChatId::Parse("loose");
    const ChatSettings denies{.approval_mode = ApprovalMode::kDenyAll, .model = "p/m"};
    REQUIRE(under_test.store().ChangeChat(Chat1(), denies));
    const std::string title = under_test.store().LoadSummary(Chat1())->title;
    REQUIRE(under_test.store().SaveInteraction(Sample(5, 4, "later")));
    under_test.Reopen();
    const auto kept = under_test.store().LoadSummary(Chat1());
    CHECK(kept->approval_mode == ApprovalMode::kDenyAll);
    CHECK(kept->chosen_model == "p/m");
    CHECK(kept->title == title);
    CHECK(under_test.store().ForkChat(Chat1(), Id(1), strict, {})->approval_mode == ApprovalMode::kDenyAll);
    REQUIRE(under_test.store().ChangeChat(Chat1(), {.approval_mode = ApprovalMode::kApproveAll}));
    const auto copy = under_test.store().ForkChat(Chat1(), Id(1), loose, {});
    CHECK(copy->approval_mode == std::nullopt);
    CHECK(copy->chosen_model == "p/m");
    const ChatSettings taken_back{.approval_mode = std::optional<ApprovalMode>(), .model = ""};
    REQUIRE(under_test.store().ChangeChat(Chat1(), taken_back));
    under_test.Reopen();
    CHECK(under_test.store().LoadSummary(Chat1())->approval_mode == std::nullopt);
    CHECK(under_test.store().LoadSummary(Chat1())->chosen_model.empty());
    CHECK(under_test.store().LoadSummary(strict)->approval_mode == ApprovalMode::kDenyAll);
  });
}

TEST_CASE("InteractionStore: chats are listed by their last change", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    const auto save = [&](const char* name, std::uint32_t number) {
      REQUIRE(under_test.store().SaveInteraction(Sample(*ChatId::Parse(name), Id(number), {}, name)));
    };
    CHECK(under_test.store().ListChats()->empty());
    save("a", 2);
    save("b", 9);
    save("c", 5);
    for (int round = 0; round < 2; ++round) {
      const auto chats = under_test.store().ListChats();
      REQUIRE(chats);
      std::string order;
      for (const ChatSummary& chat : *chats) order += chat.id.str();
      CHECK(order == "bca");
      const auto page = under_test.store().ListPage(std::nullopt, 2, {});
      REQUIRE(page);
      CHECK(page->chats == std::vector(chats->begin(), chats->begin() + 2));
      CHECK(page->more);
      const auto rest = under_test.store().ListPage(ChatPlace::Of(page->chats.back()), 2, {});
      REQUIRE(rest);
      CHECK(rest->chats == std::vector(chats->begin() + 2, chats->end()));
      CHECK_FALSE(rest->more);
      const auto but_b = [](const ChatSummary& each) { return each.id.str() != "b"; };
      const auto wanted = under_test.store().ListPage(std::nullopt, 1, but_b);
      REQUIRE(wanted);
      CHECK(wanted->chats == std::vector(1, (*chats)[1]));
      CHECK(wanted->more);
      CHECK(under_test.store().ListPage(ChatPlace::Of(wanted->chats[0]), 9, but_b)->chats == rest->chats);
      under_test.Reopen();
    }
  });
}

TEST_CASE("InteractionStore: a deleted chat is gone, and its name is free", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    SaveTree(under_test.store());
    REQUIRE(under_test.store().DeleteChat(Chat1()));
    for (int round = 0; round < 2; ++round) {
      CHECK(CodeOf(under_test.store().LoadSummary(Chat1())) == ErrorCode::kNotFound);
      CHECK(CodeOf(under_test.store().LoadChat(Chat1())) == ErrorCode::kNotFound);
      CHECK(CodeOf(under_test.store().LoadInteraction(Chat1(), Id(1))) == ErrorCode::kNotFound);
      CHECK(CodeOf(under_test.store().ChangeChat(Chat1(), {.title = "x"})) == ErrorCode::kNotFound);
      CHECK(CodeOf(under_test.store().MoveHead(Chat1(), Id(1))) == ErrorCode::kNotFound);
      CHECK(CodeOf(under_test.store().DeleteChat(Chat1())) == ErrorCode::kNotFound);
      CHECK(under_test.store().ListChats()->empty());
      under_test.Reopen();
    }
    REQUIRE(under_test.store().ReserveInteraction(Chat1()) == Id(1));
    REQUIRE(under_test.store().SaveInteraction(Sample(1, {}, "a new life")));
    under_test.Reopen();
    CHECK(under_test.store().LoadChat(Chat1())->interactions.size() == 1);
  });
}

TEST_CASE("InteractionStore: threads that save into one chat and into several lose nothing", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    constexpr int kThreads = 4, kSaves = 10;
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
          InteractionStore& store = under_test.store();
          const ChatId own = *ChatId::Parse("own" + std::to_string(thread));
          for (int i = 0; i < kSaves; ++i) {
            for (const ChatId& chat : {Chat1(), own}) {
              const auto id = store.ReserveInteraction(chat);
              if (id) static_cast<void>(store.SaveInteraction(Sample(chat, *id, {}, "text")));
            }
            static_cast<void>(store.LoadChat(Chat1()));
            static_cast<void>(store.ListChats());
            static_cast<void>(store.ChangeChat(own, {.title = std::to_string(i)}));
          }
        });
      }
    }
    under_test.Reopen();
    CHECK(under_test.store().ListChats()->size() == kThreads + 1);
    const auto chat = under_test.store().LoadChat(Chat1());
    REQUIRE(chat);
    CHECK(chat->interactions.size() == kThreads * kSaves);
    CHECK(chat->damaged.empty());
    CHECK(under_test.store().LoadSummary(*ChatId::Parse("own2"))->title == "9");
  });
}

}  // namespace reprise::interaction_store_conformance_test
