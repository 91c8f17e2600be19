// Requests: framing, the gate, routes, bodies, queries. The bytes of a connection go in as from its socket.

#include <optional>

#include "api/requests.h"
#include "fuzz/driver.h"
#include "wire/gate.h"
#include "wire/message.h"
#include "wire/multipart.h"
#include "wire/request_parser.h"
#include "wire/request_values.h"
#include "wire/router.h"

namespace reprise::fuzz {
namespace {

Result<Outcome> Taken() { return Outcome(Reply{}); }

// The parsing that handlers do before they call the engine.
Router MakeRouter() {
  Router router;
  const auto add = [&router](std::string method, std::string_view path, auto parse, BodyKind kind = BodyKind::kJson) {
    router.Add(
        std::move(method), path,
        [parse](const Request& request) -> Result<Outcome> {
          for (const auto& capture : request.captures) {
            (void)ChatId::Parse(capture);
            (void)InteractionId::Parse(capture);
            (void)FileId::Parse(capture);
          }
          (void)EventCursor(request);
          (void)AuditCursor(request);
          (void)PageLimit(request, 10, 100);
          (void)request.Accepts("text/event-stream");
          parse(request);
          return Taken();
        },
        Lane::kControl, kind);
  };
  add("POST", "/chats/*/interactions", [](const Request& r) { (void)ParseStartBody(r.body); });
  add("POST", "/chats/*/interactions/*/edit", [](const Request& r) { (void)ParseEditBody(r.body); });
  add("POST", "/chats/*/interactions/*/regenerate", [](const Request& r) { (void)ParseRegenerateBody(r.body); });
  add("POST", "/chats/*/interactions/*/replay", [](const Request& r) { (void)ParseReplayBody(r.body); });
  add("POST", "/chats/*/interactions/*/approve",
      [](const Request& r) { (void)ParseApprovalBody(r.body, std::nullopt); });
  add("POST", "/approvals/*", [](const Request& r) { (void)ParseApprovalBody(r.body, r.captures.at(0)); });
  add("POST", "/chats/*/interactions/*/respond", [](const Request& r) { (void)ParseRespondBody(r.body); });
  add("PATCH", "/chats/*/tasks", [](const Request& r) { (void)ParseAgendaBody(r.body); });
  add("POST", "/chats", [](const Request& r) { (void)ParseCreateChatBody(r.body); });
  add("PATCH", "/chats/*", [](const Request& r) { (void)ParseChatSettings(r.body); });
  add("POST", "/chats/*/head", [](const Request& r) { (void)ParseHeadBody(r.body); });
  add("PATCH", "/chats/*/queue/*", [](const Request& r) { (void)ParseQueuedBody(r.body); });
  add("POST", "/chats/*/fork", [](const Request& r) { (void)ParseForkBody(r.body); });
  add("POST", "/chats/*/undo", [](const Request& r) { (void)ParseEmptyBody(r.body); });
  add(
      "POST", "/chats/*/files",
      [](const Request& r) {
        if (const auto upload = ReadUpload(r)) {
          const std::string header = AttachmentDisposition(upload->filename);
          Expect(header.find_first_of("\r\n") == std::string::npos, "a file's name ends a header");
          Expect(upload->content.size() <= r.body.size(), "an upload is larger than its body");
        }
      },
      BodyKind::kFile);
  add(
      "POST", "/audio/transcriptions",
      [](const Request& r) {
        if (const auto form = ReadForm(r, {"model", "language", "prompt"})) {
          Expect(form->file.content.size() <= r.body.size() && form->fields.size() <= 3,
                 "a form is larger than its body");
        }
      },
      BodyKind::kAudio);
  add("POST", "/audio/speech", [](const Request& r) { (void)ParseSpeechBody(r.body); });
  add("GET", "/chats/*/files/*", [](const Request& r) {
    const Reply reply = InRange(r, Reply{.body = "0123456789"}, "\"tag\"");
    Expect(reply.status != 206 || (!reply.body.empty() && reply.body.size() <= 10), "a part that is none");
  });
  add("GET", "/chats", [](const Request&) {});
  return router;
}

struct Seen {
  std::vector<std::string> requests;  // dispatched requests, in order
  bool refused = false;               // the connection then ended
  bool operator==(const Seen&) const = default;
};

// Reads requests as wire/connection does.
class Reader {
 public:
  Reader(const Gate& gate, const Router& router) : gate_(gate), router_(router) {}

