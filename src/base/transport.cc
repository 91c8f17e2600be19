#include "reprise/transport.h"

#include <future>
#include <memory>

namespace reprise {

Result<void> Transport::Perform(HttpRequest request, HttpResponseHandler& handler, std::stop_token stop) {
  // Shared: this may return, woken by set_value, before set_value does.
  const auto result = std::make_shared<std::promise<Result<void>>>();
  Send(std::move(request), handler, std::move(stop),
       [result](Result<void> ended) { result->set_value(std::move(ended)); });
  return result->get_future().get();
}

}  // namespace reprise
