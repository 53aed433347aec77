// Cells of groups as they begin, as several become one, and as the values of aggregates.
#include "engine/kernels/pipeline/cells.hpp"

namespace bamquery {

/// What becomes of a word's values in one; bamquery.engine.cuda.pipeline.cell_layout has the same numbers.
enum class WordKind : unsigned char { kSum = 0, kSumDoubles = 1, kLeast = 2, kGreatest = 3, kLowSum = 4 };

inline constexpr unsigned kMostWords = 48;

/// Words of groups, each in a column of its own.
struct Words {
  const Word* column[kMostWords];
  WordKind kind[kMostWords];
  Word count;
};

namespace {

__device__ inline Word first_word(WordKind kind) {
  constexpr Word kGreatestWord = 0x7fffffffffffffffll;
  return kind == WordKind::kLeast ? kGreatestWord : kind == WordKind::kGreatest ? -kGreatestWord - 1 : 0;
}

__device__ inline Word first_row() { return static_cast<Word>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline Word all_threads() { return static_cast<Word>(gridDim.x) * blockDim.x; }

}  // namespace

/// Cells before anything is added to them; of `words` the kinds count.
extern "C" __global__ void __launch_bounds__(256) cells_clear(Cells cells, Words words, Word groups) {
  for (Word group = first_row(); group < groups; group += all_threads()) {
    for (unsigned word = 0; word < words.count; ++word) *cells.at(word, group) = first_word(words.kind[word]);
  }
}

/// Adds some groups' words to the cells of the groups of these numbers.
extern "C" __global__ void __launch_bounds__(256)
    cells_merge(Words from, const int* codes, Word groups, Cells cells) {
  for (Word i = first_row(); i < groups; i += all_threads()) {
    for (unsigned word = 0; word < from.count; ++word) {
      Word* const to = cells.at(word, codes == nullptr ? 0 : codes[i]);
      const Word more = from.column[word][i];
      switch (from.kind[word]) {
        case WordKind::kSum:
          add_word(to, more);
          break;
        case WordKind::kSumDoubles:
          Shared::sum_double(to, more);
          break;
        case WordKind::kLeast:
          Shared::least(to, more);
          break;
        case WordKind::kLowSum:  // Of one state it fits; of states of any number of rows it must.
          add_word(to, low_half(more));
          add_word(cells.at(word + 1, codes == nullptr ? 0 : codes[i]), high_half(more));
          break;
        default:
          Shared::greatest(to, more);
      }
    }
  }
}

/// How an aggregate's value is had from its words; bamquery.engine.cuda.pipeline.finished_values has the same
/// numbers.
enum class Finish : unsigned {
  kWord = 0,     ///< An extreme, or a count.
  kDecimal = 1,  ///< A sum of whole numbers, in 128 bits.
  kMean = 2,     ///< Such a sum / (count * unit).
  kDouble = 3,   ///< A sum of doubles.
  kMeanOfDoubles = 4,
  kOrderedDouble = 5,  ///< An extreme of doubles.
};

struct Finishing {
  const Word* value;
  const Word* high;   ///< Of sums of whole numbers.
  const Word* count;  ///< Null where the value is never null.
  void* values;
  unsigned* valid;
  double unit;
  Finish finish;
  unsigned width;  ///< Bytes of a value that is made.
};

namespace {

struct Wide {
  Word low, high;
};

// low + high * 2^32 in 128 bits; `low` is not negative.
__device__ inline Wide whole_sum(Word low, Word high) {
  const Unsigned bottom = static_cast<Unsigned>(low) + (static_cast<Unsigned>(high) << 32);
  return {static_cast<Word>(bottom), (high >> 32) + (bottom < static_cast<Unsigned>(low) ? 1 : 0)};
}

// Rounded as the operators' limbs of 32 bits are: a mean must not tell who computed it.
__device__ inline double double_of(Wide sum) {
  if (sum.high == sum.low >> 63) return __ll2double_rn(sum.low);
  const Unsigned low = static_cast<Unsigned>(sum.low);
  const double upper =
      __dadd_rn(__dmul_rn(__ll2double_rn(sum.high), 4294967296.0), __ull2double_rn(low >> 32));
  return __dadd_rn(__dmul_rn(upper, 4294967296.0), __ull2double_rn(low & 0xffffffffu));
}

__device__ inline void store_word(const Finishing& to, Word group, Word word) {
  switch (to.width) {
    case 1:
      static_cast<signed char*>(to.values)[group] = static_cast<signed char>(word);
      break;
    case 2:
      static_cast<short*>(to.values)[group] = static_cast<short>(word);
      break;
    case 4:
      static_cast<int*>(to.values)[group] = static_cast<int>(word);
      break;
    case 8:
      static_cast<Word*>(to.values)[group] = word;
      break;
    default:
      static_cast<Word*>(to.values)[2 * group] = word;
      static_cast<Word*>(to.values)[2 * group + 1] = word >> 63;
  }
}

__device__ inline void store_double(const Finishing& to, Word group, double number) {
  if (to.width == 4) {
    static_cast<float*>(to.values)[group] = static_cast<float>(number);
  } else {
    static_cast<double*>(to.values)[group] = number;
  }
}

}  // namespace

/// The values of an aggregate, a group each; `nulls` counts those that have none.
extern "C" __global__ void __launch_bounds__(256) cells_finish(Finishing to, Word groups, unsigned* nulls) {
  unsigned missing = 0;
  for (Word group = first_row(); (group & ~31ll) < groups; group += all_threads()) {
    const bool here = group < groups;
    const Word at = here ? group : groups - 1;
    const Word count = to.count == nullptr ? 1 : to.count[at];
    if (to.valid != nullptr) missing += store_valid({to.values, to.valid}, group, count > 0, here);
    if (!here) continue;
    const Word value = to.value[at];
    switch (to.finish) {
      case Finish::kWord:
        store_word(to, at, count > 0 ? value : 0);
        break;
      case Finish::kDecimal: {
        const Wide sum = whole_sum(value, to.high[at]);
        static_cast<Word*>(to.values)[2 * at] = sum.low;
        static_cast<Word*>(to.values)[2 * at + 1] = sum.high;
        break;
      }
      case Finish::kMean:
        store_double(
            to, at,
            __ddiv_rn(double_of(whole_sum(value, to.high[at])), __dmul_rn(__ll2double_rn(count), to.unit)));
        break;
      case Finish::kDouble:
        store_double(to, at, __longlong_as_double(value));
        break;
      case Finish::kMeanOfDoubles:
        store_double(to, at, __ddiv_rn(__longlong_as_double(value), __ll2double_rn(count)));
        break;
      default: {
        const Word bits = value ^ static_cast<Word>(static_cast<Unsigned>(value >> 63) >> 1);
        store_double(to, at, __longlong_as_double(bits));
      }
    }
  }
  add_up(missing, nulls);
}

}  // namespace bamquery
