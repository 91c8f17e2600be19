#include "fault/scenario.h"

namespace reprise {
namespace {

ToolCall Call(const std::string& tool, const std::string& id) { return {id, tool, R"({"call":")" + id + "\"}"}; }

// Enough text for several pages.
std::vector<std::string> ManyDeltas() {
  std::vector<std::string> deltas;
  for (int i = 0; i < 12; ++i) deltas.push_back(std::string(500, static_cast<char>('a' + i)) + " ");
  deltas.push_back("silence");
  return deltas;
}

void TurnWithApproval(Life& life, const ChatId& chat, const std::string& message, const std::string& call) {
  life.ThenCall({Call("danger", call)}, "I will");
  const auto log = life.Start(chat, message);
  if (!life.AwaitApproval(log)) return life.Finish(log);
  life.ThenAnswer({"It is", " done."});
  life.Answer(chat, life.IdOf(log), true);
  life.Finish(log);
}

}  // namespace

std::shared_ptr<const KeySet> Keys() {
  static const auto keys = std::make_shared<const KeySet>(KeySet::Generate());
  return keys;
}

void FirstLife(Life& life) {
  life.CreateChat(kMain, "a title");
  life.ThenAnswer({"hel", "lo"});
  life.Finish(life.Start(kMain, "one"));
  TurnWithApproval(life, kMain, "two", "call_2");
  life.ThenCall({Call("look", "call_3a"), Call("look", "call_3b")}, "Let me see.");
  life.ThenAnswer({"I see."});
  life.Finish(life.Start(kMain, "three"));
  life.ThenAnswer({"another answer"});
  life.Finish(life.Edit(kMain, Id(2), "two, edited"));
  life.Rename(kMain, "renamed");
  life.MoveHead(kMain, Id(3));

  life.ThenAnswer({"elsewhere"});
  life.Finish(life.Start(kOther, "to be deleted"));
  life.Delete(kOther);

  life.ThenHang({"half", "silence"});
  const auto cancelled = life.Start(kMain, "five");
  life.AwaitText(cancelled, "silence");
  if (cancelled) life.Cancel(kMain, life.IdOf(cancelled));
  life.Finish(cancelled);

  life.ThenCall({Call("danger", "call_w1"), Call("look", "call_w2")}, "May I?");
  const auto waiting = life.Start(kWaiting, "ask me");
  if (!life.AwaitApproval(waiting)) life.Finish(waiting);
  life.ThenCall({Call("look", "call_t")}, "Wait.");
  life.ThenHang(ManyDeltas());
  life.AwaitText(life.Start(kTalking, "tell me"), "silence");
}

void SecondLife(Life& life) {
  const auto waiting = life.Attach(kWaiting, Id(1));
  if (life.AwaitApproval(waiting)) {
    life.ThenAnswer({"Thank you."});
    life.Answer(kWaiting, Id(1), true);
  }
  life.Finish(waiting);
  life.ThenAnswer({"once more"});
  life.Finish(life.Start(kTalking, "again"));
  life.ThenCall({Call("danger", "call_w3")}, "And this?");
  life.AwaitApproval(life.Start(kWaiting, "ask me again"));
}

void ThirdLife(Life& life) {
  const auto waiting = life.Attach(kWaiting, Id(2));
  if (life.AwaitApproval(waiting)) {
    life.ThenAnswer({"Then not."});
    life.Answer(kWaiting, Id(2), false);
  }
  life.Finish(waiting);
  life.Rename(kTalking, "the last word");
}

}  // namespace reprise
