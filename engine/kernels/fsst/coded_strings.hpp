// Where the codes of a selection's compressed strings are in this GPU's memory.
#pragma once

#include "engine/kernels/strings/scan_strings.hpp"
#include "storage/core/string_vector.hpp"

namespace bamquery {

/// One string as it is stored.
struct CodedString {
  const byte* codes;
  uint64_t size;
  bool is_null;
  bool is_possible;    ///< If not, it has no codes.
  bool is_compressed;  ///< If not, its codes are its bytes.
};

/// The compressed strings of a selection's rows: in whole vectors, or in blocks.
struct CodedStrings {
  ScanStrings strings;             ///< With `pairs`: of codes, as bytes of their column. Without: in vectors.
  const StringVector* parameters;  ///< Of each vector: possible ones.
  const StringSymbols* symbols;    ///< By piece.
  const uint16_t* vector_rows;
  const uint64_t* shifts;  ///< Of vectors: byte b of the column is at address shifts[v] + b.
  const uint64_t* bases;   ///< Of blocks: how many begin with the rows before.
  const byte* blocks;      ///< These, one after the other.

  /// The code of the end of a row's string, out of its vector.
  BAMQUERY_CORE uint64_t end_code(uint32_t vector, uint32_t row) const {
    const StringVector& parameters_of = parameters[vector];
    return packed_code(reinterpret_cast<const uint64_t*>(shifts[vector] + parameters_of.offset),
                       parameters_of.bits, row);
  }

  /// Byte of the column in which the codes of a vector's strings begin.
  BAMQUERY_CORE uint64_t first_byte(uint32_t vector) const {
    return parameters[vector].offset + packed_code_bytes(parameters[vector].bits, vector_rows[vector]);
  }

  BAMQUERY_CORE CodedString operator[](uint32_t i) const {
    const uint32_t vector = strings.vector(i);
    const bool is_compressed = parameters[vector].is_compressed();
    if (strings.pairs != nullptr) {
      const ScanRange range = strings.range(i);
      const byte* const codes = range.begin < range.end ? strings.in_blocks(i, range, bases, blocks) : blocks;
      return {codes, range.end - range.begin, false, true, is_compressed};
    }
    const uint32_t row = strings.positions[i] % kVectorRows;
    const uint64_t before = row % kPackedPartRows == 0 ? 0 : end_code(vector, row - 1);
    const StringRow found =
        string_row(parameters[vector], vector_rows[vector], row, before, end_code(vector, row));
    const uint64_t codes = shifts[vector] + first_byte(vector) + found.begin;
    return {reinterpret_cast<const byte*>(codes), uint64_t{found.end} - found.begin, found.is_null,
            found.is_possible, is_compressed};
  }
};
static_assert(sizeof(CodedStrings) == 120);

}  // namespace bamquery
