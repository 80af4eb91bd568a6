// SPDX-License-Identifier: BSD-3-Clause
#include "core/gemm.hpp"

#include "core/error.hpp"
#include "core/kernels/gemm_kokkosblas.hpp"
#include "core/kokkos_scope.hpp"
#include "core/simd/kernels.hpp"

#include <dnnl.hpp>

#include <omp.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

namespace distzo2 {
namespace {

/// oneDNN plans for the number of threads it sees; ours are single-threaded calls within our own parallel loops.
class OneThread {
public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

private:
  int before_;
};

/// The first call that failed: an exception must not leave a parallel region, so it is thrown after it.
std::atomic<int> failed_status{dnnl_success};

void note(dnnl_status_t status) noexcept {
  int good = dnnl_success;
  if (status != dnnl_success) failed_status.compare_exchange_strong(good, status);
}

const dnnl::engine& cpu_engine() {
  // Never destroyed, as are the prepared GEMMs below: at the process's end oneDNN's own statics may be gone first.
  static const dnnl::engine& engine = *[] {
    // The GEMMs follow the same choice as our own kernels: DISTZO2_ISA=avx2 holds for both.
    if (std::string_view(simd_kernels().name) == "avx2") dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

dnnl::matmul::primitive_desc describe(const GemmShape& s) {
  using dnnl::memory;
  const auto type = s.compute == Compute::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  const memory::desc a({s.m, s.k}, type, {s.lda, 1});
  const memory::desc b = s.compute == Compute::bf16 ? memory::desc({s.k, s.n}, type, memory::format_tag::BA16a64b2a)
                                                    : memory::desc({s.k, s.n}, type, {s.n, 1});
  const memory::desc c({s.m, s.n}, memory::data_type::f32, {s.n, 1});
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const OneThread one;
  return dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), attr, cpu_engine());
}

class OneDnnGemm final : public Gemm {
public:
  explicit OneDnnGemm(const GemmShape& shape) : description_(describe(shape)) {
    const OneThread one;
    primitive_ = dnnl::matmul(description_);
    const auto threads = static_cast<std::size_t>(host_concurrency());
    for (std::size_t i = 0; i < threads; ++i) calls_.emplace_back(description_);
  }

  void run(int thread, float* c, const void* a, const void* b) override {
    Call& call = calls_[static_cast<std::size_t>(thread)];
    // The C interface: the C++ one builds a map, and so allocates, at every call.
    note(dnnl_memory_set_data_handle(call.a.get(), const_cast<void*>(a)));
    note(dnnl_memory_set_data_handle(call.b.get(), const_cast<void*>(b)));
    note(dnnl_memory_set_data_handle(call.c.get(), c));
    note(dnnl_primitive_execute(primitive_.get(), call.stream.get(), static_cast<int>(call.arguments.size()),
                                call.arguments.data()));
  }

  std::string name() const override { return std::string("oneDNN ") + description_.impl_info_str(); }

private:
  struct Call {
    explicit Call(const dnnl::matmul::primitive_desc& d)
        : stream(cpu_engine()),
          a(d.src_desc(), cpu_engine(), nullptr),
          b(d.weights_desc(), cpu_engine(), nullptr),
          c(d.dst_desc(), cpu_engine(), nullptr),
          scratchpad(d.scratchpad_desc(), cpu_engine()),
          arguments{{{DNNL_ARG_SRC, a.get()},
                     {DNNL_ARG_WEIGHTS, b.get()},
                     {DNNL_ARG_DST, c.get()},
                     {DNNL_ARG_SCRATCHPAD, scratchpad.get()}}} {}
    dnnl::stream stream;
    dnnl::memory a, b, c, scratchpad;
    std::array<dnnl_exec_arg_t, 4> arguments;
  };
  dnnl::matmul::primitive_desc description_;
  dnnl::matmul primitive_;
  std::vector<Call> calls_;  // one a thread
};

bool use_kokkos_blas() {
  static const bool chosen = [] {
    const char* name = std::getenv("DISTZO2_GEMM");
    if (name == nullptr || std::string_view(name) == "onednn") return false;
    if (std::string_view(name) == "kokkosblas") return true;
    throw Error(ExitCode::usage, std::string("DISTZO2_GEMM=") + name + ": accepted are onednn and kokkosblas");
  }();
  return chosen;
}

}  // namespace

Gemm& gemm_for(const GemmShape& shape) {
  static std::mutex mutex;
  static auto& prepared = *new std::map<GemmShape, std::unique_ptr<Gemm>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Gemm>& entry = prepared[shape];
  if (!entry) {
    if (use_kokkos_blas())
      entry = make_kokkosblas_gemm(shape);
    else
      entry = std::make_unique<OneDnnGemm>(shape);
  }
  return *entry;
}

void throw_if_a_gemm_failed() {
  if (const int status = failed_status.exchange(dnnl_success); status != dnnl_success)
    throw Error(ExitCode::internal, "oneDNN: a matrix product failed with status " + std::to_string(status));
}

bool native_bf16() {
  static const bool native = [] {
    if (use_kokkos_blas()) return false;
    try {  // elsewhere oneDNN multiplies bf16 by a reference loop, or not at all
      return std::string_view(describe(GemmShape{Compute::bf16, 16, 16, 64, 64}).impl_info_str()).starts_with("brg");
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return native;
}

std::string gemm_library() {
  if (use_kokkos_blas()) return "KokkosBlas on " + kokkosblas_version();
  const dnnl_version_t* v = dnnl::version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

std::string gemm_fingerprint() {
  if (use_kokkos_blas()) return gemm_library();
  cpu_engine();
  return gemm_library() + " isa " + std::to_string(static_cast<int>(dnnl::get_effective_cpu_isa())) +
         (native_bf16() ? " bf16" : "");
}

}  // namespace distzo2
