#include "cache/piece_lists.h"

#include <gtest/gtest.h>

#include <list>
#include <random>

namespace leanstream::cache {
namespace {

std::vector<Piece> contents(const PieceLists& lists, uint32_t list) {
  std::vector<Piece> all;
  static_cast<void>(lists.oldest(list, [&](Piece piece) {
    all.push_back(piece);
    return false;
  }));
  return all;
}

TEST(PieceLists, keep_the_order_of_arrival) {
  PieceLists lists(8, 2);
  EXPECT_TRUE(lists.empty(0));
  EXPECT_EQ(lists.oldest(0), kNone);
  for (const Piece piece : {3u, 1u, 7u}) lists.append(0, piece);
  lists.append(1, 0);
  EXPECT_EQ(contents(lists, 0), (std::vector<Piece>{3, 1, 7}));
  EXPECT_EQ(lists.oldest(0), 3u);
  lists.remove(1);
  EXPECT_FALSE(lists.linked(1));
  EXPECT_TRUE(lists.linked(0));
  EXPECT_EQ(contents(lists, 0), (std::vector<Piece>{3, 7}));
}

TEST(PieceLists, put_one_list_before_another) {
  PieceLists lists(8, 2);
  lists.move_all_to_oldest(0, 1);
  EXPECT_TRUE(lists.empty(1));
  for (const Piece piece : {0u, 1u}) lists.append(0, piece);
  for (const Piece piece : {2u, 3u}) lists.append(1, piece);
  lists.move_all_to_oldest(0, 1);
  EXPECT_TRUE(lists.empty(0));
  EXPECT_EQ(contents(lists, 1), (std::vector<Piece>{0, 1, 2, 3}));
  lists.append(0, 4);
  EXPECT_EQ(contents(lists, 0), (std::vector<Piece>{4}));
}

TEST(PieceLists, agree_with_std_list) {
  constexpr uint32_t kPieces = 20, kLists = 3;
  PieceLists lists(kPieces, kLists);
  std::vector<std::list<Piece>> naive(kLists);
  std::vector<uint32_t> list_of(kPieces, kNone);
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    const Piece piece = random() % kPieces;
    const uint32_t list = random() % kLists;
    if (random() % 20 == 0) {
      const uint32_t to = (list + 1) % kLists;
      for (const Piece moved : naive[list]) list_of[moved] = to;
      naive[to].splice(naive[to].begin(), naive[list]);
      lists.move_all_to_oldest(list, to);
    } else if (list_of[piece] == kNone) {
      naive[list].push_back(piece);
      list_of[piece] = list;
      lists.append(list, piece);
    } else {
      naive[list_of[piece]].remove(piece);
      list_of[piece] = kNone;
      lists.remove(piece);
    }
    for (uint32_t l = 0; l < kLists; ++l)
      ASSERT_EQ(contents(lists, l), std::vector<Piece>(naive[l].begin(), naive[l].end()));
  }
}

}  // namespace
}  // namespace leanstream::cache