  // False if nothing more is to be read.
  bool Take(std::string_view bytes) {
    in_.Append(bytes);
    while (!seen_.refused) {
      if (parser_ ? !ContinueBody() : !ContinueHead()) return !seen_.refused;
    }
    return false;
  }
  const Seen& seen() const { return seen_; }

 private:
  bool Refuse() {
    seen_.refused = true;
    return false;
  }
  bool ContinueHead() {
    const HeadScan scan = ScanHead(in_.view(), scanned_, limits_);
    scanned_ = in_.size();
    if (scan.refusal) return Refuse();
    if (!scan.end) return false;
    Expect(*scan.end <= limits_.head_bytes && *scan.end <= in_.size(), "a head beyond its limit");
    parser_ = std::make_unique<RequestParser>(limits_);
    const auto malformed = parser_->TakeHead(in_.view().substr(0, *scan.end));
    in_.Consume(*scan.end);
    scanned_ = 0;
    if (malformed) return Refuse();
    const RequestHead& head = parser_->head();
    Expect(head.headers.size() <= limits_.headers && head.target.size() <= limits_.target_bytes, "limits of a head");
    const auto foreign = gate_.Check(head, Peer::kTrusted);
    match_ = router_.Find(head.method, head.target);
    if (foreign || match_.refusal) {
      if (parser_->has_body()) return Refuse();
      parser_.reset();
      return true;
    }
    if (match_.route->body == BodyKind::kFile) parser_->LimitBody(limits_.file_bytes);
    if (match_.route->body == BodyKind::kChat) parser_->LimitBody(limits_.chat_bytes);
    return true;
  }
  bool ContinueBody() {
    auto [used, refusal] = parser_->TakeBody(in_.view());
    Expect(used <= in_.size(), "more of a body than there is");
    in_.Consume(used);
    if (refusal) return Refuse();
    if (!parser_->done()) return false;
    Request request{
        .head = parser_->ReleaseHead(), .captures = std::move(match_.captures), .body = parser_->ReleaseBody()};
    Expect(request.body.size() <= limits_.file_bytes, "a body beyond its limit");
    seen_.requests.push_back(request.head.method + " " + request.head.target + " " + request.body);
    (void)match_.route->handler(request);
    parser_.reset();
    return true;
  }

