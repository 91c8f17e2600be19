#include "base/local_signals.h"

#include <algorithm>
#include <utility>

namespace reprise {

struct Subscribers::One {
  explicit One(Signals::Heard given) : heard(std::move(given)) {}
  Mutex mutex;
  Signals::Heard heard GUARDED_BY(mutex);  // null after it has unsubscribed
};

std::shared_ptr<void> Subscribers::Add(const std::string& topic, Signals::Heard heard) {
  const auto one = std::make_shared<One>(std::move(heard));
  {
    const MutexLock lock(table_->mutex);
    table_->all.emplace(topic, one);
  }
  return std::shared_ptr<void>(nullptr, [one, table = table_](void*) {
    {
      const MutexLock lock(table->mutex);
      std::erase_if(table->all, [&](const auto& each) { return each.second == one; });
    }
    const MutexLock lock(one->mutex);
    one->heard = nullptr;
  });
}

void Subscribers::Tell(std::string_view topic, std::string_view payload) const {
  std::vector<std::shared_ptr<One>> those;
  {
    const MutexLock lock(table_->mutex);
    const auto [begin, end] = table_->all.equal_range(topic);
    std::transform(begin, end, std::back_inserter(those), [](const auto& each) { return each.second; });
  }
  Call(those, payload);
}

void Subscribers::TellAll() const {
  std::vector<std::shared_ptr<One>> those;
  {
    const MutexLock lock(table_->mutex);
    for (const auto& [topic, one] : table_->all) those.push_back(one);
  }
  Call(those, {});
}

void Subscribers::Call(const std::vector<std::shared_ptr<One>>& those, std::string_view payload) {
  for (const auto& one : those) {
    const MutexLock lock(one->mutex);
    if (one->heard) one->heard(payload);
  }
}

}  // namespace reprise
