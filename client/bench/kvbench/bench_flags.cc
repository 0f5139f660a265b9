#include "client/bench/kvbench/options.h"

namespace kvd::bench {
namespace {

using cli::Flag;
using cli::FlagKind;

// Letters are perftest's.
constexpr Flag kFlags[] = {
    {"server", '\0', FlagKind::kText, "TARGET", "",
     "what to measure, as kvcli takes it: shm:PATH, rdma:HOST:PORT or HOST:PORT; without it "
     "KVCLI_SERVER, or this user's default socket"},
    {"mix", 'm', FlagKind::kText, "READ:WRITE|a|b|c|d|f", "95:5",
     "what is done: GETs and PUTs by their weights, or a core workload of YCSB: a 50:50, b 95:5, "
     "c GETs alone, d 95 GETs of the latest keys and 5 inserts of new ones, f 50 GETs and 50 "
     "read-modify-writes; keys of a, b, c, f by zipf:0.99; YCSB's records are those of "
     "--value_size=1000",
     false},
    {"dist", '\0', FlagKind::kText, "uniform|zipf:THETA|latest", "",
     "how keys are chosen; without it uniform, or as the workload of YCSB has it", false},
    {"keys", 'k', FlagKind::kCount, "N", "100000", "items", false},
    {"key_size", '\0', FlagKind::kCount, "BYTES", "8", "of each key", false},
    {"value_size", 's', FlagKind::kText, "SIZES", "64",
     "64, or 64..4096 with all sizes between equally likely, or a list with weights such as "
     "64:70,1k..4k:30; suffixes k, m, g, t",
     false},
    {"all", 'a', FlagKind::kSwitch, "", "false",
     "one run for each size of value from 2 bytes to 1 MiB, doubling; with as many of --keys as "
     "fit into 32 MiB, or less where kvd has not the 300 MiB that all of them need together",
     false},
    {"misses", '\0', FlagKind::kCount, "PERCENT", "0",
     "of the GETs ask for a key that is not there", false},
    {"clients", 'c', FlagKind::kCount, "N", "1", "clients, each with a connection of its own",
     false},
    {"processes", '\0', FlagKind::kSwitch, "", "false", "clients are processes, not threads",
     false},
    {"batch", 'b', FlagKind::kCount, "N", "1",
     "keys an operation: MultiGet and MultiPut; what is timed then is the batch", false},
    {"depth", 't', FlagKind::kCount, "N", "1", "operations that each client has under way", false},
    {"rate", 'r', FlagKind::kText, "OPS", "0",
     "open loop: so many operations begin each second, of all clients together, whether or not "
     "earlier ones have ended, and are timed from the moment at which they should have begun; 0: "
     "closed loop",
     false},
    {"arrivals", '\0', FlagKind::kChoice, "constant|poisson", "constant",
     "when operations of an open loop begin: evenly, or at random", false},
    {"rmw", '\0', FlagKind::kChoice, "put|cas", "put",
     "how a read-modify-write writes: as YCSB does, or only if the item is still the one that was "
     "read, and again otherwise",
     false},
    {"location_cache", 'l', FlagKind::kText, "on|off|shared|ENTRIES", "off",
     "locations that each client remembers, 16 bytes each; on: four for each key; shared, or "
     "shared:ENTRIES: so many that all clients remember together",
     false},
    {"read_whole_buckets", '\0', FlagKind::kSwitch, "", "false",
     "read shared memory bucket by bucket, as over RDMA: to count READs, not for speed", false},
    {"load", '\0', FlagKind::kSwitch, "", "true",
     "store all items first; --load=false uses those of an earlier run with the same --keys and "
     "--key_size",
     false},
    {"warmup", '\0', FlagKind::kText, "TIME", "1s", "the same load, not counted; 0: none", false},
    {"seconds", 'D', FlagKind::kDuration, "TIME", "10s", "how long to measure", false},
    {"operations", 'n', FlagKind::kCount, "N", "",
     "measure so many operations of all clients together instead", false},
    {"sample", '\0', FlagKind::kCount, "N", "1",
     "time one operation in N, so that the clock costs the others nothing", false},
    {"verify", '\0', FlagKind::kChoice, "full|head|off", "full",
     "how much of each value that a GET returns is checked to be the key's, outside of what is "
     "timed",
     false},
    {"seed", '\0', FlagKind::kCount, "N", "1", "of all random choices", false},
    {"json", '\0', FlagKind::kText, "PATH", "",
     "write everything that was measured as JSON; - for standard output instead of the table",
     false},
    {"hgrm", '\0', FlagKind::kText, "PREFIX", "",
     "write percentiles as HdrHistogram does, to PREFIX.get.hgrm, PREFIX.put.hgrm and so on",
     false},
    {"floor", '\0', FlagKind::kChoice, "auto|off|remote", "auto",
     "over RDMA, run ib_read_lat, ib_read_bw and ib_send_lat on the same device afterwards: where "
     "the server's address is this machine's; remote: against servers of perftest that somebody "
     "starts there, kvbench says how",
     false},
    {"device", 'd', FlagKind::kText, "NAME", "",
     "RDMA device to use; without it, the one that leads to the server"},
    {"gid_index", 'x', FlagKind::kCount, "N", "", "GID of the device's port, with --connect=tcp"},
    {"connect", '\0', FlagKind::kChoice, "cm|tcp", "cm",
     "how an RDMA server is connected to: by rdma_cm, or as its own --connect=tcp says"},
    {"key_file", '\0', FlagKind::kText, "PATH", "",
     "file with the key to be admitted by, as kvd's --keys has it; for its owner alone (mode "
     "0600)"},
    {"key_name", '\0', FlagKind::kText, "NAME", "",
     "which key of that file; without it, the first"},
    {"deadline", '\0', FlagKind::kDuration, "TIME", "5s", "for connecting, and for each operation"},
    {"completion", '\0', FlagKind::kChoice, "bash|zsh", "",
     "print a script that completes kvbench's flags in a shell", false},
    {"help", 'h', FlagKind::kSwitch, "", "false", "this text", false},
    {"version", '\0', FlagKind::kSwitch, "", "false", "print the version", false},
};

}  // namespace

std::span<const Flag> BenchFlags() { return kFlags; }

}  // namespace kvd::bench
