#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/object_store.h"

namespace reprise {

// A bucket in memory that tests can inspect and break. Thread-safe, except for its setup.
class MemoryObjectStore final : public ObjectStore {
 public:
  struct Object {
    std::string content;
    Timestamp changed_at;
  };

  Result<void> Put(const std::string& key, const std::string& content) override {
    if (Fails("PUT", key)) return Gone();
    const std::lock_guard lock(mutex_);
    objects_[key] = {content, Now()};
    return lost_reply_ && lost_reply_(key) ? Gone() : Result<void>();
  }
  Result<std::string> Get(const std::string& key) override {
    if (Fails("GET", key)) return Fail(Gone().error());
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(key);
    if (found == objects_.end()) return Fail(ErrorCode::kNotFound, "there is no such object");
    return found->second.content;
  }
  Result<void> Delete(const std::string& key) override {
    if (Fails("DELETE", key)) return Fail(Gone().error());
    const std::lock_guard lock(mutex_);
    objects_.erase(key);
    return {};
  }
  // Lists two at a time, so that callers must ask again.
  Result<ObjectPage> List(const std::string& prefix, const std::string& after) override {
    if (Fails("LIST", prefix)) return Fail(Gone().error());
    const std::lock_guard lock(mutex_);
    ObjectPage page;
    for (auto at = objects_.upper_bound(std::max(prefix, after)); at != objects_.end(); ++at) {
      if (!at->first.starts_with(prefix)) break;
      if ((page.has_more = page.objects.size() == 2)) break;
      page.objects.push_back({at->first, at->second.changed_at, at->second.content.size()});
    }
    return page;
  }

  // From now on calls for which `fault` is true fail as if there were no answer. Null: none.
  void FailIf(std::function<bool(std::string_view method, const std::string& key)> fault) { fault_ = std::move(fault); }
  // From now on PUTs of keys for which `lost` is true are done but reported as failed.
  void LoseReplyIf(std::function<bool(const std::string& key)> lost) { lost_reply_ = std::move(lost); }

  // By key. REQUIRES: no concurrent calls.
  std::map<std::string, Object>& objects() { return objects_; }

 private:
  static Result<void> Gone() {
    return Fail(Error{.code = ErrorCode::kUnavailable,
                      .reason = "bucket_unreachable",
                      .message = "the bucket cannot be reached",
                      .retryable = true});
  }
  bool Fails(std::string_view method, const std::string& key) const { return fault_ && fault_(method, key); }

  std::mutex mutex_;
  std::map<std::string, Object> objects_;
  std::function<bool(std::string_view, const std::string&)> fault_;
  std::function<bool(const std::string&)> lost_reply_;
};

}  // namespace reprise
