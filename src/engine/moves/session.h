#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/moves/source_text.h"
#include "reprise/event.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

// Sessions of other tools, in one form for all of them.
namespace reprise {

struct MovedFile {
  std::string filename, mime_type, content;
};

// A part of an answer, in the model's order.
struct MovedBlock {
  enum class Kind { kText, kThinking, kCall };
  Kind kind = Kind::kText;
  std::string text{};      // of a call: its arguments, JSON
  std::string id{};        // of a call
  std::string name{};      // of a call
  std::string verbatim{};  // of thinking: the block that Anthropic wants back, with its signature; empty: none
};

// A step of a session.
struct MovedMessage {
  enum class Kind {
    kPrompt,   // a person's message: `text`, `files`
    kAnswer,   // a model's, or a piece of one: `blocks`, `usage`, `model`
    kResult,   // of the call `call_id`: `text`, `files`, `is_error`
    kSummary,  // `text` replaces all messages before it
    kUsage,    // of the answer before it
    kModel,    // `model` answers from here on
    kStopped,  // by a person
    kFailed,   // with the error `text`, where it comes from
  };
  Kind kind = Kind::kPrompt;
  std::string id{};      // in the source; empty: nothing refers to it
  std::string parent{};  // the message that it continues; empty: the one before it
  bool is_root = false;  // a prompt that continues nothing
  std::string group{};   // an answer in pieces: they share this name. Empty: a piece continues the piece before it
  std::string nested{};  // the call whose sub-agent took this step; empty: none
  std::optional<Timestamp> at{};
  std::string text{};
  std::vector<MovedFile> files{};
  std::vector<MovedBlock> blocks{};
  std::string call_id{};
  bool is_error = false;
  std::string model{};
  TokenUsage usage{};
  std::int64_t tokens_before = 0;  // of kSummary: of the request; 0: unknown
};

// Of what they say and hold.
std::size_t BytesOf(std::span<const MovedMessage> steps);

// Counts what an import leaves out, by its name in the singular.
class LeftOut {
 public:
  void Add(const std::string& what, std::size_t count = 1);
  void Add(const LeftOut& other);
  // A thing of the source ("line", "message") of a type that no reader knows; empty: it names none.
  void AddUnknown(const std::string& thing, std::string_view type);
  // Counts nothing more: what is read again was counted.
  void Close() { is_closed_ = true; }
  // "3 attachments were left out"
  std::vector<std::string> Notes() const;

 private:
  std::map<std::string, std::size_t> counts_;
  bool is_closed_ = false;
};

// The first few, in one line.
std::string FirstOf(const std::vector<std::string>& names);
// Counts things with their names, of which the notes show the first ones.
void AddNamed(LeftOut& left_out, const std::string& what, const std::vector<std::string>& names);

struct SessionFacts {
  std::string id{};      // the tool's name for the session
  std::string title{};   // empty: the first message says it
  std::string folder{};  // that its agent worked in; empty: unknown
  std::string head{};    // MovedMessage::id of the step that it ends at; empty: the last one
  std::string first{};   // the beginning of the first message, for lists
  std::string circle{};  // messages that continue each other, if that is why none begins the session
  std::optional<Timestamp> created{}, updated{};
};

// A session to read. Not thread-safe.
class MovedSession {
 public:
  virtual ~MovedSession() = default;
  // Complete after every record was read once, in order.
  const SessionFacts& facts() const { return facts_; }
  virtual std::size_t records() const = 0;
  // The steps of a record; always the same once all were read in order. kInvalidArgument (reason "invalid_document") if
  // it is unusable; the message names file and line. kIo.
  virtual Result<std::vector<MovedMessage>> Read(std::size_t record) = 0;
  // What the first reading found no place for.
  LeftOut& left_out() { return left_out_; }

 protected:
  SessionFacts facts_;
  LeftOut left_out_;
};

// Reads the records of a format one by one. `Take` may keep what later records need.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  virtual std::vector<MovedMessage> Take(const Json& line) = 0;

