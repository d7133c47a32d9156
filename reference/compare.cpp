#include "reference/compare.hpp"
