#include "model/realtime/realtime_client.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/text.h"
#include "model/provider_response.h"
#include "model/realtime/realtime_request.h"
#include "model/realtime/realtime_response.h"
#include "model/request_parts.h"

namespace reprise {
namespace {

// A session may last an hour; a turn that takes longer than this speaks in circles.
constexpr std::chrono::minutes kLongestTurn{15};

// Reads each message of the socket as an event of a stream, so that all streams are judged alike.
class MessageReader final : public ResponseReader {
 public:
  using ResponseReader::ResponseReader;
  void OnHead(int status, const HttpHeaders& headers) override {
    is_open_ = status == 200;
    ResponseReader::OnHead(status, headers);
  }
  bool OnData(std::string_view message) override {
    if (!is_open_) return ResponseReader::OnData(message);
    std::string event = "data: " + std::string(message);
    std::ranges::replace(event, '\n', ' ');
    std::ranges::replace(event, '\r', ' ');
    return ResponseReader::OnData(event += "\n\n");
  }

 private:
  bool is_open_ = false;
};

}  // namespace

void RealtimeClient::Generate(const ModelRequest& asked, ModelStream& stream, std::stop_token stop, Done done) {
  const auto mended = MendHistory(asked.messages, {.unique_call_ids = true});
  const ToolLessons::Tools told = tools()->TakenBy(asked.model, asked.tools);
  const ModelRequest request = WithHistoryAndTools(asked, mended ? *mended : asked.messages, *told);
  RealtimeRequest built = BuildRealtimeRequest(request, FactsOf(request.model, request.effort), voice_);
  if (ShowsDraft(asked, built.body, done)) return;
  HttpRequest http = MakeHttpRequest("/realtime?model=" + PercentEncoded(request.model));
  if (!request.traceparent.empty()) http.headers.emplace_back("traceparent", request.traceparent);
  AddHeaders(http, options().additions);
  http.messages = std::move(built.messages);
  http.total_timeout = kLongestTurn;
  const ProviderResponse::Source source{options().api_key, options().provider, request.max_response_bytes,
                                        request.used_call_ids};
  auto reader = std::make_shared<MessageReader>(std::make_unique<RealtimeResponse>(stream, source), options().api_key,
                                                options().idle_timeout);
  auto learns = [tools = tools(), told, model = request.model](const Error& error) {
    return tools->Learn(model, *told, error);
  };
  SendModelRequest(transport(), std::move(http), std::move(reader), std::move(stop), std::move(learns),
                   std::move(done));
}

}  // namespace reprise
