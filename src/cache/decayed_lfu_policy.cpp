#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "cache/decayed_count.h"
#include "cache/piece_lists.h"
#include "cache/policies.h"

namespace leanstream::cache {
namespace {

using Log = DecayedCount::Log;

// A ring of buckets over the logarithms of counts. The window of buckets in use moves on with time; what falls out
// below it stays in its lowest bucket.
class DecayedLfuPolicy : public Policy {
 public:
  DecayedLfuPolicy(uint32_t n_pieces, uint32_t half_life_steps)
      : count_(half_life_steps), counts_(n_pieces, DecayedCount::kNever), buckets_(n_pieces, kBuckets) {}

  void demand(std::span<const Piece> hits, std::span<const Piece> misses) override {
    now_ = count_.time_of(++step_);
    while (lowest_ < number_of(now_) - kBucketsBelow) raise_lowest();
    for (const Piece piece : hits) {
      const Log before = counts_[piece];
      const Log after = count_.plus_one(before, now_);
      counts_[piece] = after;
      if (buckets_.linked(piece)) move(piece, bucket_of(before), bucket_of(after));
    }
    for (const Piece piece : misses) counts_[piece] = count_.plus_one(counts_[piece], now_);
  }

  // What is held was demanded or inserted lately, and so is not the oldest of its bucket: looking past the oldest is
  // worth it only where those of all buckets are held.
  Piece victim(Piece, const Residency& residency) override {
    const auto free = [&](Piece piece) { return !residency.held(piece); };
    const Piece piece = first_of_buckets([&](uint32_t bucket) {
      const Piece oldest = buckets_.oldest(bucket);
      return free(oldest) ? oldest : kNone;
    });
    if (piece != kNone) return piece;
    return first_of_buckets([&](uint32_t bucket) { return buckets_.oldest(bucket, free); });
  }

  bool admits(Piece incoming, Piece victim) const override {
    return victim == kNone || number_of(counts_[incoming]) > number_of(counts_[victim]) + kAdmissionMargin;
  }

  void insert(Piece piece) override { add(piece, bucket_of(counts_[piece])); }
  void remove(Piece piece) override {
    const uint32_t bucket = bucket_of(counts_[piece]);
    buckets_.remove(piece);
    if (buckets_.empty(bucket)) occupied_[bucket / 64] &= ~(uint64_t{1} << (bucket % 64));
  }

 private:
  static constexpr uint64_t kBucketsPerDoubling = 8;
  static constexpr uint32_t kBuckets = 256;
  static constexpr uint64_t kWords = kBuckets / 64;
  // Half of the window for counts that have decayed to less than one demand's, down to 2^-16; half for more, up to
  // 2^16: rounding ends their growth near 2^10.
  static constexpr uint64_t kBucketsBelow = kBuckets / 2;
  // An eighth of a doubling at least: pieces that are merely demanded in turns do not push each other out.
  static constexpr uint64_t kAdmissionMargin = 1;

  static uint64_t number_of(Log count) { return count / (DecayedCount::kOne / kBucketsPerDoubling); }
  uint32_t bucket_of(Log count) const { return std::max(number_of(count), lowest_) % kBuckets; }

  // What `look` finds first, from the lowest bucket that holds pieces up; kNone where it finds nothing.
  template <typename Look>
  Piece first_of_buckets(Look&& look) const {
    // Round the ring by words of the bitmap: the first word twice, from and up to the lowest bucket.
    const uint64_t first = lowest_ % kBuckets;
    for (uint64_t i = 0; i <= kWords; ++i) {
      const uint64_t index = (first / 64 + i) % kWords;
      uint64_t word = occupied_[index];
      if (i == 0) word &= ~uint64_t{0} << (first % 64);
      if (i == kWords) word &= (uint64_t{1} << (first % 64)) - 1;
      for (; word != 0; word &= word - 1) {
        const Piece piece = look(static_cast<uint32_t>(index * 64 + static_cast<uint64_t>(std::countr_zero(word))));
        if (piece != kNone) return piece;
      }
    }
    return kNone;
  }

  void add(Piece piece, uint32_t bucket) {
    buckets_.append(bucket, piece);
    occupied_[bucket / 64] |= uint64_t{1} << (bucket % 64);
  }
  void move(Piece piece, uint32_t from, uint32_t to) {
    buckets_.remove(piece);
    if (buckets_.empty(from)) occupied_[from / 64] &= ~(uint64_t{1} << (from % 64));
    add(piece, to);
  }
  void raise_lowest() {
    const auto from = static_cast<uint32_t>(lowest_ % kBuckets);
    const auto to = static_cast<uint32_t>((lowest_ + 1) % kBuckets);
    ++lowest_;
    if (buckets_.empty(from)) return;
    buckets_.move_all_to_oldest(from, to);
    occupied_[from / 64] &= ~(uint64_t{1} << (from % 64));
    occupied_[to / 64] |= uint64_t{1} << (to % 64);
  }

  const DecayedCount count_;
  std::vector<Log> counts_;  // [n_pieces], resident or not
  PieceLists buckets_;
  std::array<uint64_t, kWords> occupied_ = {};
  uint64_t lowest_ = number_of(DecayedCount::kBeginning) - kBucketsBelow;  // number of the lowest bucket of the window
  uint64_t step_ = 0;
  Log now_ = DecayedCount::kBeginning;
};

}  // namespace

std::unique_ptr<Policy> decayed_lfu_policy(uint32_t n_pieces, uint32_t half_life_steps) {
  return std::make_unique<DecayedLfuPolicy>(n_pieces, half_life_steps);
}

}  // namespace leanstream::cache
