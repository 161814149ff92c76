// A run in one safetensors file: parameters under their OLMo-core names, the optimizer's moments under
// optim.exp_avg.<name> and optim.exp_avg_sq.<name>, and in __metadata__ the step, the data cursor and the seeds.
// Random numbers are functions of seed and counter, so there is no other random state.
// Written beside its final name, synced, then renamed: a crash leaves the old checkpoint or the new one.
#pragma once
#include <charconv>
#include <deque>
#include <filesystem>
#include <map>
#include <string>

#include "depthbench/io/safetensors.hpp"
#include "depthbench/tape/parameter.hpp"
#include "depthbench/train/adamw.hpp"

namespace depthbench {

using CheckpointNotes = std::map<std::string, std::string>;

// optimizer: null for weights alone.
template <class Device, class R>
void save_checkpoint(const std::filesystem::path& path, Parameters<Device, R>& parameters, Adamw<Device, R>* optimizer, const CheckpointNotes& notes) {
  SafeTensorsWriter out;
  std::deque<std::vector<R>> copies;  // of tensors that are not in the host's memory; they live until save()
  const auto on_host = [&](std::span<const R> x) -> std::span<const R> {
    if constexpr (Device::host_memory) return x;
    copies.emplace_back(x.size());
    parameters.device().download(copies.back().data(), x.data(), x.size());
    return copies.back();
  };
  for (const auto& p : parameters.list()) {
    out.add(p.name, extents_of(p.shape), on_host(p.values()));
    if (!optimizer) continue;
    out.add("optim.exp_avg." + p.name, extents_of(p.shape), on_host(optimizer->first_moment(p)));
    out.add("optim.exp_avg_sq." + p.name, extents_of(p.shape), on_host(optimizer->second_moment(p)));
  }
  for (const auto& [key, value] : notes) out.add_metadata(key, value);
  if (optimizer) out.add_metadata("optim.step", fmt::format("{}", optimizer->steps()));
  out.save(path);
}

// A whole number of a file's metadata: Int is std::int64_t, or std::uint64_t for seeds.
template <class Int = std::int64_t>
Int integer_note(const CheckpointNotes& notes, const std::string& key, const std::filesystem::path& path) {
  const auto it = notes.find(key);
  if (it == notes.end()) fail<format_error>("{}: has no {} in its metadata, needs it to resume", path.string(), key);
  Int v = 0;
  const auto [end, problem] = std::from_chars(it->second.data(), it->second.data() + it->second.size(), v);
  bool negative = false;
  if constexpr (std::is_signed_v<Int>) negative = v < 0;
  if (problem != std::errc{} || end != it->second.data() + it->second.size() || negative)
    fail<format_error>("{}: {} is '{}' in its metadata, needs a whole number of 0 or more", path.string(), key, it->second);
  return v;
}

namespace detail {
template <class Device, class R>
void load_tensor(Device& device, const SafeTensors& file, const std::string& path, const std::string& name, const Shape& shape, std::span<R> to) {
  const TensorEntry* entry = file.find(name);
  if (!entry) fail<format_error>("checkpoint {}: has no tensor {}", path, name);
  if (entry->shape != extents_of(shape))
    fail<shape_error>("checkpoint {}: {} has another shape ({} elements) than the model needs: {}", path, name, entry->numel(), shape.text());
  const auto values = file.read_as<R>(name);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) fail<numeric_error>("checkpoint {}: {} has {} at element {}", path, name, values[i], i);
  }
  device.upload(to.data(), values.data(), values.size());
}
}  // namespace detail

// Reads all of it or throws; returns the notes. A failed load may have changed some parameters.
template <class Device, class R>
CheckpointNotes load_checkpoint(const std::filesystem::path& path, Parameters<Device, R>& parameters, Adamw<Device, R>* optimizer) {
  const SafeTensors file(path);
  const CheckpointNotes notes = file.metadata();
  for (auto& p : parameters.list()) {
    detail::load_tensor<Device, R>(parameters.device(), file, path.string(), p.name, p.shape, p.values());
    if (!optimizer) continue;
    detail::load_tensor<Device, R>(parameters.device(), file, path.string(), "optim.exp_avg." + p.name, p.shape, optimizer->first_moment(p));
    detail::load_tensor<Device, R>(parameters.device(), file, path.string(), "optim.exp_avg_sq." + p.name, p.shape, optimizer->second_moment(p));
  }
  for (const auto& name : file.names())
    if (!name.starts_with("optim.") && !parameters.find(name))
      fail<format_error>("checkpoint {}: has a tensor {} that this model does not have", path.string(), name);
  if (optimizer) optimizer->set_steps(integer_note(notes, "optim.step", path));
  return notes;
}

}  // namespace depthbench