  std::size_t record = 0;  // the number of the line that Take gets: lines are read again, in any order
  SessionFacts facts;
  LeftOut left_out;
  std::optional<Error> failed;  // why what it takes from elsewhere cannot be read
};

// What a session consists of. None of it stays in memory: `load` reads one again.
struct Records {
  std::size_t count = 0;
  std::function<Result<Json>(std::size_t record)> load{};
};
std::unique_ptr<MovedSession> OpenRecords(Records records, std::unique_ptr<RecordReader> reader);
// The JSON of a line. kInvalidArgument (reason "invalid_document"), kIo.
Result<Json> LoadJson(const SourceText& source, const SourcePlace& place);

// "SOURCE, line 7", for messages.
std::string PlaceIn(const SourceText& source, const SourcePlace& place, std::string_view unit = "line");
// A session of one record for each line. kInvalidArgument (reason "invalid_document") if any but the last line is not
// JSON: a session that goes on may be cut off there, which is noted.
Result<std::unique_ptr<MovedSession>> OpenLines(SourceText source, std::unique_ptr<RecordReader> reader);
// Only its facts, from its beginning.
Result<SessionFacts> PeekAtLines(const SourceText& source, RecordReader& reader);

// Parses JSON of another program: of several equal members the last counts, and what MendJson can mend is mended.
Result<Json> ParseForeignJson(std::string_view text, const std::string& where);
// A whole file of JSON. kInvalidArgument (reason "invalid_document") if it is none, or too large; kIo.
Result<Json> ReadForeignJson(const SourceText& source);
Result<Json> ReadForeignJson(const std::string& path);
// A time as programs write it: ISO 8601, or seconds or milliseconds since 1970. nullopt: none.
std::optional<Timestamp> TimeIn(const Json& value);
// A member's array; an empty one if it is none.
const Json& ListIn(const Json& object, std::string_view name);
std::int64_t CountIn(const Json& object, std::string_view name);
// `uncached`: input that was neither read from the cache nor written into it.
TokenUsage UsageOf(std::int64_t uncached, std::int64_t output, std::int64_t cache_read, std::int64_t cache_write);
// JSON text of the arguments of a call, which may be text already; "{}" for null.
std::string ArgumentsIn(const Json& value);
// A part of a message that is a file in base64 joins `files`; one that cannot be read is counted.
void AddBase64(std::string_view data, std::string mime_type, std::vector<MovedFile>& files, LeftOut& left_out);
// The file in "data:TYPE;base64,...". nullopt if it is none.
std::optional<MovedFile> FileInDataUrl(std::string_view url);
// Adds the text on a line of its own, unless it is empty.
void AddLine(std::string& to, const std::string& text);
// The beginning of a text on one line, for lists.
std::string FirstWords(std::string_view text);

// Calls that wait for their results, where a source does not name the call of each.
class OpenCalls {
 public:
  struct Call {
    std::string id, name;
    std::string given_id{};  // in the source; empty: none
  };
  void Add(Call call) { calls_.push_back(std::move(call)); }
  // The id of the call that the result is of: the one of that id, else the first of that name, else, if the result has
  // no name, the first. Empty: none. It waits no more.
  std::string Take(std::string_view given_id, std::string_view name);

 private:
  std::vector<Call> calls_;
};

// Content blocks in the form of Anthropic's Messages API, in which several tools store messages. Text, thinking and
// calls become an answer's blocks. In a person's message the text and files stay, and each result becomes a step of its
// own before it.
struct AnthropicContent {
  std::vector<MovedMessage> results{};
  MovedMessage message{};
};
AnthropicContent ReadAnthropicContent(const Json& content, LeftOut& left_out);
TokenUsage AnthropicUsage(const Json& usage);
// The text of a result's content, which is a text or a list of blocks; images and other files join `files`.
std::string ResultText(const Json& content, std::vector<MovedFile>& files, LeftOut& left_out);

}  // namespace reprise
