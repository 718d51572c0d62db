"""Test hosts on one Linux machine: namespaces joined by a network.

Hosts h1 .. hN have their own net, uts, ipc, mount and pid namespaces, with their own /dev/shm and /etc/hosts. They lie inside
a front, which has the same and from which jobs are started. The network (veth and a bridge, or a shaped wire) lies in the
front as well. Everything ends with the first process of the front, and that ends with the process that made it. So nothing
has a name outside, several sets of hosts do not meet, and nothing is left behind.
"""
import collections
import ctypes
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build"

START_S = 20  # a machine that is busy takes a second for four namespaces
FRONT = "front"
FRONT_ADDRESS = "10.77.0.254"
HOSTS_MAX = 200
TOOLS = ["unshare", "nsenter", "ip", "mount", "hostname"]

UNSHARE = ["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
           "--propagation", "private", "--"]
# The first process of a host ignores SIGCHLD, so that the kernel reaps the orphans that become its children. The front also
# mounts a list of all hosts, which the hosts inherit; its file is deleted at once and lives as long as it is mounted.
FIRST = """set -e
hostname "$1"
mount -t tmpfs shm /dev/shm
if [ -n "$2" ]; then
  printf '%s' "$2" >/dev/shm/names
  mount --bind /dev/shm/names /etc/hosts
  rm /dev/shm/names
fi
ip link set lo up
trap '' CHLD
echo ready
exec sleep infinity </dev/null >/dev/null 2>&1
"""

Counter = collections.namedtuple("Counter", "sent_bytes received_bytes")

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(sig=signal.SIGKILL):
    """Returns a preexec_fn: the child gets the signal when the thread that starts it ends, so that must be the main thread."""
    return lambda: libc.prctl(PR_SET_PDEATHSIG, int(sig), 0, 0, 0)


def why_no_hosts():
    """Returns why this user cannot make hosts on this machine, or None."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        return f"these programs are missing: {' '.join(missing)}"
    if os.geteuid() != 0:
        return f"only root may make network namespaces, and this is user {os.geteuid()}"
    tried = subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "shm", "/dev/shm"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
    if tried.returncode != 0:
        return f"root may not make namespaces here: {tried.stderr.strip()}"
    tried = subprocess.run([*UNSHARE, "ip", "link", "add", "bridge", "type", "bridge"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
    return f"this kernel has no bridges: {tried.stderr.strip()}" if tried.returncode != 0 else None


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def stat_of(pid):
    """Returns the fields of /proc/PID/stat after the name, or None where there is no such process."""
    try:
        return pathlib.Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def only_descendant(pid):
    """Follows a chain of processes with one child each to its end."""
    while True:
        children = [other for other in processes() if (stat := stat_of(other)) and int(stat[1]) == pid]
        if len(children) != 1:
            return pid
        pid = children[0]


def inner_pid(pid):
    """Returns the number of a host's first process inside of the front."""
    for line in pathlib.Path("/proc", str(pid), "status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-2])
    raise OSError(f"the kernel does not say which number process {pid} has in the namespaces of the front")


def wait_until(reached, seconds, what):
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not after {seconds} s")
        time.sleep(0.01)


def compiled_wire():
    """Returns the program of the shaped wire, compiled if its source is newer."""
    source, program = HERE / "wire.cpp", BUILD / "hosts" / "wire"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(parents=True, exist_ok=True)
        new = program.with_name(f"wire.{os.getpid()}")
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-Wall", "-Wextra", "-o", str(new), str(source)],
                       check=True)
        new.replace(program)
    return program


def plugged_in(interface, address):
    """Returns the commands of ip that bring an interface up. Without an address of IPv6, the kernel sends nothing by itself
    but looks for neighbours, so counters count what programs send."""
    return [f"link set {interface} addrgenmode none", f"addr add {address}/24 dev {interface}", f"link set {interface} up"]


