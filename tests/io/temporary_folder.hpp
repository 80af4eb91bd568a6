// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What tests of files need: a folder of their own and the bytes of files.
#include "tests/support/file_bytes.hpp"
#include "tests/support/temporary_folder.hpp"
