#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/agenda.h"
#include "reprise/ids.h"
#include "reprise/timestamp.h"

namespace reprise {

// Values are written to disk by name (see src/domain/message_codec.cc); the order here is free.
enum class Role { kSystem, kUser, kAssistant, kTool };

// A call that a model requested. `arguments` is the JSON text as the model wrote it.
struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;
  bool operator==(const ToolCall&) const = default;
};

// Begins a message with the user's role whose words are those of a before_end hook.
inline constexpr std::string_view kSentBackIntro =
    "(Not from the user. A check of your answer, before the user gets it, sends you back:)\n";

// Begins the text of attached files, which follows the user's text.
inline constexpr std::string_view kAttachedFiles = "\n\n[Attached files, for the assistant to read";

// A chat's file, attached to a message by a person or made by a tool, as people see it.
struct Attachment {
  FileId id;
  std::string filename{}, mime_type{};
  std::uint64_t size_bytes = 0;
  std::string note{};  // why the model did not get its content, or only a part; empty: it got all
  bool operator==(const Attachment&) const = default;
};

// A chat's file in a message, after the text. Its bytes are read when the message is sent. A model that does not take
// such a file gets its text, or the reason why there is none.
struct MessagePart {
  enum class Kind { kImage, kDocument, kAudio };  // written to disk by name: "image", "document", "audio"
  Kind kind = Kind::kImage;
  FileId file_id;
  std::string mime_type{}, filename{};
  std::uint64_t size_bytes = 0;
  std::int64_t tokens = 0;  // estimated cost of the file in its own format
  bool operator==(const MessagePart&) const = default;
};

// One message in the OpenAI chat shape.
struct Message {
  Role role = Role::kUser;
  std::optional<std::string> content{};  // nullopt is JSON null: an assistant message that only calls tools
  std::vector<ToolCall> tool_calls{};    // assistant only
  std::string tool_call_id{};            // tool only
  std::string name{};                    // tool only, may be empty
  bool is_error = false;                 // tool only: the call failed
  // JSON object text with every member not named above, kept verbatim (thinking blocks with their signatures must come
  // back to the provider unchanged). Empty if there is none.
  std::string extras{};
  std::vector<MessagePart> parts{};  // user and tool only; see MessagePart
  bool operator==(const Message&) const = default;
};

// Whether a person said it.
inline bool IsOfPerson(const Message& message) {
  return message.role == Role::kUser && !message.content.value_or("").starts_with(kSentBackIntro);
}

// An ordered list of messages. Copies share them, mostly in chunks, so that a long history is copied and compared with
// its continuation without a look at each message. A change affects one copy alone. As thread-safe as a std::vector.
//
//   reprise::Messages before{{.role = reprise::Role::kUser, .content = "Hello"}};
//   reprise::Messages after = before;  // shares the message
//   after.push_back({.role = reprise::Role::kAssistant, .content = "Hi"});
//   assert(after.StartsWith(before) && before.size() == 1);
class Messages {
 public:
  class Iterator;
  using value_type = Message;
  using const_reference = const Message&;
  using iterator = Iterator;
  using const_iterator = Iterator;

  Messages() = default;
  Messages(std::initializer_list<Message> list) : Messages(std::vector<Message>(list)) {}
  Messages(std::vector<Message> list) { Append(std::move(list)); }  // NOLINT(google-explicit-constructor)

  std::size_t size() const { return chunks_.size() * kChunk + tail_.size(); }
  bool empty() const { return size() == 0; }
  const Message& operator[](std::size_t i) const { return *At(i); }
  const Message& front() const { return *At(0); }
  const Message& back() const { return *At(size() - 1); }
  Iterator begin() const;
  Iterator end() const;
  std::reverse_iterator<Iterator> rbegin() const;
  std::reverse_iterator<Iterator> rend() const;

  void push_back(Message message) { Push(std::make_shared<const Message>(std::move(message))); }
  void pop_back() { Truncate(size() - 1); }
  void Append(std::vector<Message> more);
  // Appends messages [first, end) of `from`.
  void Append(const Messages& from, std::size_t first, std::size_t end);
  void Insert(std::size_t at, std::vector<Message> more);
  // Keeps the first `size` messages.
  void Truncate(std::size_t size);
  // A message to modify; the reference is valid until the next call.
  Message& Change(std::size_t i);

  bool StartsWith(const Messages& beginning) const;
  bool operator==(const Messages& other) const { return size() == other.size() && StartsWith(other); }

 private:
  using Pointer = std::shared_ptr<const Message>;
  using Chunk = std::vector<Pointer>;  // of kChunk, once it is one of chunks_
  static constexpr std::size_t kChunk = 64;

  const Pointer& At(std::size_t i) const {
    const std::size_t chunk = i / kChunk;
    return chunk < chunks_.size() ? (*chunks_[chunk])[i % kChunk] : tail_[i % kChunk];
  }
  void Push(Pointer message);

