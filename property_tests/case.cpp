#include "property_tests/case.hpp"
