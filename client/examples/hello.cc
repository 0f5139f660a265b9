// The shortest program that uses kvd: stores a value, reads it back one-sidedly.
//
//   bazel run //client/examples:hello -- shm:/run/kvd/kvd.sock
#include <iostream>
#include <string>

#include "client/kv_client.h"

int main(int argc, char** argv) {
  const auto connected = kvd::Client::Connect(argc > 1 ? argv[1] : "");
  if (!connected.ok()) {
    std::cerr << "connect: " << connected.status().message() << "\n";
    return 1;
  }
  kvd::Client& client = **connected;

  const auto put = client.Put("greeting", "hello");
  if (!put.ok()) {
    std::cerr << "put: " << put.status().message() << "\n";
    return 1;
  }

  std::string value;
  const absl::Status got =
      client.Get("greeting", value);  // reads kvd's memory; kvd does not notice
  if (!got.ok()) {
    std::cerr << "get: " << got.message() << "\n";
    return 1;
  }
  std::cout << value << "\n";
  return 0;
}
