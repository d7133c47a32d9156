#pragma once

// The kernels' launches for whichever engine compiles this: host, cuda or rocm files include it.

#include <stdexcept>
#include <string>

#include "backends/hip/kernels/paged_kernel.hpp"
#include "backends/hip/kernels/paged_launch.hpp"
#include "backends/hip/kernels/reduce_splits.hpp"

namespace attest::hip {
namespace {

/// A compute unit of AMD's has 64 KiB of shared memory up to CDNA3, a multiprocessor 99 KiB and
/// more: half the tile, and no second stage.
inline constexpr bool small_shared_memory =
#if defined(__HIP__)
    true;
#else
    false;
#endif

/// 8 groups of 32 lanes, 4 for the smallest block: two blocks of them fill a multiprocessor's
/// shared memory, and enough warps hide one another's latencies.
template <class T, int head_dim, int v_dim, int row_groups>
struct AttentionShape {
  using type = Shape<MmaFragment, head_dim, v_dim, row_groups, row_groups == 4 ? 2 : 4, 64, 2>;
};
template <class T, int head_dim, int v_dim, int row_groups>
  requires(small_shared_memory && sizeof(T) == 2)
struct AttentionShape<T, head_dim, v_dim, row_groups> {
  using type = Shape<MmaFragment, head_dim, v_dim, 1, 2, 32, 1>;
};
/// f32 is there to be right, not fast.
template <int head_dim, int v_dim, int row_groups>
struct AttentionShape<float, head_dim, v_dim, row_groups> {
  using type = Shape<MmaFragment, head_dim, v_dim, 1, 1, 16, 1>;
};
/// V a chunk of 128 columns at a time: 512 columns of sums do not fit a group's registers.
using LatentShape =
    Shape<MmaFragment, largest_latent_dim, 128, 1, 2, 32, small_shared_memory ? 1 : 2, true>;

inline unsigned blocks_of(const PagedArgs& args, int rows) {
  const std::int64_t group = args.num_q_heads / args.num_kv_heads;
  return static_cast<unsigned>(args.total_rows * group / rows + args.batch);
}

template <PlantedFault fault>
void launch_reduction(Stream stream, const PagedArgs& args) {
  const auto chunks =
      static_cast<unsigned>((args.v_head_dim + reduce_columns - 1) / reduce_columns);
  launch(kernel<reduce_splits<fault>>,
         {static_cast<unsigned>(args.total_rows), static_cast<unsigned>(args.num_q_heads), chunks},
         {reduce_threads}, sizeof(ReduceShared), stream, args);
}

template <class T, class S, PlantedFault fault>
void launch_shape(Stream stream, const PagedArgs& args) {
  const auto chunks = static_cast<unsigned>((args.v_head_dim + S::v_dim - 1) / S::v_dim);
  constexpr int bytes = SharedLayout<T, S>::bytes(!on_matrix_units<T, typename S::Fragment>);
  launch(kernel<paged_attention<T, S, fault>>,
         {blocks_of(args, S::rows), static_cast<unsigned>(args.num_kv_heads),
          static_cast<unsigned>(args.splits) * chunks},
         {S::threads}, bytes, stream, args);
  if (args.splits > 1) launch_reduction<fault>(stream, args);
}

template <class T, int head_dim, int v_dim>
void launch_dims(Stream stream, const PagedArgs& args, int row_groups) {
  constexpr PlantedFault honest = PlantedFault::none;
  if (row_groups <= 1) {
    launch_shape<T, typename AttentionShape<T, head_dim, v_dim, 1>::type, honest>(stream, args);
  } else if (row_groups == 2) {
    launch_shape<T, typename AttentionShape<T, head_dim, v_dim, 2>::type, honest>(stream, args);
  } else {
    launch_shape<T, typename AttentionShape<T, head_dim, v_dim, 4>::type, honest>(stream, args);
  }
}

/// The smallest compiled head sizes that hold the call's.
template <class T>
void launch_paged(Stream stream, const PagedArgs& args, int row_groups) {
  const int dim = args.head_dim;
  const int v_dim = args.v_head_dim;
  if (dim <= 64 && v_dim <= 64) return launch_dims<T, 64, 64>(stream, args, row_groups);
  if (dim <= 128 && v_dim <= 128) return launch_dims<T, 128, 128>(stream, args, row_groups);
  if (dim <= 192 && v_dim <= 128) return launch_dims<T, 192, 128>(stream, args, row_groups);
  if (dim <= largest_head_dim && v_dim <= largest_head_dim) {
    return launch_dims<T, largest_head_dim, largest_head_dim>(stream, args, row_groups);
  }
  throw std::invalid_argument("head sizes " + std::to_string(dim) + " and " +
                              std::to_string(v_dim) + " are above " +
                              std::to_string(largest_head_dim));
}

/// In blocks of 16 rows for every head size.
inline void launch_wrapped(Stream stream, const PagedArgs& args, int) {
  using WrappedShape =
      Shape<MmaFragment, largest_head_dim, largest_head_dim, 1, small_shared_memory ? 2 : 4,
            small_shared_memory ? 32 : 64, small_shared_memory ? 1 : 2>;
  launch_shape<Bf16, WrappedShape, PlantedFault::offset_wraps>(stream, args);
}

template <class T>
void launch_latent(Stream stream, const PagedArgs& args, int) {
  if (args.head_dim > largest_latent_dim || args.v_head_dim > args.head_dim) {
    throw std::invalid_argument("latent rows of " + std::to_string(args.head_dim) +
                                " elements with " + std::to_string(args.v_head_dim) + " of V");
  }
  launch_shape<T, LatentShape, PlantedFault::none>(stream, args);
}

}  // namespace
}  // namespace attest::hip
