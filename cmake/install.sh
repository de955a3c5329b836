# shellcheck shell=bash
#
# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Puts the patched GROMACS and the library into a prefix; sourced by quickstart.sh.
#
# Programs and libraries there find each other by their own places, and nothing names the folders of the build:
# the prefix may be moved as a whole, and the build may be deleted. A list of its files tells a later installation
# that the prefix is one.

installedFiles=share/farfield/files

# Sets prefix, an absolute path, and makes that folder. Others' files are not mixed with ours.
# $1: folder
choosePrefix()
{
    case $1 in -*) fail "$1 is no folder; try ./quickstart.sh help" ;; esac
    prefix=$(realpath -m -- "$1")
    case $prefix/ in
        "$(realpath -m -- "$build")"/* | "$(realpath -m -- "$cache")"/*)
            fail "$prefix lies in a folder of the build; name another one, such as $HOME/farfield." ;;
        *:*) fail "a folder in PATH cannot have a colon in its name: $prefix" ;;
    esac
    [ ! -e "$prefix" ] || [ -d "$prefix" ] || fail "$prefix is a file; name a folder."
    (umask 022 && mkdir -p -- "$prefix") 2> /dev/null && [ -w "$prefix" ] \
        || fail "cannot write to $prefix. Name a folder of your own, such as $HOME/farfield: no root rights are needed."
    [ -e "$prefix/$installedFiles" ] || [ -z "$(ls -A -- "$prefix")" ] \
        || fail "$prefix holds other files. Name a new folder, such as $prefix/farfield."
}

# Whether a path leads into the cache, by links, too.
# $1: path
isInCache() { [[ $(realpath -m -- "$1") == "$(realpath -m -- "$cache")"/* ]]; }

# Copies libraries that programs and libraries load from the cache, as CUDA's from PyPI, into lib/, and takes the
# cache out of the paths by which they are looked for.
# $1: folder of the installation
bundleLibraries()
{
    local file old new library entry script=$build/rpath.cmake
    command -v readelf > /dev/null || { echo "readelf, of binutils, is needed"; return 1; }
    while read -r file; do
        old=$(readelf -d "$file" 2> /dev/null | sed -n 's/.*(R\(UN\)\?PATH).*\[\(.*\)\]$/\2/p')
        [ -n "$old" ] || continue
        new=
        while read -r entry; do
            if ! isInCache "$entry"; then
                new+=${new:+:}$entry
            elif ldd "$file" | grep -q libcufft; then
                # cuBLAS comes with it, and is loaded only once it is used: ldd does not tell
                cp -nL "$entry"/libcublas{,Lt}.so.[0-9]* "$1/lib/" || return 1
            fi
        done < <(tr : '\n' <<< "$old")
        [ "$new" != "$old" ] || continue
        while read -r library; do
            ! isInCache "$library" || [ -e "$1/lib/${library##*/}" ] || cp -L "$library" "$1/lib/" || return 1
        done < <(ldd "$file" | sed -n 's/.* => \(.*\) (0x[0-9a-f]*)$/\1/p')
        echo "file(RPATH_CHANGE FILE [==[$file]==] OLD_RPATH [==[$old]==] NEW_RPATH [==[$new]==])" > "$script"
        cmake -P "$script" || return 1
    done < <(find "$1/bin" "$1/lib" -type f)
}

# Makes a folder with what the prefix is to have.
# $1: folder
stageInstallation()
{
    local gromacs name version
    gromacs=$(cat "$build/share/gromacs/origin")
    version=$(sed -n 's/^GROMACS version: *//p' "$build/gmx-version.log")
    cmake --install "$gromacs/build" --prefix "$1" && cmake --install "$build" --prefix "$1" || return 1
    # Instead come ours, and a completion that knows the options of the patch; headers are useless without a library
    rm -rf "$1/include/gromacs" "$1"/bin/GMXRC* "$1"/bin/gmx-completion*
    for name in "${programs[@]}"; do
        install -m 755 "$build/bin/$name" "$1/bin/$name" || return 1
        echo "complete -o nospace -F _gmx_compl $name" > "$1/bin/gmx-completion-$name.bash"
    done
    bundleLibraries "$1" \
        && (cd "$1/bin" && ./gmx -quiet help -export completion) \
        && install -m 644 "$root"/packaging/prefix/GMXRC* "$1/bin" \
        && ln -s GMXRC "$1/bin/GMXRC.bash" \
        && ln -s GMXRC "$1/bin/GMXRC.zsh" \
        && install -D -m 644 "$root/packaging/prefix/modulefile" "$1/share/modulefiles/gromacs/$version" \
        && install -D -m 644 /dev/null "$1/$installedFiles" \
        && (cd "$1" && find . ! -type d | sort > "$installedFiles") \
        && chmod -R u+w,a+rX "$1"
}

# Replaces an earlier installation. A program that runs keeps its file.
# Needs programs and prefix.
installInto()
{
    local stage=$build/installation size file
    step "Installing into $prefix"
    exec 8> "$build/install.lock"
    flock 8
    rm -rf "$stage"
    (umask 022 && stageInstallation "$stage") > "$build/install.log" 2>&1 \
        || { tail -n 30 "$build/install.log" >&2; fail "the installation could not be put together; see $build/install.log"; }
    size=$(du -sm "$stage" | cut -f 1)
    (
        umask 022
        # Files of both are ours until all are there, so that the command may be interrupted
        mkdir -p "$prefix/${installedFiles%/*}" \
            && touch "$prefix/$installedFiles" \
            && sort -u "$stage/$installedFiles" "$prefix/$installedFiles" > "$build/files" \
            && cp "$build/files" "$prefix/$installedFiles" \
            && comm -23 "$build/files" "$stage/$installedFiles" | while read -r file; do
                rm -f "$prefix/$file" || exit 1
            done \
            && cp -RP --remove-destination "$stage"/* "$prefix"
    ) || fail "not all files could be copied to $prefix; the message is above."
    rm -rf "$stage"
    "$prefix/bin/gmx" -quiet -version > "$build/install.log" 2>&1 \
        || { cat "$build/install.log" >&2; fail "$prefix/bin/gmx does not start."; }
    exec 8>&-
    note "$size MB. To use it:"
    note "source $(printf %q "$prefix/bin/GMXRC")"
}