  const Gate& gate_;
  const Router& router_;
  const HttpLimits limits_;
  InputBuffer in_;
  std::size_t scanned_ = 0;
  std::unique_ptr<RequestParser> parser_;
  Router::Match match_;
  Seen seen_;
};

void Run(std::string_view input) {
  static const Gate gate({.port = 8000, .public_hosts = {{.host = "chat.example"}, {.host = "a", .port = 9}}});
  static const Router router = MakeRouter();
  Reader whole(gate, router), cut(gate, router);
  whole.Take(input);
  for (Cutter pieces(input); !pieces.done();) {
    if (!cut.Take(pieces.Next())) break;
  }
  // However the network cuts the bytes, two readers must find the same requests.
  Expect(whole.seen().requests == cut.seen().requests, "the same bytes are read as different requests");
}

std::string Ask(const std::string& line, const std::string& body, const std::string& type = "application/json") {
  return line + " HTTP/1.1\r\nHost: localhost:8000\r\nContent-Type: " + type +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

Target MakeTarget() {
  Target target{.name = "http", .seeds = {}, .words = {}, .run = Run};
  target.seeds = {
      Ask("POST /chats/c/interactions",
          R"({"user_message":"hello \ud83d\ude42","model":"offline","stream":false,"on_disconnect":"continue","if_running":"queue","attachments":["file_0123456789abcdef0123456789abcdef"]})"),
      Ask("POST /chats/c/interactions/int_001/edit", R"({"new_user_message":"x","dry_run":true})"),
      Ask("POST /chats/c/interactions/int_001/regenerate", "{}"),
      Ask("POST /chats/c/interactions/int_001/replay", R"({"mode":"events","speed":1.5})"),
      Ask("POST /chats/c/interactions/int_001/approve",
          R"({"approval_id":"approval_0123456789abcdef0123456789abcdef","approved":true,"arguments":{"a":[1,2.5e3,null]},"feedback":"no","scope":"chat","arguments_digest":"sha256:00"})"),
      Ask("POST /approvals/a%62c", R"({"approved":false,"arguments":"{\"a\":1}"})"),
      Ask("POST /chats/c/interactions/int_001/respond", R"({"request_id":"r","response":{"a":"b"}})"),
      Ask("PATCH /chats/c/tasks", R"({"tasks":[{"id":"1","title":"t","status":"doing"}],"plan":["a","b"]})"),
      Ask("POST /chats", R"({"id":"c","title":"T"})") + Ask("POST /chats/c/undo", "") +
          "GET /chats?limit=5&cursor=a%20b HTTP/1.1\r\nHost: chat.example\r\nOrigin: https://chat.example\r\n\r\n",
      Ask("POST /chats/c/head", R"({"interaction_id":"int_002"})"),
      Ask("POST /chats/c/fork", R"({"interaction_id":"int_002","chat_id":"d","title":"t"})"),
      Ask("POST /chats/c/files?name=a+b.txt",
          "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\\\"b\"; filename*=UTF-8''%e2%82%ac\r\n"
          "Content-Type: text/plain\r\n\r\nhello\r\n--b--\r\n",
          "multipart/form-data; boundary=b"),
      "GET /chats/c/files/file_0123456789abcdef0123456789abcdef HTTP/1.1\r\nHost: [::1]:8000\r\nRange: bytes=2-5\r\n"
      "If-Range: \"tag\"\r\nAccept: text/event-stream;q=0.5, */*\r\nLast-Event-ID: 7\r\n\r\n",
      "POST /chats HTTP/1.1\r\nHost: localhost:8000\r\nTransfer-Encoding: chunked\r\n"
      "Content-Type: application/json\r\n\r\n5\r\n{\"id\"\r\nA\r\n:\"abcdefg\"\r\n1\r\n}\r\n0\r\n\r\n"
      "GET /chats HTTP/1.0\r\nHost: a:9\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  };
  target.words = {"\r\n",
                  "\n",
                  "\r",
                  "\r\n\r\n",
                  std::string(1, char{}),
                  "Content-Length: ",
                  "Transfer-Encoding: chunked\r\n",
                  "0\r\n\r\n",
                  "ffffffffffffffff\r\n",
                  "Host: localhost:8000\r\n",
                  "Origin: null\r\n",
                  "HTTP/1.1",
                  "HTTP/1.0",
                  "%00",
                  "%2F",
                  "?limit=",
                  "&after_seq=",
                  "{",
                  "}",
                  "[",
                  "]",
                  "\"",
                  "\\u0000",
                  "\\ud800",
                  "null",
                  "true",
                  ";",
                  "--b",
                  "--b--",
                  "bytes=-",
                  "boundary=",
                  "\xff",
                  "\xc3",
                  "filename=\"",
                  "GET /chats HTTP/1.1\r\n"};
  return target;
}

}  // namespace
}  // namespace reprise::fuzz

int main(int argc, char** argv) { return reprise::fuzz::Main(argc, argv, reprise::fuzz::MakeTarget()); }
