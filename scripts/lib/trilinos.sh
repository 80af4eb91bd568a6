# SPDX-License-Identifier: BSD-3-Clause
# Kokkos, Kokkos Kernels and Teuchos from Debian's source package trilinos; sourced by bootstrap.
trilinos_version=13.2.0-4
trilinos_tarball=trilinos_13.2.0.orig.tar.gz
trilinos_sha256=0ddb47784ba7b8a6b9a07a4822b33be508feb4ccd54301b2a5d10c9e54524b90
trilinos_source=$deps/trilinos

tarball_is_good() { echo "$trilinos_sha256  $deps/src/$trilinos_tarball" | sha256sum --check --status; }

# source_list: this machine's own apt sources as deb-src lines, in a file outside /etc.
source_list() {
  local file
  for file in /etc/apt/sources.list.d/*.sources; do
    if [[ -e $file ]]; then
      sed -E 's/^Types:.*/Types: deb-src/' "$file"
      echo
    fi
  done >"$deps/apt/deb-src.sources"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    if [[ -e $file ]]; then sed -nE 's/^deb(-src)?[[:space:]]/deb-src /p' "$file"; fi
  done | sort -u >"$deps/apt/deb-src.list"
}

download_trilinos() {
  local parts=$deps/apt/parts
  mkdir -p "$deps/src" "$parts" "$deps/apt/lists/partial" "$deps/apt/cache/archives/partial"
  source_list
  cp "$deps/apt/deb-src.sources" "$deps/apt/deb-src.list" "$parts"
  local apt=(apt-get -q -o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$parts"
    -o "Dir::State::lists=$deps/apt/lists" -o "Dir::Cache=$deps/apt/cache" -o "APT::Sandbox::User=$(id -un)")
  "${apt[@]}" update
  (cd "$deps/src" && "${apt[@]}" source --download-only "trilinos=$trilinos_version")
  tarball_is_good
}

# Edits that C++20 and CUDA 13 ask of the sources; each is a line or two, named here by file.
patch_trilinos() {
  local kokkos=packages/kokkos cuda=packages/kokkos/core/src/Cuda
  # C++20 refuses a template-id as a constructor's name.
  sed -i 's/^  AbstractArrayValidator<ValidatorType, EntryType>();/  AbstractArrayValidator();/' \
    packages/teuchos/parameterlist/src/Teuchos_StandardParameterEntryValidators.hpp
  # Sources compiled together may each hold one: named by its line, so that no two are alike.
  sed -i -E -e '/^#define TEUCHOS_STATIC_SETUP/,$ s/\b(StaticSetup|staticSetup)\b/TEUCHOS_JOIN(\1, __LINE__)/g' \
    -e 's/^#define TEUCHOS_STATIC_SETUP/#define TEUCHOS_JOINED(a, b) a##b\n#define TEUCHOS_JOIN(a, b) TEUCHOS_JOINED(a, b)\n&/' \
    packages/teuchos/core/src/Teuchos_StaticSetupMacro.hpp
  # Compiled with others, which open a namespace of that name elsewhere.
  sed -i 's/<< Impl::human_memory_size/<< Kokkos::Impl::human_memory_size/' $kokkos/core/src/impl/Kokkos_Error.cpp
  sed -i -E 's/([( ])Experimental::RawMemoryAllocationFailure/\1Kokkos::Experimental::RawMemoryAllocationFailure/' \
    $kokkos/core/src/impl/Kokkos_HostSpace.cpp
  # CUDA 13 takes a location and flags where it took a device number.
  sed -i -e 's/cudaMemPrefetchAsync(ptr, bytes, space.cuda_device(),/cudaMemPrefetchAsync(ptr, bytes, cudaMemLocation{cudaMemLocationTypeDevice, space.cuda_device()}, 0,/' \
    $cuda/Kokkos_CudaSpace.cpp
  # The half intrinsics take no class that merely converts to __half, and there is no __half2double.
  sed -i -E -e 's/return (__half2[a-z_]+)\(val\);/return \1(half_t::impl_type(val));/' -e 's/__half2double/__half2float/' \
    $cuda/Kokkos_Cuda_Half.hpp
  # Hopper: compute capability 9.0.
  sed -i 's/case 86: return 8;/case 86:\n      case 90: return 8;/' $cuda/Kokkos_Cuda_BlockSize_Deduction.hpp
  sed -i 's/^#cmakedefine KOKKOS_ARCH_AMPERE86$/&\n#cmakedefine KOKKOS_ARCH_HOPPER90/' $kokkos/cmake/KokkosCore_config.h.in
  sed -i -e 's/^KOKKOS_ARCH_OPTION(AMPERE86 .*/&\nKOKKOS_ARCH_OPTION(HOPPER90        GPU  "NVIDIA Hopper generation CC 9.0")/' \
    -e 's/^CHECK_CUDA_ARCH(AMPERE86  *sm_86)/&\nCHECK_CUDA_ARCH(HOPPER90  sm_90)/' \
    -e 's/IF (KOKKOS_ARCH_AMPERE80 OR KOKKOS_ARCH_AMPERE86)/IF (KOKKOS_ARCH_AMPERE80 OR KOKKOS_ARCH_AMPERE86 OR KOKKOS_ARCH_HOPPER90)/' \
    $kokkos/cmake/kokkos_arch.cmake
  # C++20 for nvcc, and no architecture that CUDA 13 has dropped as the default.
  sed -i -e 's/^default_arch="sm_35"/default_arch="sm_90"/' \
    -e 's/^  --std=c++17|-std=c++17)/  --std=c++20|-std=c++20|--std=gnu++20|-std=gnu++20|--std=c++17|-std=c++17)/' $kokkos/bin/nvcc_wrapper
  sed -i 's/SUPPORTED_NVCC_FLAGS "-std=c++14;-std=c++17"/SUPPORTED_NVCC_FLAGS "-std=c++14;-std=c++17;-std=c++20"/' \
    $kokkos/cmake/kokkos_test_cxx_std.cmake
}

