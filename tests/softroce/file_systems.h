// The guest's kernel modules and file systems.
#pragma once

#include "tests/softroce/guest_config.h"

// All functions call Fail when the kernel refuses.
namespace kvd::softroce {

// Mounts /dev, /proc and /sys of the initial memory disk.
void MountKernelFolders();

// Loads /modules/*.ko in the order of their names.
void LoadModules();

// Makes the host's root directory, read-only below a layer in memory, the root of this process. The
// guest has a /dev, /proc, /sys, /run, /tmp and /dev/shm of its own; of the host's /tmp only what
// the configuration names is visible; shares are mounted writable.
void EnterHostRoot(const GuestConfig& config);

}  // namespace kvd::softroce
