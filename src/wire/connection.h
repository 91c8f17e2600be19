#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/event_stream.h"
#include "wire/gate.h"
#include "wire/message.h"
#include "wire/request_parser.h"
#include "wire/server.h"
#include "wire/threads.h"

namespace reprise {

// One client's connection: reads a request, has it checked and answered, and goes on with the next. Everything happens
// on the loop's thread; handlers run on workers and come back with their outcome.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = EventStream::Clock;

  // What all connections share; outlives them.
  struct Shared {
    const HttpOptions& options;
    const Gate& gate;
    Site& site;
    IoLoop& loop;
    WorkerPool& work;
    WorkerPool& control;
    WorkerPool& remote;
    WorkerPool& files;                       // or that for work
    std::atomic<std::size_t>& upload_bytes;  // of all files and chats that are held in memory
    HttpMetrics& metrics;
    const std::atomic<bool>& stopping;
    std::function<void(Connection*)> closed;  // told once, when the connection has ended
    // One for all connections, which hold only what they keep; used on the loop's thread. (Not thread_local: that would
    // stand in the stack of every thread of the process.)
    std::vector<char> read_buffer = std::vector<char>(64 * 1024);
  };

  Connection(Shared& shared, int fd, Peer peer);
  ~Connection();

  void Begin();
  // Answers 503 whatever is asked, and ends.
  void Refuse();
  // This request is the last; ends at once if none is under way.
  void BeginStop();
  // Ends unless a request is being answered.
  void EndIfReading();
  void Close();
  void OnTick(Clock::time_point now);

 private:
  enum class State { kHead, kIdentifying, kBody, kHandling, kWriting, kStreaming, kWaiting, kLingering, kClosed };

  // Reading.
  void WantRead();
  void OnReadable();
  void OnBytes(std::string_view bytes);
  void OnEndOfInput();
  bool SkipBlankLines();
  void ContinueHead();
  void OnHead(std::size_t size);
  void OnIdentified(Result<Principal> principal);
  std::optional<Reply> CheckRequest(const RequestHead& head);
  void RefuseRequest(Reply refusal);
  std::optional<Reply> CheckAccess(const RequestHead& head);
  std::optional<Reply> CheckBodyHeaders(const RequestHead& head);
  std::optional<Reply> TakeUploadShare(std::size_t most);
  void SendContinue();
  void ContinueBody();
  void NextRequest();

  // Answering.
  void Dispatch();
  void OnOutcome(Outcome outcome);
  void Send(Reply reply);
  void SendAndEnd(Reply reply);
  void Write();
  void OnWritten();
  void StartStream(StreamReply reply);
  void StartWait(DeferredReply reply);
  void StartPieces(PiecewiseReply reply);
  void MakePiece();
  void OnPiece(Result<std::optional<std::string>> piece);
  void OnStreamFinished();
  void OnClientGone();

  // The request under way is over: its line in the log.
  void LogRequest();

  void Linger();
  void DropSubscription();
  void RunHandler(WorkerPool& workers, std::function<Result<Outcome>()> handler, Lane lane = Lane::kWork);
  // Whose line in the pools the request's work waits in.
  std::string Whose(Lane lane = Lane::kWork) const;
  // Who was let in may be so no longer: an answer that takes long, and a body that comes slowly, end with the token.
  bool IsStillWelcome();
  void EndUnwelcome();

  Shared& shared_;
  IoLoop::Socket socket_;
  const Peer peer_;
  // The tenant's routes that answer the request under way; before all that came from them, which goes first.
  std::shared_ptr<std::shared_ptr<const Router>> tenant_;

  State state_ = State::kHead;
  // What the log will say of the request under way. Both names are constants, or the router's.
  struct Account {
    std::string_view method = "-", route = "-";  // "-": it was refused before they were known
    std::string id = NewRequestId();
    Clock::time_point begun = Clock::now();  // its head had come
    int status = 0;                          // 0: there is no answer yet
    std::uint64_t bytes = 0;                 // of the answer, that the kernel has taken
    bool complete = false;                   // and these are all
  };
  static std::string NewRequestId();
  std::optional<Account> account_;  // nullopt: there is no request

  bool reading_ = false;    // a read wait is outstanding
  bool idle_ = false;       // between requests, nothing of the next has come
  bool end_after_ = false;  // this response is the connection's last
  bool head_only_ = false;  // HEAD
  int version_ = 11;
  ErrorForm error_form_ = nullptr;  // of the route that the request is for
  InputBuffer in_;
  std::size_t scanned_ = 0;  // of in_, for the end of the head
  int blank_lines_ = 0;      // before the request
  std::optional<Clock::time_point> deadline_;
  std::size_t lingered_ = 0;

  std::unique_ptr<RequestParser> parser_;
  std::shared_ptr<void> upload_;  // its share of upload_bytes, of a file or a chat
  Router::Match match_;
  Principal principal_;
  RequestHead credentials_;  // of who showed an access token, to be asked again
  bool asking_again_ = false;
  std::optional<Principal> about_;  // whose it is that an org admin asks for

  std::string out_;
  std::size_t out_sent_ = 0;
  std::uint64_t sent_before_ = 0;  // of this answer, before what is in out_
  // Makes what is to follow out_; null: nothing does.
  std::function<Result<std::optional<std::string>>()> next_piece_;

  std::shared_ptr<void> hold_;  // of a stream, or of what is waited for
  std::shared_ptr<EventStream> stream_;
  std::shared_ptr<CompletionWait> wait_;
};

}  // namespace reprise
