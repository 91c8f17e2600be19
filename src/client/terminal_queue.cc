// Messages of this client that wait for the end of the chat's run.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"
#include "client/server_access.h"
#include "client/terminal_client.h"

namespace reprise {
namespace {

// Why a message does not begin, as its stream says.
Error WhyNotBegun(const RunStream& stream) {
  for (const RunStream::Heard& heard : stream.received()) {
    const auto* const failed = heard.event ? std::get_if<event::Failed>(&heard.event->payload) : nullptr;
    if (failed == nullptr) continue;
    Error why = MakeError(ErrorCode::kUnavailable, failed->message);
    why.reason = failed->code;
    return why;
  }
  const auto& ended = stream.ended();
  return ended && !*ended ? ended->error() : MakeError(ErrorCode::kUnavailable, "the server has not said why");
}

// Whether the stream ended, with the server or alone, and the message may still be in the queue.
bool MayStillWait(const RunStream& stream) {
  if (!stream.ended() || !stream.interaction().empty()) return false;
  if (stream.received().empty() && *stream.ended()) return true;  // it broke off
  const Error why = WhyNotBegun(stream);
  return HowLost(why) != Loss::kNone || why.Is(Reason::kStopping) || why.Is(Reason::kRequestWaits);
}

}  // namespace

// Whether the run that began may be a queued message of this client, which has a stream of its own.
bool TerminalClient::MayBeQueuedHere() {
  if (queued_.empty()) return false;
  const auto queue = server_.Call("GET", path_ + "/queue");
  const Json waiting = queue ? ListedIn(*queue, "queue") : Json::array();
  return !std::ranges::all_of(queued_, [&](const QueuedText& own) {
    return std::ranges::any_of(waiting, [&](const Json& each) { return TextMember(each, "id") == own.id; });
  });
}

// Takes the streams' news. A message whose stream was lost is on the server's disk, and would run there after the next
// start, although the person might send it again. So it is taken back, or, if it has begun, its run is shown.
void TerminalClient::ReceiveQueued() {
  bool comes_first = true;  // no earlier one waits on, so that the texts return in their order
  std::erase_if(queued_, [&](QueuedText& waiting) {
    waiting.stream->Receive();
    const auto& events = waiting.stream->received();
    if (!events.empty() && events.front().name == "queued") waiting.id = TextMember(waiting.stream->Next()->data, "id");
    const bool is_settled = waiting.stream->ended() || !waiting.stream->interaction().empty();
    comes_first = comes_first && is_settled;
    return comes_first && !waiting.is_lost && MayStillWait(*waiting.stream) && TakesBackLost(waiting);
  });
}

// True if the text is in the line again.
bool TerminalClient::TakesBackLost(QueuedText& waiting) {
  waiting.is_lost = true;
  if (waiting.id.empty()) {  // the server went before it said the id
    const auto queue = Call("GET", path_ + "/queue");
    if (!queue && HowLost(queue.error()) != Loss::kNone) {
      lost_ = true;  // FollowAgain looks again
      return false;
    }
    for (const Json& each : queue ? ListedIn(*queue, "queue") : Json::array()) {
      if (TextMember(each, "user_message") == waiting.text) waiting.id = TextMember(each, "id");
    }
  }
  const auto remove = [&] { return Call("DELETE", path_ + "/queue/" + waiting.id); };
  auto removed = waiting.id.empty() ? Fail(Reason::kNotFound, "") : remove();
  // What a server did whose answer was lost with it shows at the next one: a message that is gone is sent again below.
  if (!removed && HowLost(removed.error()) == Loss::kBroken) removed = remove();
  if (removed) {
    ReturnToLine(waiting.text, "the server was lost");
    return true;
  }
  if (HowLost(removed.error()) != Loss::kNone) {
    lost_ = true;
  } else {
    // The same request shows its run, or sends it if the server dropped it with the connection.
    waiting.stream->Resume();
    waiting.is_lost = false;
    WaitForFirst(*waiting.stream);
  }
  return false;
}

void TerminalClient::ReturnToLine(const std::string& text, const std::string& why) {
  aside_ = Joined(aside_, text);
  Complain(why + ": not sent; it is back in the input line");
}

// Shows the chat's next run if none is shown: a message queued here, or another client's run.
void TerminalClient::ShowNext() {
  while (!running()) {
    ReceiveQueued();
    const auto begun = std::ranges::find_if(queued_, [](const QueuedText& each) {
      const bool has_news = !each.stream->received().empty() || each.stream->ended();
      return has_news && !MayStillWait(*each.stream);
    });
    if (begun != queued_.end()) {
      QueuedText next = std::move(*begun);
      queued_.erase(begun);
      const std::string& interaction = next.stream->interaction();
      if (interaction.empty()) {  // it will never begin as this
        const Error why = WhyNotBegun(*next.stream);
        if (!why.Is(Reason::kBegunElsewhere)) ReturnToLine(next.text, why.message);
        continue;
      }
      if (shown_.contains(interaction)) continue;
      ShowUserMessage(next.text);
      follows_ = true;
      Begin(std::move(next.stream), Whose::kOwn);
      return;
    }
    while (!started_.empty() && shown_.contains(started_.front())) started_.pop_front();
    if (started_.empty() || MayBeQueuedHere()) return;
    const std::string id = started_.front();
    started_.pop_front();
    shown_.insert(id);
    const auto interaction = server_.Call("GET", path_ + "/interactions/" + id);
    if (!interaction || TextMember(*interaction, "user_message").empty()) continue;  // tasks or grants were changed
    FollowOne(*interaction);
  }
}

// Ctrl-C or Esc: returns this client's queued messages to the line and cancels the run; another client's run only if
// no message was queued here. False if there was neither.
bool TerminalClient::Stop() {
  const bool has_taken = TakeBack();
  const bool ran = running();
  if (ran && (whose_ == Whose::kOwn || !has_taken)) Cancel();
  return ran || has_taken;
}

bool TerminalClient::TakeBack() {
  std::string texts;
  std::erase_if(queued_, [&](const QueuedText& waiting) {
    if (waiting.id.empty() || !Call("DELETE", path_ + "/queue/" + waiting.id)) return false;  // it already runs
    texts = Joined(texts, waiting.text);
    return true;
  });
  aside_ = Joined(aside_, texts);
  return !texts.empty();
}

// No message runs when its person has gone, and no text is lost with the screen.
void TerminalClient::Leave() {
  const bool has_queued = !queued_.empty();
  TakeBack();
  if (const std::string unsent = Joined(aside_, draft_); !unsent.empty()) {
    Tell("(not sent:)");
    Tell(unsent);
  }
  for (const QueuedText& waiting : queued_) Complain("this waits at the server, and may still run: " + waiting.text);
  const bool waits_for_person = running() && !Open().empty();
  if (has_queued && running() && whose_ == Whose::kOwn && !waits_for_person && Cancel()) Tell("(the run is cancelled)");
}

}  // namespace reprise
