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

// One client's connection: reads a request, has it checked and answered, then reads the next. All of this happens on
// the loop's thread; handlers run on workers and return their outcome to it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = EventStream::Clock;

  // Shared by all connections; outlives them.
  struct Shared {
    const HttpOptions& options;
    const Gate& gate;
    Site& site;
    IoLoop& loop;
    WorkerPool& work;
    WorkerPool& control;
    WorkerPool& remote;
    WorkerPool& files;                       // or the same pool as `work`
    std::atomic<std::size_t>& upload_bytes;  // of the large bodies that are held in memory
    HttpMetrics& metrics;
    const std::atomic<bool>& stopping;
    std::function<void(Connection*)> closed;  // called once, when the connection has ended
    // One buffer for all connections, used on the loop's thread only, because connections copy what they keep. (Not
    // thread_local, which would take space on the stack of every thread of the process.)
    std::vector<char> read_buffer = std::vector<char>(64 * 1024);
  };

  Connection(Shared& shared, int fd, Peer peer);
  ~Connection();

  void Begin();
  // Answers 503 without reading a request, and ends.
  void Refuse();
  // Makes the current request the last one. Ends at once if there is none.
  void BeginStop();
  // Ends the connection if it is still reading a request.
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

  // Writes the log line of the current request, which has ended.
  void LogRequest();

  void Linger();
  void DropSubscription();
  void RunHandler(WorkerPool& workers, std::function<Result<Outcome>()> handler, Lane lane = Lane::kWork);
  // The name of the line in which the pools queue this person's work.
  std::string Whose(Lane lane = Lane::kWork) const;
  // False if the token has expired or was revoked since. A long answer and a slow body end with the token.
  bool IsStillWelcome();
  void EndUnwelcome();

  Shared& shared_;
  IoLoop::Socket socket_;
  const Peer peer_;
  // The tenant's routes that answer the current request. Declared before what comes from them, which is destroyed
  // first.
  std::shared_ptr<std::shared_ptr<const Router>> tenant_;

  State state_ = State::kHead;
  // What the log will say about the current request. Both names are constants or belong to the router.
  struct Account {
    std::string_view method = "-", route = "-";  // "-": refused before it was known
    std::string id = NewRequestId();
    Clock::time_point begun = Clock::now();  // the head was complete
    int status = 0;                          // 0: not answered yet
    std::uint64_t bytes = 0;                 // of the answer, taken by the kernel
    bool complete = false;                   // `bytes` are the whole answer
  };
  static std::string NewRequestId();
  std::optional<Account> account_;  // nullopt: no request is open

  bool reading_ = false;    // a wait for input is pending
  bool idle_ = false;       // between requests; nothing of the next has arrived
  bool end_after_ = false;  // this response is the connection's last
  bool head_only_ = false;  // the method is HEAD
  int version_ = 11;
  ErrorForm error_form_ = nullptr;  // of the request's route
  InputBuffer in_;
  std::size_t scanned_ = 0;  // bytes of in_ already searched for the end of the head
  int blank_lines_ = 0;      // before the request
  std::optional<Clock::time_point> deadline_;
  std::size_t lingered_ = 0;

  std::unique_ptr<RequestParser> parser_;
  std::shared_ptr<void> upload_;  // this request's share of upload_bytes
  Router::Match match_;
  Principal principal_;
  RequestHead credentials_;  // the access token's header, to check it again
  bool asking_again_ = false;
  std::optional<Principal> about_;  // the user whose data an org admin asks for

  std::string out_;
  std::size_t out_sent_ = 0;
  std::uint64_t sent_before_ = 0;  // bytes of this answer sent before those in out_
  // Makes the piece that follows out_; null: none does.
  std::function<Result<std::optional<std::string>>()> next_piece_;

  std::shared_ptr<void> hold_;  // of the StreamReply or DeferredReply
  std::shared_ptr<EventStream> stream_;
  std::shared_ptr<CompletionWait> wait_;
};

}  // namespace reprise
