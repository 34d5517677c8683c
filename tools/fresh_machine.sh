#!/bin/sh
# `make fresh-machine`: a bare Debian 12 (minbase and four packages), a clone of the last commit, and `make demo` in it.
#
#   root       as root, with user namespaces
#   container  as root where user namespaces are refused and the clone is under a closed home (what a chroot does)
#   user       as an ordinary user
#
# Needs root, debootstrap and the network. FRESH_CASES="user" picks cases; FRESH_BIND="/etc/ssl/certs /opt/x" shows folders
# of this machine inside, read-only (certificates, a local wheel folder); FRESH_KEEP=1 keeps the tree; FRESH_MIRROR names a
# Debian mirror; FRESH_COMMAND replaces `make demo`. Proxy and pip settings of the environment are handed on.
set -eu
cd "$(dirname "$0")/.."

packages=python3,python3-venv,make,git
cases=${FRESH_CASES:-root container user}
command=${FRESH_COMMAND:-make demo}
here=$(pwd -P)

die() { echo "fresh-machine: $1" >&2; exit 1; }

[ "$(id -u)" = 0 ] || die "needs root (debootstrap makes device files and changes owners): sudo make fresh-machine"
command -v debootstrap >/dev/null || die "debootstrap is missing:  apt-get install -y debootstrap"
command -v unshare >/dev/null || die "unshare is missing:  apt-get install -y util-linux"
git rev-parse --verify --quiet HEAD >/dev/null || die "this is no git clone with a commit"
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo "fresh-machine: uncommitted changes are not part of the test" >&2

mirror=${FRESH_MIRROR:-$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb  *\(\[[^]]*\] *\)\{0,1\}\([^ ]*\) .*/\2/p' \
    /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep '/debian/*$' | head -n 1)}
[ -n "$mirror" ] || die "no Debian mirror is named in /etc/apt; name one:  FRESH_MIRROR=http://.../debian make fresh-machine"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/longtake-fresh.XXXXXX")
chmod 755 "$work"
root=$work/root
clean() { [ -n "${FRESH_KEEP:-}" ] && echo "kept: $work" || rm -rf --one-file-system "$work"; }
trap clean EXIT
trap 'exit 130' INT TERM

seconds() { date +%s; }

started=$(seconds)
echo "fresh-machine: debootstrap minbase bookworm with $packages from $mirror"
debootstrap --variant=minbase --include="$packages" bookworm "$root" "$mirror" >"$work/debootstrap.log" 2>&1 ||
    { tail -n 20 "$work/debootstrap.log" >&2; die "debootstrap failed"; }
echo "fresh-machine: a bare Debian after $(($(seconds) - started)) s"

cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
cp -L /etc/hosts "$root/etc/hosts" 2>/dev/null || true
chroot "$root" useradd --create-home --shell /bin/sh maker
chmod 700 "$root/root" "$root/home/maker"
git clone --quiet --no-hardlinks "$here" "$work/clone"

# What a run inside needs of our environment, as a file, because the run starts with an empty one.
env | grep -E '^(PIP_[A-Z_]*|[a-z]*_proxy|[A-Z]*_PROXY|SSL_CERT_FILE|REQUESTS_CA_BUNDLE)=' |
    sed "s/'/'\\\\''/g; s/^\([A-Za-z_]*\)=\(.*\)\$/export \1='\2'/" >"$root/etc/longtake-fresh.env" || true

# Runs one case inside private mount and process namespaces: whatever it starts ends with it, and no mount stays.
enter() {
    account=$1 place=$2 way=$3
    unshare --mount --pid --fork --kill-child --propagation private -- /bin/sh -euc '
        root=$1 account=$2 place=$3 way=$4 command=$5 binds=$6
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
        for folder in $binds; do
            mkdir -p "$root$folder"
            mount --bind -o ro "$folder" "$root$folder"
        done
        line=". /etc/longtake-fresh.env; cd \"$place\" && $command"
        if [ "$way" = pivot ]; then
            mkdir -p "$root/.old"
            cd "$root"
            pivot_root . .old
            umount -l /.old
            rmdir /.old
            exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin su - "$account" -c "$line" </dev/null
        fi
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            chroot "$root" su - "$account" -c "$line" </dev/null
    ' sh "$root" "$account" "$place" "$way" "$command" "${FRESH_BIND:-}"
}

failed=""
for case in $cases; do
    case $case in
        root) account=root place=/srv/longtake way=pivot ;;
        container) account=root place="/root/my longtake" way=chroot ;;
        user) account=maker place="/home/maker/longtake" way=pivot ;;
        *) die "there is no case '$case': root container user" ;;
    esac
    rm -rf "${root:?}$place"
    cp -a "$work/clone" "$root$place"
    chroot "$root" chown -R "$account" "$place"
    echo
    echo "fresh-machine: case '$case': $command in $place as $account"
    started=$(seconds)
    if enter "$account" "$place" "$way"; then
        echo "fresh-machine: case '$case' passed after $(($(seconds) - started)) s"
    else
        echo "fresh-machine: case '$case' FAILED after $(($(seconds) - started)) s" >&2
        failed="$failed $case"
    fi
    left=$(for link in /proc/[0-9]*/root; do readlink "$link" 2>/dev/null || true; done | grep -c "^$root" || true)
    [ "$left" = 0 ] || { echo "fresh-machine: case '$case' left $left processes" >&2; failed="$failed $case"; }
done
echo
[ -z "$failed" ] || die "failed:$failed"
echo "fresh-machine: all cases passed: $cases"
