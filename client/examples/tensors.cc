// Stores tensors of 4 MiB and reads them into memory that the application has laid out: no
// allocation, and no copy but the one out of kvd's region.
//
//   bazel run //client/examples:tensors -- shm:/run/kvd/kvd.sock
#include <array>
#include <chrono>
#include <iostream>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/kv_client.h"

namespace {

constexpr size_t kLayers = 4;
constexpr size_t kFloats = 1 << 20;  // 4 MiB a layer

std::string KeyOf(size_t layer) { return "model:7/layer:" + std::to_string(layer); }

std::span<char> BytesOf(std::span<float> floats) {
  return {reinterpret_cast<char*>(floats.data()), floats.size_bytes()};
}

}  // namespace

int main(int argc, char** argv) {
  const auto connected = kvd::Client::Connect(argc > 1 ? argv[1] : "");
  if (!connected.ok()) {
    std::cerr << "connect: " << connected.status().message() << "\n";
    return 1;
  }
  kvd::Client& client = **connected;

  std::vector<float> tensor(kFloats);
  for (size_t layer = 0; layer < kLayers; ++layer) {
    std::iota(tensor.begin(), tensor.end(), static_cast<float>(layer));
    const std::span<char> bytes = BytesOf(tensor);
    const auto put = client.Put(KeyOf(layer), std::string_view(bytes.data(), bytes.size()));
    if (!put.ok()) {  // OUT_OF_RANGE: over kvd's --max_value; RESOURCE_EXHAUSTED: its memory is
                      // full
      std::cerr << "put: " << put.status().message() << "\n";
      return 1;
    }
  }

  // All layers side by side, each read where it belongs, several under way.
  std::vector<float> model(kLayers * kFloats);
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const std::span<float> place(model.data() + layer * kFloats, kFloats);
    client.StartGetInto(KeyOf(layer), BytesOf(place), {.tag = layer, .done = {}});
  }
  std::array<kvd::Completion, kLayers> completions;
  while (client.outstanding() > 0) {
    const size_t count = client.Wait(completions, std::chrono::seconds(10));
    for (const kvd::Completion& got : std::span(completions).first(count)) {
      if (!got.status.ok() || got.length != kFloats * sizeof(float)) {
        std::cerr << KeyOf(got.tag) << ": " << got.status.message() << ", " << got.length
                  << " bytes\n";
        return 1;
      }
    }
  }
  // Each value was verified as a whole before its completion came back.
  for (size_t layer = 0; layer < kLayers; ++layer) {
    std::cout << KeyOf(layer) << " begins with " << model[layer * kFloats] << "\n";
  }
  return 0;
}
