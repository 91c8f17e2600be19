#include "doors/translator.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/mutex.h"
#include "domain/codec.h"

namespace reprise {

std::string_view EventFrame::ContentLiteral() const {
  constexpr std::string_view kContent = ",\"content\":";
  if (!name.ends_with("_delta")) return {};
  // The content comes last. Before it only a call's id and tool hold free text, and a quote in those would be escaped.
  const std::size_t at = data.find(kContent);
  if (at == std::string_view::npos || !data.ends_with("\"}")) return {};
  return data.substr(at + kContent.size(), data.size() - at - kContent.size() - 1);
}

std::optional<EventFrame> TakeFrame(std::string_view& frames) {
  constexpr std::string_view kId = "id: ", kEvent = "\nevent: ", kData = "\ndata: ", kEnd = "\n\n";
  const std::string_view frame = frames.substr(0, frames.find(kEnd));
  frames.remove_prefix(std::min(frame.size() + kEnd.size(), frames.size()));
  const std::size_t data = frame.find(kData);
  if (data == std::string_view::npos || !frame.starts_with(kId)) return std::nullopt;
  EventFrame event{.data = frame.substr(data + kData.size())};
  const std::string_view head = frame.substr(0, data);
  if (const std::size_t name = head.find(kEvent); name != std::string_view::npos) {
    event.name = head.substr(name + kEvent.size());
  }
  std::from_chars(frame.data() + kId.size(), frame.data() + frame.size(), event.seq);
  return event;
}

void Translator::Take(const EventFrame& frame, std::string& out) {
  const bool is_text = frame.name == event::TextDelta::kName;
  if (is_text || frame.name == event::ThinkingDelta::kName) {
    const std::string_view literal = frame.ContentLiteral();
    if (literal.size() <= 2) return;  // an empty text
    return TakePiece(frame.seq, is_text ? Piece::kText : Piece::kThinking, literal.substr(1, literal.size() - 2), out);
  }
  const auto json = ParseJson(frame.data, 2 * kMaxJsonDepth);
  if (const auto event = json ? ReceivedEvent(*json) : std::nullopt) TakeEvent(*event, out);
}

namespace {

constexpr std::uint64_t kMostWaiting = 8 * 1024 * 1024;
constexpr std::size_t kRoomKept = 512;  // for the next event; a thousand streams may be open

class Pump : public EventLogListener, public std::enable_shared_from_this<Pump> {
 public:
  Pump(EventSubscription run, std::unique_ptr<Translator> translator, std::uint64_t offset)
      : run_(std::move(run)), translator_(std::move(translator)), offset_(offset) {}

  const std::shared_ptr<EventLog>& log() const { return log_; }

  void Begin() {
    {
      const MutexLock lock(mutex_);
      translator_->Begin(out_);
    }
    run_.log->Subscribe(shared_from_this());
    OnPublished(1);
    // The bytes so far do not count, because no client could have taken any yet.
    const MutexLock lock(mutex_);
    most_waiting_ = log_->kept_bytes() + kMostWaiting;
  }
  // Called when the client is gone.
  void Leave() { run_.log->Unsubscribe(this); }

  void OnPublished(std::size_t /*listeners*/) noexcept override {
    const MutexLock lock(mutex_);
    while (!is_over_) {
      const EventLog::View view = run_.log->Read(offset_);
      std::string_view frames = view.bytes;
      offset_ += frames.size();
      while (!frames.empty() && !is_over_) {
        if (const auto event = TakeFrame(frames)) Take(*event);
      }
      if (is_over_) break;
      if (view.end) {
        translator_->End(is_complete_, out_);
        is_over_ = true;
      }
      if (view.bytes.empty()) break;
    }
    if (!is_over_) {
      translator_->Rest(out_);
      is_over_ = translator_->is_over();
    }
    Send();
  }

 private:
  void Take(const EventFrame& event) REQUIRES(mutex_) {
    is_complete_ = is_complete_ || event.name == event::InteractionComplete::kName;
    translator_->Take(event, out_);
    is_over_ = translator_->is_over();
  }

  void Send() REQUIRES(mutex_) {
    if (is_closed_) return;
    if (!out_.empty()) log_->AppendFrames(out_);
    if (out_.capacity() > kRoomKept) out_ = std::string();
    out_.clear();
    is_closed_ = is_over_ || log_->kept_bytes() > most_waiting_;
    is_over_ = is_closed_;
    is_closed_ ? log_->Close() : log_->Publish();
  }

  const EventSubscription run_;
  const std::shared_ptr<EventLog> log_ = std::make_shared<EventLog>();
  Mutex mutex_;
  const std::unique_ptr<Translator> translator_;
  std::uint64_t offset_ GUARDED_BY(mutex_);
  std::string out_ GUARDED_BY(mutex_);
  std::uint64_t most_waiting_ GUARDED_BY(mutex_) = std::numeric_limits<std::uint64_t>::max();
  bool is_complete_ GUARDED_BY(mutex_) = false;
  bool is_over_ GUARDED_BY(mutex_) = false;
  bool is_closed_ GUARDED_BY(mutex_) = false;
};

// An object and not a deleter that leaves the pump, because a weak_ptr (Conversations::NoteClient) keeps the deleter,
// and so would keep the pump and its run.
struct Hold {
  explicit Hold(std::shared_ptr<Pump> held) : pump(std::move(held)) {}
  ~Hold() { pump->Leave(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  const std::shared_ptr<Pump> pump;
};

}  // namespace

TranslatedStream Translate(EventSubscription run, std::unique_ptr<Translator> translator, std::uint64_t offset) {
  const auto pump = std::make_shared<Pump>(std::move(run), std::move(translator), offset);
  pump->Begin();
  return {.log = pump->log(), .hold = std::make_shared<Hold>(pump), .translation = pump};
}

}  // namespace reprise
