# Builds the place in which commands of the fuzzer run, within the namespaces that `unshare` made, and
# enters it: system directories that cannot be written, memory for everything else, no way out.
#
# Arguments: an empty directory, and the program that goes on in there.
set -eu
root=$1 program=$2
mount --make-rprivate /
mount -t tmpfs -o size=64m,nr_inodes=20000,mode=755,nosuid,nodev none "$root"
for folder in bin sbin lib lib32 lib64 libx32 usr; do
    if [ -L "/$folder" ]; then
        cp -P "/$folder" "$root/"
    elif [ -d "/$folder" ]; then
        mkdir "$root/$folder"
        mount --bind "/$folder" "$root/$folder"
        mount -o remount,bind,ro,nosuid,nodev "$root/$folder"
    fi
done
mkdir "$root/dev" "$root/etc" "$root/proc" "$root/program" "$root/world"
mkdir -m 1777 "$root/tmp"
for device in null zero urandom; do
    : > "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
for number in 0 1 2; do
    name=$(set -- stdin stdout stderr; shift "$number"; echo "$1")
    ln -s "/proc/self/fd/$number" "$root/dev/$name"
done
mount -t proc -o nosuid,nodev,noexec none "$root/proc"
echo 'root:x:0:0:CANARY:/root:/bin/sh
nobody:x:65534:65534:CANARY:/world/home:/bin/bash' > "$root/etc/passwd"
echo 'nogroup:x:65534:' > "$root/etc/group"
for file in ld.so.cache magic; do
    [ ! -f "/etc/$file" ] || cp "/etc/$file" "$root/etc/"
done
# Programs such as `awk` are links by way of it.
[ ! -d /etc/alternatives ] || cp -R -P /etc/alternatives "$root/etc/"
cp "$program" "$root/program/rondo-fuzz-gate"
# The listener on the loopback is how a connection is noticed.
ip link set lo up 2> /dev/null || python3 -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0x41))'
cd "$root"
run=(/program/rondo-fuzz-gate --runner)
if [ "${RONDO_FUZZ_IS_ROOT:-}" = 1 ]; then
    chown 65534:65534 world tmp
    exec chroot --userspec=65534:65534 --groups=65534 "$root" /usr/bin/setpriv --no-new-privs "${run[@]}"
fi
exec chroot "$root" /usr/bin/setpriv --no-new-privs --bounding-set=-all --inh-caps=-all "${run[@]}"