  std::vector<std::shared_ptr<const Chunk>> chunks_;
  Chunk tail_;  // the messages after the chunks; fewer than one chunk
};

// Stays valid while messages are added.
class Messages::Iterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Message;
  using difference_type = std::ptrdiff_t;
  using pointer = const Message*;
  using reference = const Message&;

  Iterator() = default;
  Iterator(const Messages& messages, std::size_t at) : messages_(&messages), at_(static_cast<difference_type>(at)) {}

  reference operator*() const { return (*messages_)[static_cast<std::size_t>(at_)]; }
  pointer operator->() const { return &**this; }
  reference operator[](difference_type n) const { return *(*this + n); }
  Iterator& operator++() { return *this += 1; }
  Iterator& operator--() { return *this -= 1; }
  Iterator operator++(int) { return std::exchange(*this, *this + 1); }
  Iterator operator--(int) { return std::exchange(*this, *this - 1); }
  Iterator& operator+=(difference_type n) {
    at_ += n;
    return *this;
  }
  Iterator& operator-=(difference_type n) { return *this += -n; }
  friend Iterator operator+(Iterator it, difference_type n) { return it += n; }
  friend Iterator operator+(difference_type n, Iterator it) { return it += n; }
  friend Iterator operator-(Iterator it, difference_type n) { return it -= n; }
  friend difference_type operator-(const Iterator& a, const Iterator& b) { return a.at_ - b.at_; }
  bool operator==(const Iterator& other) const { return at_ == other.at_; }
  std::strong_ordering operator<=>(const Iterator& other) const { return at_ <=> other.at_; }

 private:
  const Messages* messages_ = nullptr;
  difference_type at_ = 0;
};

inline Messages::Iterator Messages::begin() const { return {*this, 0}; }
inline Messages::Iterator Messages::end() const { return {*this, size()}; }
inline std::reverse_iterator<Messages::Iterator> Messages::rbegin() const { return std::reverse_iterator(end()); }
inline std::reverse_iterator<Messages::Iterator> Messages::rend() const { return std::reverse_iterator(begin()); }

// A lasting permission: calls of `tool_name` on the same terms, with exactly these arguments or covered by the pattern,
// need no further approval.
struct Grant {
  std::string tool_name;
  std::string arguments_digest;           // "sha256:" + 64 hex digits; empty: there is a pattern
  std::string terms_digest{};             // likewise; empty in files of version 0.1: it is listed, and covers no call
  std::string pattern{};                  // in the tool's language (Tool::MeaningOf); empty: one call's arguments
  std::string means{};                    // the pattern's sentence, as agreed to; empty: not stored then
  std::optional<Timestamp> expires_at{};  // nullopt: valid until revoked
  std::uint64_t uses = 0;                 // calls that ran because of it
  std::optional<Timestamp> used_at{};     // the last of them
  bool has_expired(Timestamp now) const { return expires_at && *expires_at <= now; }
  bool operator==(const Grant&) const = default;
};

// The summary that replaces older messages in requests, because not all would fit or a person asked for it. The
// messages themselves stay.
struct Compaction {
  std::uint64_t first = 0, end = 0;  // `summary` covers the messages [first, end)
  std::string summary{};
  bool requested = false;  // by a person: even if all would fit
  bool operator==(const Compaction&) const = default;
};

// A thing that a tool has named.
struct Entity {
  std::string type;    // "file", "page"
  std::string id;      // "src/main.cc", "page-123"
  std::string name{};  // for people; may be empty
  bool operator==(const Entity&) const = default;
};

// A request to a model, as one of a run's (RunRecord::requests).
struct RequestPlace {
  InteractionId interaction;
  std::uint64_t index = 0;  // in RunRecord::requests
  bool operator==(const RequestPlace&) const = default;
};

// A place in a body up to which the next request may repeat it, and the first 20 hexadecimal digits of the SHA-256
// digest of all before.
struct BodyMark {
  std::uint64_t bytes = 0;
  std::string digest{};
  bool operator==(const BodyMark&) const = default;
};

// What the next request may repeat of the body of a request.
struct RequestMarks {
  RequestPlace place;
  std::vector<BodyMark> heads{};   // ascending
  std::optional<BodyMark> tail{};  // its last `bytes`, and their digest
  std::uint32_t depth = 0;         // number of requests that it repeats, one by one
  bool has_files = false;          // it, or one of these, holds a file of the chat
  std::string modules{};           // a digest of its SentModules; empty: there are none
  bool operator==(const RequestMarks&) const = default;
};

// The state that an edit restores.
struct AgentState {
  Messages messages;
  std::vector<Grant> grants{};
  Agenda agenda{};
  std::optional<Compaction> compaction{};
  std::uint64_t cleared = 0;  // requests hold notes in place of long tool results before this message
  std::vector<StartedJob> jobs{};
  std::vector<Entity> memory{};           // a few entities that tools named lately, newest last
  std::optional<RequestMarks> request{};  // of the last request for a turn that is on record
  bool operator==(const AgentState&) const = default;
};

}  // namespace reprise