class Hosts:
    """Hosts h1 .. hN. Use it in a `with`, or call `close`.

    wire: None for veth, which is as fast as the machine; (rate_mbit, delay_us) for a wire with that rate in each direction
    of each port and that one-way delay.
    outlive: the hosts stay when this process ends; `saved` and `Hosts.load` hand them to other processes.
    """

    def __init__(self, count, wire=None, outlive=False):
        if not 1 <= count <= HOSTS_MAX:
            raise ValueError(f"{count} hosts are asked for, 1 to {HOSTS_MAX} are possible")
        self.names = [f"h{number}" for number in range(1, count + 1)]
        self.wire = wire
        self.pids = {}  # of the first processes
        self.inner = {}
        self.wire_pid = None
        self._outlive = outlive
        self._started = []
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _make(self):
        addresses = [("127.0.0.1", "localhost"), (FRONT_ADDRESS, FRONT)] + [(self.address(name), name) for name in self.names]
        names = "".join(f"{address} {name}\n" for address, name in addresses)
        self._begin(FRONT, [*UNSHARE, "sh", "-c", FIRST, "sh", FRONT, names])
        for name in self.names:
            self._begin(name, [*self._enter(FRONT), *UNSHARE, "sh", "-c", FIRST, "sh", name, ""])
        self.inner = {name: inner_pid(self.pids[name]) for name in self.names}
        if self.wire:
            self._join_by_wire()
        else:
            self._join_by_bridge()

    def _begin(self, name, command):
        self._start(command, name)
        self.pids[name] = only_descendant(self._started[-1].pid)

    def _start(self, command, what, stdin=subprocess.DEVNULL):
        """Starts a process that says "ready" and then runs until it is killed."""
        process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                   preexec_fn=None if self._outlive else die_with_parent())
        self._started.append(process)
        said = b""
        deadline = time.monotonic() + START_S
        while b"ready\n" not in said:
            if not select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"{what} is not ready after {START_S} s; it said: {said.decode(errors='replace')}")
            more = os.read(process.stdout.fileno(), 4096)
            if not more:
                raise OSError(f"{what} could not be made: {said.decode(errors='replace').strip()}")
            said += more
        process.stdout.close()

    def _enter(self, name, *namespaces):
        return ["nsenter", "-t", str(self.pids[name]), *(namespaces or ["-a"]), "--"]

    def _ip(self, name, *commands):
        subprocess.run([*self._enter(name, "-n"), "ip", "-batch", "-"], input="".join(f"{command}\n" for command in commands),
                       text=True, check=True)

    def _join_by_bridge(self):
        commands = ["link add bridge type bridge", *plugged_in("bridge", FRONT_ADDRESS)]
        for number, name in enumerate(self.names, 1):
            commands += [f"link add port{number} type veth peer name eth0 netns {self.pids[name]}",
                         f"link set port{number} addrgenmode none", f"link set port{number} master bridge up"]
        self._ip(FRONT, *commands)
        self._bring_up_hosts()

    def _join_by_wire(self):
        if not os.path.exists("/dev/net/tun"):
            raise OSError("a shaped wire needs /dev/net/tun, which this machine lacks")
        rate_mbit, delay_us = self.wire
        ports = len(self.names) + 1
        self._start([*self._enter(FRONT), str(compiled_wire()), str(rate_mbit), str(delay_us), str(ports)], "the wire",
                    stdin=subprocess.PIPE)
        self.wire_pid = only_descendant(self._started[-1].pid)
        moves = [f"link set wire{number} netns {self.pids[name]} name eth0" for number, name in enumerate(self.names, 1)]
        self._ip(FRONT, *moves, *plugged_in(f"wire{ports}", FRONT_ADDRESS))
        self._bring_up_hosts()

    def _bring_up_hosts(self):
        for name in self.names:
            self._ip(name, *plugged_in("eth0", self.address(name)))

    def address(self, name):
        return f"10.77.0.{name[1:]}"

    def enter(self, name, command):
        """Returns the words of a command that runs `command` on a host, or on the front, in this folder."""
        return [*self._enter(name), "/bin/sh", "-c", 'cd "$0" && exec "$@"', os.getcwd(), *command]

    def run(self, name, command, **options):
        """Like subprocess.run. What runs there ends with this process at the latest."""
        return subprocess.run(self.enter(name, command), preexec_fn=die_with_parent(), **options)

    def environment(self):
        """Returns the variables with which `remote_shell` finds the hosts."""
        return {"TRANSHIP_TEST_HOSTS": " ".join(f"{name}={pid}" for name, pid in self.inner.items())}

    def shared_memory(self, name):
        """Returns the folder, as this process sees it, that is /dev/shm on a host."""
        return pathlib.Path("/proc", str(self.pids[name]), "root", "dev", "shm")

    def counters(self):
        """Returns {host: {interface: Counter}}. Traffic within a host passes "lo", traffic between hosts passes "eth0"."""
        return {name: self._counters_of(name) for name in self.names}

    def _counters_of(self, name):
        found = {}
        for line in pathlib.Path("/proc", str(self.pids[name]), "net", "dev").read_text().splitlines()[2:]:
            interface, _, numbers = line.partition(":")
            numbers = numbers.split()
            found[interface.strip()] = Counter(sent_bytes=int(numbers[8]), received_bytes=int(numbers[0]))
        return found

    def cut(self, name):
        """Unplugs a host: what it sends is lost, and what is sent to it. Its interface keeps its address."""
        self._plug(name, "cut", "down")

    def heal(self, name):
        self._plug(name, "heal", "up")

    def _plug(self, name, word, state):
        if self.wire:
            with open(f"/proc/{self.wire_pid}/fd/0", "w") as commands:
                commands.write(f"{word} {name[1:]}\n")
        else:
            self._ip(FRONT, f"link set port{name[1:]} {state}")

    def close(self):
        """Ends all processes of the hosts, and with them their namespaces and networks."""
        if FRONT in self.pids:
            try:
                os.kill(self.pids[FRONT], signal.SIGKILL)
            except ProcessLookupError:
                pass
            wait_until(lambda: not is_running(self.pids[FRONT]), START_S, "the front ends")
        for process in self._started:
            if FRONT not in self.pids:
                process.kill()  # before the first process was known
            process.wait()
            if process.stdin:
                process.stdin.close()
        self._started = []
        self.pids = {}

    def save(self, file):
        """Writes what `load` needs, for hosts that outlive this process."""
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f"{file.name}.{os.getpid()}")
        new.write_text(json.dumps({"names": self.names, "wire": self.wire, "pids": self.pids, "inner": self.inner,
                                   "wire_pid": self.wire_pid, "born": stat_of(self.pids[FRONT])[19]}))
        new.replace(file)

    @classmethod
    def load(cls, file):
        """Returns the hosts that a file describes, or None if they are gone: no such file, or another machine start."""
        if not file.exists():
            return None
        said = json.loads(file.read_text())
        stat = stat_of(said["pids"][FRONT])
        if not stat or stat[19] != said.pop("born"):
            return None
        hosts = cls.__new__(cls)
        vars(hosts).update(said, _outlive=True, _started=[])
        return hosts


def is_running(pid):
    stat = stat_of(pid)
    return stat is not None and stat[0] not in "ZX"


def end_with_exception(*_):
    """A handler of signals: the process leaves its `with` blocks, and so ends its hosts."""
    sys.exit(128 + signal.SIGTERM)
