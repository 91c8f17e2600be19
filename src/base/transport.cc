#include "reprise/transport.h"

#include <future>

namespace reprise {

Result<void> Transport::Perform(HttpRequest request, HttpResponseHandler& handler, std::stop_token stop) {
  std::promise<Result<void>> result;
  Send(std::move(request), handler, std::move(stop), [&result](Result<void> ended) { result.set_value(std::move(ended)); });
  return result.get_future().get();
}

}  // namespace reprise
