// Stores tensors of 4 MiB and reads them back through registered buffers: no allocation for each,
// and no copy but the one out of kvd's region, which over RDMA the device makes.
//
//   bazel run //client/examples:tensors -- shm:/run/kvd/kvd.sock
#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/kv_client.h"

namespace {

constexpr size_t kLayers = 4;
constexpr size_t kFloats = 1 << 20;  // 4 MiB a layer
constexpr size_t kBytes = kFloats * sizeof(float);

std::string KeyOf(size_t layer) { return "model:7/layer:" + std::to_string(layer); }

// A buffer is page-aligned: good for whatever an application keeps in it.
std::span<float> FloatsIn(const kvd::Buffer& buffer) {
  return {reinterpret_cast<float*>(buffer.data()), buffer.size() / sizeof(float)};
}

int Fail(const std::string& what, const absl::Status& status) {
  std::cerr << what << ": " << status.message() << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto connected = kvd::Client::Connect(argc > 1 ? argv[1] : "");
  if (!connected.ok()) return Fail("connect", connected.status());
  kvd::Client& client = **connected;

  std::vector<kvd::Buffer> layers;
  for (size_t layer = 0; layer < kLayers; ++layer) {
    auto buffer = client.AllocateBuffer(kBytes);
    if (!buffer.ok()) return Fail("buffer", buffer.status());
    layers.push_back(*std::move(buffer));
  }

  for (size_t layer = 0; layer < kLayers; ++layer) {
    const std::span<float> floats = FloatsIn(layers[layer]);
    std::iota(floats.begin(), floats.end(), static_cast<float>(layer));
    // kvd fetches the value from the buffer, which must stay as it is until PutFrom returns.
    // OUT_OF_RANGE: over kvd's --max_value; RESOURCE_EXHAUSTED: its memory is full.
    const auto put = client.PutFrom(KeyOf(layer), layers[layer], kBytes);
    if (!put.ok()) return Fail("put", put.status());
    std::fill(floats.begin(), floats.end(), 0.0f);
  }

  // All layers, each into its buffer, several under way.
  for (size_t layer = 0; layer < kLayers; ++layer) {
    client.StartGetInto(KeyOf(layer), layers[layer], {.tag = layer, .done = {}});
  }
  std::array<kvd::Completion, kLayers> completions;
  while (client.outstanding() > 0) {
    const size_t count = client.Wait(completions, std::chrono::seconds(10));
    for (const kvd::Completion& got : std::span(completions).first(count)) {
      if (!got.status.ok()) return Fail(KeyOf(got.tag), got.status);
    }
  }
  // Each value was verified as a whole before its completion came back.
  for (size_t layer = 0; layer < kLayers; ++layer) {
    std::cout << KeyOf(layer) << " begins with " << FloatsIn(layers[layer]).front() << "\n";
  }
  return 0;
}
