#include "client/bench/compare/redis_store.h"

#include <hiredis/hiredis.h>

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/bench/compare/cpu_seconds.h"
#include "client/bench/compare/place.h"

namespace kvd::bench {
namespace {

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

class RedisStore : public Store {
 public:
  explicit RedisStore(redisContext* redis) : redis_(redis) {}
  ~RedisStore() override { redisFree(redis_); }

  absl::Status Get(std::string_view key, std::string& value, uint64_t& version) override {
    version = 0;
    Append({"GET", key});
    const Reply reply = Next();
    return TakeValue(reply.get(), value);
  }

  absl::Status Put(std::string_view key, std::string_view value) override {
    Append({"SET", key, value});
    return StatusOf(Next().get());
  }

  absl::Status MultiGet(std::span<const std::string_view> keys,
                        std::span<GetResult> results) override {
    words_.assign(1, "MGET");
    words_.insert(words_.end(), keys.begin(), keys.end());
    AppendWords();
    const Reply reply = Next();
    if (reply == nullptr || reply->type != REDIS_REPLY_ARRAY || reply->elements != keys.size()) {
      return StatusOf(reply.get());
    }
    for (size_t i = 0; i < keys.size(); ++i)
      results[i].status = TakeValue(reply->element[i], results[i].value);
    return absl::OkStatus();
  }

  absl::Status MultiPut(std::span<const PutRequest> puts) override {
    for (const PutRequest& put : puts) Append({"SET", put.key, put.value});
    absl::Status status;
    for (size_t i = 0; i < puts.size(); ++i) status.Update(StatusOf(Next().get()));
    return status;
  }

  absl::StatusOr<Statistics> Stats() override {
    Append({"INFO"});
    const Reply reply = Next();
    if (reply == nullptr || reply->type != REDIS_REPLY_STRING) return StatusOf(reply.get());
    Statistics statistics;
    for (const absl::string_view line :
         absl::StrSplit(absl::string_view(reply->str, reply->len), "\r\n")) {
      const std::pair<absl::string_view, absl::string_view> words =
          absl::StrSplit(line, absl::MaxSplits(':', 1));
      if (!line.empty() && line[0] != '#') statistics.emplace_back(words.first, words.second);
    }
    return statistics;
  }

  int64_t ServerCpuUs(const Statistics& statistics) const override {
    return CpuUsOf(statistics, "used_cpu_user", "used_cpu_sys");
  }

 private:
  void Append(std::initializer_list<std::string_view> words) {
    words_.assign(words);
    AppendWords();
  }

  void AppendWords() {
    texts_.clear();
    sizes_.clear();
    for (const std::string_view word : words_) {
      texts_.push_back(word.data());
      sizes_.push_back(word.size());
    }
    redisAppendCommandArgv(redis_, static_cast<int>(texts_.size()), texts_.data(), sizes_.data());
  }

  Reply Next() {
    void* reply = nullptr;
    return redisGetReply(redis_, &reply) == REDIS_OK ? Reply(static_cast<redisReply*>(reply))
                                                     : nullptr;
  }

  absl::Status TakeValue(const redisReply* reply, std::string& value) const {
    if (reply != nullptr && reply->type == REDIS_REPLY_NIL) return absl::NotFoundError("not found");
    if (reply == nullptr || reply->type != REDIS_REPLY_STRING) return StatusOf(reply);
    value.assign(reply->str, reply->len);
    return absl::OkStatus();
  }

  absl::Status StatusOf(const redisReply* reply) const {
    if (reply == nullptr) return absl::UnavailableError(absl::StrCat("redis: ", redis_->errstr));
    if (reply->type == REDIS_REPLY_STATUS) return absl::OkStatus();
    const std::string text =
        reply->type == REDIS_REPLY_ERROR ? reply->str : "an answer of another kind";
    return absl::StartsWith(text, "OOM") ? absl::ResourceExhaustedError(text)
                                         : absl::UnavailableError(absl::StrCat("redis: ", text));
  }

  redisContext* const redis_;
  std::vector<std::string_view> words_;
  std::vector<const char*> texts_;
  std::vector<size_t> sizes_;
};

}  // namespace

absl::StatusOr<StoreMaker> RedisStores(const std::string& place) {
  const absl::StatusOr<Place> parsed = ParsePlace(place);
  if (!parsed.ok()) return parsed.status();
  return [place = *parsed](size_t) -> absl::StatusOr<std::unique_ptr<Store>> {
    redisContext* const redis = place.path.empty() ? redisConnect(place.host.c_str(), place.port)
                                                   : redisConnectUnix(place.path.c_str());
    if (redis == nullptr) return absl::ResourceExhaustedError("redisConnect");
    auto store = std::make_unique<RedisStore>(redis);
    if (redis->err != 0)
      return absl::UnavailableError(absl::StrCat("no redis there: ", redis->errstr));
    return store;
  };
}

}  // namespace kvd::bench
