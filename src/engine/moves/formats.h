#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/moves/databases.h"
#include "engine/moves/moved_turns.h"
#include "engine/moves/outline.h"
#include "engine/moves/session.h"
#include "reprise/result.h"

namespace reprise {

// How a tool stores its sessions (docs/moves.md).
struct MoveFormat {
  enum class Shape {
    kLines,     // a session in a file of JSON lines
    kElements,  // a session in each element of an array, or one alone
    kWhole,     // a session in a file of JSON
    kTables,    // all sessions in a SQLite database
  };
  std::string_view name;  // "claude-code"
  std::string_view tool;  // "Claude Code"
  Shape shape;
  // Whether a session of the tool has this line among its first ones; for kWhole and kElements, whether this is one,
  // of whose lists (DocumentLists) no more than the first element is there. Null for kTables.
  bool (*fits)(const Json& json) = nullptr;
  // `path` is the source's, for the files beside it; empty if there are none.
  std::unique_ptr<RecordReader> (*reader)(const std::string& path) = nullptr;  // of kLines
  // Of kElements and kWhole.
  Result<std::unique_ptr<MovedSession>> (*document)(MovedDocument document, const std::string& path) = nullptr;
  std::string_view table{};  // of kTables: one that only this tool has
  Result<void> (*stored)(const std::shared_ptr<const SqliteFile>& file,
                         const VisitStored& visit) = nullptr;  // of kTables
  // Of kLines, if later lines change what earlier ones say. Null: OpenLines, with `reader`.
  Result<std::unique_ptr<MovedSession>> (*open)(const SourceText& source) = nullptr;
  // Of kLines: the files that belong to the session, too. Null: none.
  Result<std::vector<std::string>> (*beside)(const SourceText& source, const std::string& path) = nullptr;
};

// The names of all formats, each once.
std::vector<std::string> MoveFormatNames();

// A session that was found in a source.
struct FoundSession {
  const MoveFormat* format;
  std::string source;   // its name
  std::uint64_t bytes;  // that it takes there
  SessionFacts facts;
  // A digest of what the session holds now.
  std::function<Result<std::string>()> digest{};
  // To be called once. The failures of MovedTurns::Plan.
  std::function<Result<std::shared_ptr<MovedTurns>>()> plan{};
};

// Whether it is an archive, or compressed, so that what is in it must be unpacked first. kIo.
Result<bool> IsPacked(const SourceText& source);
// Whether any format fits the source. `only` is the name of one; empty: all. Null: none. The failures of reading.
Result<const MoveFormat*> RecognizeFormat(const SourceText& source, std::string_view only);
// The sessions in a source, one by one, until `visit` fails. `path` as in MoveFormat. `failed` gets why one session of
// several cannot be read, and the others go on; without it that ends the reading.
Result<void> ForEachSession(const SourceText& source, const MoveFormat& format, const std::string& path,
                            const std::function<Result<void>(FoundSession)>& visit,
                            const std::function<void(Error)>& failed = {});

// The name of the chat that the session becomes: made of the tool, the session and its content, so that the same
// content has the same name. `digest` is FoundSession::digest's.
std::string NameOfMoved(const FoundSession& session, const std::string& digest);

// That a document is none of the tool: kInvalidArgument (reason "invalid_document").
tl::unexpected<Error> NoSessionOf(std::string_view tool, const SourceText& source);

// The readers; a file for each tool.
std::unique_ptr<RecordReader> ReadClaudeCode(const std::string& path);
// By the sub-agents that the lines name.
Result<std::vector<std::string>> FilesOfSubAgents(const SourceText& source, const std::string& path);
std::unique_ptr<RecordReader> ReadCodex(const std::string& path);
std::unique_ptr<RecordReader> ReadGoose(const std::string& path);
std::unique_ptr<RecordReader> ReadGeminiLines(const std::string& path);
Result<std::unique_ptr<MovedSession>> OpenGeminiLog(const SourceText& source);
// All but its messages; "sub_agents" names the sessions below it.
std::unique_ptr<RecordReader> ReadGooseExport(const Json& session);
// The messages of sub-agents of opencode.
struct OpenCodeSubAgents {
  std::vector<std::string> known{};  // their sessions, of which those that no call names are counted
  // Those of a session; nullopt: they are not there. Null: none are.
  std::function<std::optional<Records>(const std::string& session)> find{};
};
std::unique_ptr<RecordReader> ReadOpenCode(const Json& info, std::size_t records, OpenCodeSubAgents sub_agents);
using OpenedDocument = Result<std::unique_ptr<MovedSession>>;
OpenedDocument OpenGooseExport(MovedDocument document, const std::string& path);
OpenedDocument OpenGemini(MovedDocument document, const std::string& path);
OpenedDocument OpenGeminiCheckpoint(MovedDocument document, const std::string& path);
OpenedDocument OpenOpenCode(MovedDocument document, const std::string& path);
bool IsClineMessage(const Json& json);
OpenedDocument OpenCline(MovedDocument document, const std::string& path);
OpenedDocument OpenChatGpt(MovedDocument document, const std::string& path);
OpenedDocument OpenClaudeExport(MovedDocument document, const std::string& path);
OpenedDocument OpenOpenWebUi(MovedDocument document, const std::string& path);
OpenedDocument OpenLibreChat(MovedDocument document, const std::string& path);
OpenedDocument OpenAtif(MovedDocument document, const std::string& path);

}  // namespace reprise
