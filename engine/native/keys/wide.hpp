// Integers of 128 bits, which the compiler has and the language has not.
#pragma once

namespace bamquery {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UnsignedInt128;

}  // namespace bamquery
