// Changes a value that depends on what is there, with any number of others doing the same: read,
// compute, compare and set. (To add to a number alone, Increment is shorter and one request.)
//
//   bazel run //client/examples:read_modify_write -- shm:/run/kvd/kvd.sock shopping milk
#include <iostream>
#include <string>

#include "client/kv_client.h"

// Adds `word` to the list under `key`, once. Returns the list as it is then.
absl::StatusOr<std::string> AddToList(kvd::Client& client, const std::string& key,
                                      const std::string& word) {
  while (true) {
    std::string list;
    kvd::ItemInfo info;
    const absl::Status got = client.Get(key, list, &info);  // one-sided, with the item's version
    if (!got.ok() && !absl::IsNotFound(got)) return got;
    if (("," + list + ",").find("," + word + ",") != std::string::npos) return list;

    kvd::WriteOptions options;
    options.condition =
        got.ok() ? kvd::Condition::IfVersion(info.version) : kvd::Condition::IfAbsent();
    list += (list.empty() ? "" : ",") + word;
    const absl::Status put = client.Put(key, list, options).status();
    if (put.ok()) return list;
    // ABORTED: somebody else was quicker. NOT_FOUND: somebody deleted it meanwhile. UNKNOWN: kvd
    // was restarted, and the write may have taken effect before. In all three cases what is there
    // now decides.
    if (!absl::IsAborted(put) && !absl::IsNotFound(put) && !absl::IsUnknown(put)) return put;
  }
}

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: read_modify_write TARGET KEY WORD\n";
    return 2;
  }
  const auto client = kvd::Client::Connect(argv[1]);
  if (!client.ok()) {
    std::cerr << "connect: " << client.status().message() << "\n";
    return 1;
  }
  const auto list = AddToList(**client, argv[2], argv[3]);
  if (!list.ok()) {
    std::cerr << "add: " << list.status().message() << "\n";
    return 1;
  }
  std::cout << *list << "\n";
  return 0;
}