extract_trilinos() {
  local partial=$trilinos_source.partial top='Trilinos*'
  rm -rf "$trilinos_source" "$partial"
  mkdir -p "$partial"
  tar xzf "$deps/src/$trilinos_tarball" -C "$partial" --strip-components=1 --wildcards --no-wildcards-match-slash \
    "$top/*.cmake" "$top/CMakeLists.txt" "$top/README" "$top/LICENSE" "$top/cmake" "$top/commonTools" \
    "$top/packages/kokkos" "$top/packages/kokkos-kernels" "$top/packages/teuchos"
  (cd "$partial" && patch_trilinos)
  echo "$recipe" >"$partial/.recipe"
  mv "$partial" "$trilinos_source"
}

# build NAME SOURCE PREFIX OPTIONS...: configures, builds and installs for PREFIX under $stage_dir.
build() {
  local name=$1 source=$2 prefix=$3
  shift 3
  cmake -G Ninja -S "$source" -B "$deps/build/$name" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=20 \
    -DCMAKE_CXX_FLAGS=-march=x86-64-v3 "-DCMAKE_INSTALL_PREFIX=$prefix" "$@"
  cmake --build "$deps/build/$name" -j "$jobs"
  DESTDIR=$stage_dir cmake --install "$deps/build/$name"
}

build_kokkos() {  # build_kokkos NAME OPTIONS...
  local name=$1
  shift
  rm -rf "$stage_dir/$name" "$deps/build/kokkos-$name"
  stage_dir=$stage_dir/$name build "kokkos-$name" "$trilinos_source/packages/kokkos" "$deps/$name" \
    -DKokkos_CXX_STANDARD=20 -DKokkos_ENABLE_SERIAL=ON -DKokkos_ENABLE_OPENMP=ON -DCMAKE_UNITY_BUILD=ON "$@"
}

build_kernels() {  # build_kernels NAME OPTIONS...
  local name=$1
  shift
  rm -rf "$deps/build/kernels-$name"
  stage_dir=$stage_dir/$name build "kernels-$name" "$trilinos_source/packages/kokkos-kernels" "$deps/$name" \
    "-DKokkos_ROOT=$stage_dir/$name$deps/$name" -DKokkosKernels_ADD_DEFAULT_ETI=OFF -DKokkosKernels_ENABLE_TPL_BLAS=ON \
    -DBLAS_LIBRARIES=openblas "-DBLAS_LIBRARY_DIRS=$(pkg-config --variable=libdir openblas)" \
    -DKokkosKernels_ENABLE_TPL_LAPACK=OFF '-DF77_BLAS_MANGLE=(name,NAME) name ## _' "$@"
}

# Unoptimised and several sources at a time: it reads one deck a run, and compiling it is the longest part of the set-up.
build_teuchos() {
  rm -rf "$stage_dir/teuchos" "$deps/build/teuchos"
  stage_dir=$stage_dir/teuchos build teuchos "$trilinos_source" "$deps/teuchos" \
    -DTrilinos_ENABLE_ALL_PACKAGES=OFF -DTrilinos_ENABLE_ALL_OPTIONAL_PACKAGES=OFF -DTrilinos_ENABLE_TESTS=OFF \
    -DTrilinos_ENABLE_EXAMPLES=OFF -DTrilinos_ENABLE_Fortran=OFF -DTrilinos_INSTALL_TriBITS=OFF \
    '-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG' -DCMAKE_UNITY_BUILD=ON \
    -DTrilinos_ENABLE_Kokkos=OFF -DTrilinos_ENABLE_TeuchosCore=ON -DTrilinos_ENABLE_TeuchosParser=ON \
    -DTrilinos_ENABLE_TeuchosParameterList=ON
}

# publish NAME: the staged prefix becomes the real one, in one rename.
publish() {
  rm -rf "${deps:?}/$1" "$deps/build"/*"$1"
  mv "$stage_dir/$1$deps/$1" "$deps/$1"
  rm -rf "${stage_dir:?}/$1"
}
