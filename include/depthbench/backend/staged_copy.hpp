// A list of the host's in the memory of a device that cannot read the host's, while this lives.
#pragma once
#include <cstddef>
#include <span>

namespace depthbench {

template <class Device, class T> class StagedCopy {
 public:
  StagedCopy(Device& device, std::span<const T> list) : device_(&device), bytes_(list.size_bytes()) {
    if (bytes_ == 0) return;
    p_ = device.memory().template acquire<T>(list.size());
    device.upload(p_, list.data(), list.size());
  }
  ~StagedCopy() { if (p_) device_->memory().release(p_, bytes_); }
  StagedCopy(const StagedCopy&) = delete;
  StagedCopy& operator=(const StagedCopy&) = delete;
  const T* data() const { return p_; }

 private:
  Device* device_;
  std::size_t bytes_;
  T* p_ = nullptr;
};

}  // namespace depthbench
