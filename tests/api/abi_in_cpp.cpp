#include "abi_layout.h"
