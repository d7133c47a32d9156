#include "memory/tensor_source.hpp"
