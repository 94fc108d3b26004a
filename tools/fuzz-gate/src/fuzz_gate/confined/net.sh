# Makes a machine of its own for the fuzzer, within the namespaces that `unshare` made: each change of the root file
# system lands in /mnt/changed and nowhere else, and signals reach processes in here alone.
#
# Standard input is the program. Arguments: the number of the user that runs it, and its words. GROUPS_OF_PROCESSES are
# the cgroups of which the first one that can be made has all of it, with at most PROCESSES_MAX processes.
set -eu
user=$1
shift
# A storm of forks stays in this group, so that the machine around it goes on.
for group in $GROUPS_OF_PROCESSES; do
    mkdir -p "$group" && echo "$PROCESSES_MAX" > "$group/pids.max" && echo 0 > "$group/cgroup.procs" && break
done 2> /dev/null || echo "the number of processes is not bounded: there is no cgroup for it" >&2
mount --make-rprivate /
mount -t tmpfs -o mode=755 none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
cd /mnt/root
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 none dev/shm
mount -t proc none proc
mount -t sysfs -o ro none sys 2> /dev/null || mount --rbind -o ro /sys sys
for folder in tmp var/tmp; do
    mount -t tmpfs -o mode=1777 none $folder
done
mount -t tmpfs -o mode=755 none run
mount -t tmpfs -o mode=755,size=1g none mnt
mkdir mnt/changed mnt/old mnt/program mnt/world mnt/template mnt/state mnt/lower
mount --bind /mnt/upper mnt/changed
# What of it differs in no more than its mode is told by the original.
mount --bind / mnt/lower
mount -o remount,bind,ro mnt/lower
cat > mnt/program/rondo-fuzz-gate
chmod 755 mnt/program/rondo-fuzz-gate
pivot_root . mnt/old
cd /
umount -l /mnt/old
rmdir /mnt/old
# A connection to the loopback is an effect.
ip link set lo up 2> /dev/null || python3 -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0x41))' || true
as_user=()
if [ "$user" != 0 ]; then
    chown "$user:$user" /mnt/world /mnt/template /mnt/state
    as_user=(setpriv "--reuid=$user" "--regid=$user" --clear-groups)
fi
# This shell stays: it collects the processes that lose their parent.
"${as_user[@]}" /mnt/program/rondo-fuzz-gate "$@"
exit $?
