#!/usr/bin/env bash
#
# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Installs the tarball that cmake/dist.cmake makes in an empty root of a distribution, as on a new machine, and works
# through the tutorial of a protein there, with few steps. Prints times and sizes. Needs root rights and debootstrap.
#
#     packaging/try_root.sh FOLDER SUITE MIRROR [OPTIONS OF DEBOOTSTRAP]
#
# GROMACS_SOURCE, if it is set, is a tarball to take along. So are options of quickstart.sh that are set.

set -euo pipefail
root=$(realpath -m -- "$1") suite=$2 mirror=$3
shift 3
clone=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scripts=/usr/share/debootstrap/scripts

# Runs a command in the root, with a new user's environment.
inside()
{
    chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb \
        "${options[@]}" bash -e -o pipefail -c "$1"
}

# Files and commands of a page, as one script.
script()
{
    awk '/^`[a-z0-9_.]+`:$/ { file = $0; gsub(/[`:]/, "", file); next }
        /^```ini$/ { print "cat > " file " << END"; shown = 1; ends = "END"; next }
        /^```bash$/ { shown = 1; ends = ""; next }
        /^```$/ { if (shown) { print ends }; shown = 0; next }
        shown' "$1" | sed 's/^\(nsteps *\)= .*/\1= 100/; s/^\(nstenergy *\)= .*/\1= 10/'
}

# Unmounts the folders of the machine that are mounted in the root.
unmount()
{
    local folder mounted=()
    for folder in "$root/proc" "$root/dev"; do
        if mountpoint -q "$folder"; then mounted+=("$folder"); fi
    done
    if [ ${#mounted[@]} -gt 0 ]; then umount "${mounted[@]}"; fi
}

if [ ! -e "$root/etc/os-release" ]; then
    steps=$scripts/$suite
    [ -e "$steps" ] || steps=$scripts/gutsy # a release of Ubuntu that is newer than debootstrap
    debootstrap --variant=minbase "$@" "$suite" "$root" "$mirror" "$steps" > "$root.log" 2>&1 \
        || { tail -n 5 "$root.log" >&2; exit 1; }
fi
trap unmount EXIT
for folder in proc dev; do
    mountpoint -q "$root/$folder" || mount --bind "/$folder" "$root/$folder"
done
cp -L /etc/resolv.conf "$root/etc/resolv.conf"

options=()
for name in FARFIELD_MPI FARFIELD_DOUBLE FARFIELD_CUDA FARFIELD_JOBS CUDAARCHS GROMACS_OPTIONS; do
    [ -z "${!name:-}" ] || options+=("$name=${!name}")
done
if [ -n "${GROMACS_SOURCE:-}" ]; then
    cp -L "$GROMACS_SOURCE" "$root/root/gromacs.tar.xz"
    options+=(GROMACS_SOURCE=/root/gromacs.tar.xz)
fi
if [ -n "${PIP_CERT:-}" ]; then # certificates of a site's own
    cp -L "$PIP_CERT" "$root/root/certificates.pem"
    options+=(PIP_CERT=/root/certificates.pem)
fi
cmake -P "$clone/cmake/dist.cmake"
rm -rf "$root"/root/farfield-*
tar -C "$root/root" -xzf "$clone"/build/dist/farfield-*.tar.gz

before=$(du -smx "$root" | cut -f 1)
SECONDS=0
inside "cd /root/farfield-*; ./quickstart.sh install /opt/farfield"
installed=$SECONDS
{ echo "source /opt/farfield/bin/GMXRC"; script "$clone/docs/tutorial-protein.md"; } > "$root/root/tutorial.sh"
SECONDS=0
inside "rm -rf /root/tutorial; mkdir /root/tutorial; cd /root/tutorial
    cp /root/farfield-*/build/share/farfield/protein.pdb .
    mv /root/farfield-* /root/.cache /tmp # the prefix needs neither
    bash -e -o pipefail ../tutorial.sh > tutorial.log 2>&1 || { tail -n 30 tutorial.log; exit 1; }
    tail -n 12 tutorial.log"

sed -n 's/^PRETTY_NAME=//p' "$root/etc/os-release"
inside "gcc --version | head -n 1"
echo "installed in $installed s, tutorial in $SECONDS s"
echo "MB: prefix $(du -sm "$root/opt/farfield" | cut -f 1), root $before before, $(du -smx "$root" | cut -f 1) after"
