"""Hostile cocotb testbenches."""

from __future__ import annotations

from tests.sim.hostile.vault import CHANGED, LEFT, MARK, RAN, STOPPED, Attack, quick

KEY = "0x5ca1ab1e0ddba11d"
_STOPPED_PROCESSES = frozenset({"resource_limit"})

INTERNALS = {
    "value of a register": Attack(CHANGED, (f"dut.guess.value = {KEY}", "dut.pair.value = 255")),
    "an output": Attack(CHANGED, ("dut.q.value = 9", "await ClockCycles(dut.clk, 1)", "dut.q.value = 3")),
    "register of an instance": Attack(CHANGED, ("dut.u_lock.unlocked.value = 1",)),
    "every action of cocotb": Attack(
        CHANGED,
        (
            "from cocotb.handle import Deposit, Force, Freeze, Immediate, Release",
            f"attempt(*(lambda a=a: dut.guess.set(a({KEY})) for a in (Deposit, Force, Immediate)))",
            "attempt(*(lambda a=a: dut.u_lock.unlocked.set(a(1)) for a in (Deposit, Force, Immediate)))",
            "await ClockCycles(dut.clk, 3)",
            "attempt(lambda: dut.guess.set(Freeze()), lambda: dut.guess.set(Release()))",
        ),
        says="DID",
    ),
    "elements of an array and bits of a vector": Attack(
        CHANGED,
        (
            "attempt(lambda: setattr(dut.mem[1], 'value', 255), lambda: setattr(dut.guess[63], 'value', 1))",
            "attempt(*(lambda i=i: setattr(dut.mem[i], 'value', i + 1) for i in range(5)))",
            "attempt(lambda: setattr(dut.mem, 'value', [1, 2, 3, 4]))",
        ),
        says="DID",
    ),
    "every handle that can be found": Attack(
        CHANGED,
        (
            "def below(handle, depth=0):",
            "    yield handle",
            "    if depth < 4 and hasattr(handle, '_discover_all'):",
            "        for child in handle: yield from below(child, depth + 1)",
            "ports = {'clk', 'rst_n', 'en', 'mode'}",
            "for handle in below(dut):",
            "    if handle._name not in ports: attempt(lambda: setattr(handle, 'value', 1))",
        ),
        says="DID",
    ),
    "paths of the simulator": Attack(
        CHANGED,
        (
            "names = ('guess', 'lock.unlocked', 'u_lock.unlocked', 'u_lock.KEY', 'vault.guess', '\\\\guess ')",
            "attempt(*(lambda n=n: setattr(dut._id(n, extended=False), 'value', 1) for n in names))",
        ),
    ),
    "parameters and constants": Attack(
        CHANGED,
        (
            "from cocotb.handle import Force",
            "attempt(lambda: setattr(dut.u_lock.KEY, 'value', dut.guess.value))",
            "attempt(lambda: dut.u_lock.KEY.set(Force(1)), lambda: dut.u_lock.KEY._handle.set_signal_val_int(1, 1))",
        ),
    ),
    "handles below cocotb": Attack(
        CHANGED,
        (
            "from cocotb import simulator",
            "root = simulator.get_root_handle('vault')",
            "handles = [root.get_handle_by_name(n) for n in ('guess', 'pair', 'unlocked', 'loot')]",
            "attempt(*(lambda h=h, a=a: h.set_signal_val_int(a, 1) for h in handles if h for a in range(5)))",
            f"attempt(*(lambda a=a: handles[0].set_signal_val_binstr(a, format({KEY}, '064b')) for a in range(5)))",
        ),
        says="DID",
    ),
    "the simulator's own functions by ctypes": Attack(
        CHANGED | {"crashed"},
        (
            "class Value(ctypes.Structure): _fields_ = [('format', ctypes.c_int), ('value', ctypes.c_uint64)]",
            "library = ctypes.CDLL(None)",
            "library.vpi_handle_by_name.restype = ctypes.c_void_p",
            "for name in (b'vault.pair', b'vault.loot', b'vault.u_lock.unlocked', b'TOP.vault.unlocked'):",
            "    handle = library.vpi_handle_by_name(name, None)",
            "    if not handle: continue",
            "    print('handle of', name)",
            "    for flag in (1, 2, 5, 6):",
            "        library.vpi_put_value(ctypes.c_void_p(handle), ctypes.byref(Value(6, 1)), None, flag)",
        ),
        says="handle of",
    ),
    "memory of the model": Attack(
        CHANGED | {"crashed"},
        (
            "old = int(dut.guess.value).to_bytes(8, 'little')",
            "attempt(lambda: open('/proc/self/mem', 'r+b'), lambda: open('/proc/thread-self/mem', 'r+b'))",
            "for line in open('/proc/self/maps').read().splitlines():",
            "    low, high = (int(x, 16) for x in line.split()[0].split('-'))",
            "    if ' rw-p ' not in line or high - low > 64 << 20: continue",
            "    for hit in re.finditer(re.escape(old), ctypes.string_at(low, high - low)):",
            f"        ctypes.memmove(low + hit.start(), ({KEY}).to_bytes(8, 'little'), 8); print('key set')",
        ),
        says="key set",
    ),
    "memory of the counters": Attack(
        CHANGED | LEFT | STOPPED | {"load_error", "starved", "nonconverged"},  # it hits whatever lies in its way
        (
            "for line in open('/proc/self/maps').read().splitlines():",
            "    low, high = (int(x, 16) for x in line.split()[0].split('-'))",
            "    if ' rw-p ' not in line or high - low > 4 << 20 or 'stack' in line: continue",
            "    data = ctypes.string_at(low, high - low)",
            "    for run in re.finditer(rb'(?:(?:[\\x00-\\x60]\\x00\\x00\\x00){24,})', data):",
            "        if run.start() % 4 or not any(run.group()): continue",
            "        words = (run.end() - run.start()) // 4",
            "        ctypes.memmove(low + run.start(), b'\\x01\\x00\\x00\\x00' * words, 4 * words)",
        ),
    ),
    "code of the model": Attack(
        CHANGED | {"crashed"},
        (
            "model = {l.split()[-1] for l in open('/proc/self/maps') if l.rstrip().endswith('.so') and 'builds' in l}",
            "print('models', len(model))",
            "for path in model:",
            "    attempt(lambda: open(path, 'r+b').write(b'x'), lambda: os.unlink(path), lambda: os.truncate(path, 0))",
            "    attempt(lambda: mmap.mmap(os.open(path, os.O_RDONLY), 0, access=mmap.ACCESS_WRITE)[:4])",
            "    attempt(lambda: ctypes.CDLL(path).llm4cov_model())",
        ),
        says="models 1",
    ),
}

_QUIET = ("dut.en.value = 0", "await ClockCycles(dut.clk, 2)")
_ALL_THAT_PORTS_CAN_DO = (
    "for n in range(400):",
    "    dut.rst_n.value, dut.en.value, dut.mode.value = n % 3 > 0, n % 2, n % 3",
    "    await ClockCycles(dut.clk, 1)",
    "dut.mode.value = 3",
    "await ClockCycles(dut.clk, 3)",
)

RECORD = {
    "the evaluation count": Attack(CHANGED | LEFT, ("peek(record() + 16).value = 10**12",), says="record found"),
    "the size of the record": Attack(
        CHANGED | LEFT | STOPPED, ("peek(record() + 48).value = 2**63",), says="record found"
    ),
    "the hash of the outputs": Attack(
        CHANGED,
        (
            "dut.pair.value = 255",
            "dut.mode.value = 2",
            "await ClockCycles(dut.clk, 3)",
            "at = record(); peek(at + 24).value = peek(at + 32).value = 0x5eed",
        ),
        ports=("dut.mode.value = 2", "await ClockCycles(dut.clk, 3)"),
        says="record found",
    ),
    "inputs of the testbench before": Attack(
        CHANGED | LEFT,
        (
            "at = record()",
            "print('others', any(ctypes.string_at(at + 56 + peek(at + 48).value, 200000)))",
            "libc = ctypes.CDLL(None)",
            "held = ctypes.memset(at + (64 << 20), 1, 8 << 20)",
        ),
        says="others False",
    ),
    "noise in place of the record": Attack(
        CHANGED | LEFT | STOPPED,
        (
            "at = record()",
            "ctypes.memmove(at + 56, bytes(v % 3 for v in range(5000)), 5000)",
            "peek(at + 48).value = 5000",
        ),
        # anything that the ports can do is stimulus, also in this form
        ports=_ALL_THAT_PORTS_CAN_DO,
        says="record found",
    ),
    "inputs after the limit of simulated time": Attack(
        CHANGED | LEFT,
        (
            *_QUIET,
            "append((3 * 10**9, {'clk': 0}), (5000, {'clk': 1}), (5000, {'clk': 0}), (5000, {'clk': 1}))",
            "leave_as_passed()",
        ),
        ports=("dut.en.value = 0", "await ClockCycles(dut.clk, 9)"),
        says="record found",
    ),
    "inputs after the end of the design": Attack(
        CHANGED | LEFT,
        (
            *_QUIET,
            "append((4000, {'clk': 0, 'mode': 3}), *((5000, {'clk': n % 2}) for n in range(1, 9)))",
            "leave_as_passed()",
        ),
        ports=(
            *_QUIET,
            "dut.mode.value = 3",
            "await ClockCycles(dut.clk, 9)",
        ),
        says="record found",
    ),
    "time that runs backwards": Attack(
        CHANGED | LEFT,
        (
            *_QUIET,
            "append((2**64 - 400000, {'clk': 0}), (5000, {'clk': 1}), (5000, {'clk': 0}))",
            "leave_as_passed()",
        ),
        ports=("dut.en.value = 0", "await ClockCycles(dut.clk, 9)"),
        says="record found",
    ),
    "a grandchild goes on writing the record": Attack(
        CHANGED | LEFT,
        (
            "at = record()",
            "if os.fork() == 0:",
            "    os.setsid()",
            "    if os.fork() == 0:",
            "        while True: ctypes.memmove(at + 2000, os.urandom(4096), 4096)",
            "    os._exit(0)",
        ),
        ports=_ALL_THAT_PORTS_CAN_DO,
        says="record found",
    ),
    "the pages of the record taken away": Attack(
        CHANGED | LEFT | {"timeout"},
        (
            "at = record()",
            "libc = ctypes.CDLL(None)",
            "print('advice', libc.madvise(ctypes.c_void_p(at), 256 << 20, 9))",
            "for name in os.listdir('/proc/self/map_files'):",
            "    if name.startswith(format(at, 'x')):",
            "        attempt(lambda: os.truncate('/proc/self/map_files/' + name, 0))",
            "        attempt(lambda: os.open('/proc/self/map_files/' + name, os.O_RDWR))",
        ),
        says="advice 0",
    ),
}

CLAIMS = {
    "coverage and result files": Attack(
        RAN,
        (
            "for name in ('coverage.dat', 'points.dat', 'hits', 'results.xml', 'tests.json', 'record', 'log'):",
            "    for folder in ('.', '..', '../..', '/tmp'):",
            "        path = f'{folder}/{name}'",
            "        attempt(lambda: open(path, 'w').write('C 1'), lambda: os.unlink(path))",
        ),
    ),
    "failed tests that look passed": Attack(
        RAN | LEFT,
        (
            "import session",
            "manager = cocotb.regression._manager_inst",
            "type(manager).failures = property(lambda self: 0, lambda self, v: None)",
            "type(manager).passed = property(lambda self: 1, lambda self, v: None)",
            "session._count = lambda m: None",
            "session._state.update(passed=1, failed=0, total=1, hits='ff' * 99, coverage=1.0, replayed=True)",
            "session._write()",
            "raise AssertionError('looks passed')",
        ),
        top="import cocotb.regression\n",
    ),
    "an exit that looks regular": Attack(RAN | LEFT, ("leave_as_passed()",), says="record found"),
    "an end by the harness's own function": Attack(
        RAN | LEFT, ("ctypes.CDLL(None).llm4cov_done()", "await ClockCycles(dut.clk, 50)")
    ),
    "exit codes of the harness": Attack(LEFT | {"load_error"}, ("os._exit(4)",)),
    "the signals of its limits": Attack(frozenset({"resource_limit"}), ("os.kill(os.getpid(), signal.SIGXCPU)",)),
    "handlers at the exit": Attack(
        RAN | LEFT | STOPPED,
        (
            "import atexit",
            "atexit.register(lambda: [None for _ in iter(int, 1)])",
            "atexit.register(os.abort)",
            "threading.Thread(target=lambda: time.sleep(300)).start()",
            "raise SystemExit(0)",
        ),
        limits=quick(wall_s=1),
        slow=True,
    ),
    "a reply on every descriptor": Attack(
        RAN | LEFT,
        (
            'reply = b\'{"end":1,"excess":0,"replayed":true,"same":true,"hits":"\' + b\'f\' * 4000 + b\'"}\\n\'',
            "attempt(*(lambda f=f: os.write(f, reply) for f in range(200) if f > 2))",
        ),
    ),
}

IMPORTS = {
    "modules that load by themselves": Attack(
        RAN | {"load_error"},
        (
            "import site",
            "folders = ['.', '/tmp', *sys.path, *site.getsitepackages(), os.path.dirname(cocotb.__file__), sys.prefix]",
            f"names = ('sitecustomize.py', 'usercustomize.py', 'conftest.py', '{MARK}.pth', '__pycache__/{MARK}.pyc')",
            "attempt(*(lambda f=f, n=n: open(os.path.join(f, n), 'w').write('import os; os.abort()')",
            "          for f in folders for n in names))",
            "os.environ['LD_PRELOAD'] = os.environ['PYTHONSTARTUP'] = os.getcwd() + '/sitecustomize.py'",
            "subprocess.run([sys.executable, '-c', 'pass'])",
        ),
    ),
    "the testbench replaced while it runs": Attack(
        RAN,
        (
            "open('testbench.py', 'w').write('import os; os.abort()')",
            "os.replace('testbench.py', 'session.py')",
            "sys.modules['session'] = None",
        ),
    ),
    "coverage switched off while importing": Attack(
        frozenset({"load_error"}), (), top="import session\nsession._write = lambda: None\nos._exit(0)\n"
    ),
    "an import that never ends": Attack(frozenset({"timeout"}), (), top="while True: pass\n", limits=quick(wall_s=1)),
    "builds and caches of the compiler": Attack(
        RAN,
        (
            "library = [l.split()[-1] for l in open('/proc/self/maps') if 'builds' in l][0]",
            "home = library[: library.index('/builds/')]",
            "print('home', bool(home))",
            "below = [home + '/' + name for name in ('builds', 'cache', 'cache/simulations', 'cache/ccache')]",
            "for folder in (home, *below, os.path.dirname(library), os.environ['PYTHONPATH']):",
            "    attempt(lambda: print(os.listdir(folder)[:3]), lambda: open(folder + '/' + MARK, 'w').write('x'))",
            "    attempt(lambda: os.rename(folder, folder + MARK), lambda: os.symlink('/', folder + '/' + MARK))",
            "attempt(lambda: open(home + '/canary').read(), lambda: open(home + '/canary', 'w').write('gone'))",
            "attempt(lambda: os.link(home + '/canary', MARK))",
        ),
        says="home True",
    ),
}

PROCESSES = {
    "signals by every way": Attack(
        RAN,
        (
            "parent = os.getppid()",
            "attempt(lambda: signal.pidfd_send_signal(os.open(f'/proc/{parent}', os.O_RDONLY | os.O_DIRECTORY), 9))",
            "attempt(lambda: signal.pidfd_send_signal(os.pidfd_open(parent), 9), lambda: os.kill(-1, 9))",
            "attempt(lambda: system_call(129, parent, 9, ctypes.create_string_buffer(128)))  # rt_sigqueueinfo",
            "attempt(lambda: system_call(200, parent, 9), lambda: system_call(234, parent, parent, 9))  # tgkill",
            "attempt(lambda: signal.raise_signal(signal.SIGCHLD))",
        ),
    ),
    "input that is signalled to the harness": Attack(
        RAN,
        (
            "import fcntl",
            "mine, other = socket.socketpair()",
            "for request in (0x8901, 0x8902):  # FIOSETOWN, SIOCSPGRP",
            "    for process in (os.getppid(), 1, -os.getpgid(os.getppid())):",
            "        attempt(lambda: fcntl.ioctl(mine, request, struct.pack('i', process)))",
            "        attempt(lambda: fcntl.ioctl(mine, 0x5452, struct.pack('i', 1)))  # FIOASYNC",
            "        other.send(b'x')",
        ),
    ),
    "tracing and memory of the harness": Attack(
        RAN,
        (
            "parent = os.getppid()",
            "attempt(*(lambda r=r: system_call(101, r, parent, 0, 0) for r in (16, 0x4206)))  # attach, seize",
            "attempt(lambda: open(f'/proc/{parent}/mem', 'r+b').read(1))",
            "attempt(*(lambda n=n: open(f'/proc/{parent}/{n}', 'w').write('1000') for n in",
            "          ('oom_score_adj', 'comm', 'clear_refs', 'timerslack_ns', 'coredump_filter', 'autogroup')))",
            "attempt(lambda: os.listdir(f'/proc/{parent}/root'), lambda: os.listdir(f'/proc/{parent}/cwd'))",
            "attempt(lambda: ctypes.CDLL(None).prctl(4, 0))",
        ),
    ),
    "a child given to the harness": Attack(
        RAN | LEFT | STOPPED,
        (
            "pid = system_call(56, 0x8000 | 17, 0, 0, 0, 0)  # clone with CLONE_PARENT",
            "if pid == 0:",
            "    os.setsid()",
            "    while True: time.sleep(1)",
            "print('child', pid > 0)",
        ),
        says="child True",
    ),
    "a daemon that keeps all pipes open": Attack(
        RAN,
        (
            "if os.fork() == 0:",
            "    os.setsid(); [signal.signal(s, signal.SIG_IGN) for s in (signal.SIGTERM, signal.SIGHUP)]",
            "    if os.fork() == 0:",
            "        while True: time.sleep(1)",
            "    os._exit(0)",
            f"subprocess.Popen(['setsid', 'sh', '-c', 'sleep 300 # {MARK}'], stdout=None, stderr=None)",
        ),
    ),
    "stopping itself": Attack(
        frozenset({"timeout"}), ("os.kill(os.getpid(), signal.SIGSTOP)",), limits=quick(wall_s=1)
    ),
    "stopping all others": Attack(
        RAN,
        (
            "attempt(*(lambda p=p: os.kill(int(p), signal.SIGSTOP) for p in os.listdir('/proc')",
            "          if p.isdecimal() and int(p) != os.getpid()))",
        ),
    ),
    "limits, priorities and other settings": Attack(
        RAN,
        (
            "import resource",
            "big = resource.RLIM_INFINITY",
            "for limit in (resource.RLIMIT_NPROC, resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):",
            "    attempt(lambda: resource.setrlimit(limit, (big, big)))",
            "    attempt(lambda: resource.prlimit(os.getppid(), limit, (1, 1)))",
            "ctypes.CDLL(None).prctl(36, 1)  # subreaper",
            "ctypes.CDLL(None).prctl(1, 0)  # no signal when the parent ends",
            "ctypes.CDLL(None).personality(0x0040000)",
            "attempt(lambda: os.nice(-20), lambda: os.nice(19), lambda: os.sched_setaffinity(os.getppid(), {0}))",
        ),
    ),
    "descriptors closed and exhausted": Attack(
        RAN | LEFT,
        ("kept = []", "attempt(lambda: [kept.append(os.dup(1)) for _ in range(100000)])", "os.closerange(0, 1 << 16)"),
    ),
    "processes without end": Attack(
        _STOPPED_PROCESSES, ("while True:", "    if os.fork() == 0: time.sleep(60)"), limits=quick(wall_s=10)
    ),
    "shells without end, each a session of its own": Attack(
        _STOPPED_PROCESSES,
        ("while True: subprocess.Popen(['setsid', '-f', 'sleep', '60'])",),
        limits=quick(wall_s=20),
    ),
    "threads without end": Attack(
        _STOPPED_PROCESSES | RAN | LEFT,
        ("threading.stack_size(65536)", "while True: threading.Thread(target=time.sleep, args=(60,)).start()"),
        limits=quick(processes=4, memory_mb=256),
    ),
}

RESOURCES = {
    "memory of one process": Attack(
        RAN | STOPPED | LEFT, ("x = [bytearray(b'1') * (64 << 20) for _ in range(99)]",), slow=True
    ),
    "memory of many processes": Attack(
        frozenset({"resource_limit"}),
        ("for _ in range(6):", "    if os.fork() == 0: x = os.urandom(60 << 20); time.sleep(60)", "time.sleep(60)"),
        limits=quick(memory_mb=150),
        slow=True,
    ),
    "memory that is shared": Attack(
        frozenset({"resource_limit"}),
        (
            "for _ in range(5):",
            "    if os.fork() == 0: m = mmap.mmap(-1, 40 << 20); m.write(bytes(40 << 20)); time.sleep(60)",
            "time.sleep(60)",
        ),
        limits=quick(memory_mb=120),
    ),
    "memory with a file system": Attack(
        RAN | STOPPED | LEFT,
        (
            "attempt(lambda: os.memfd_create('x'), lambda: system_call(29, 0, 1 << 20, 0o1600))  # shmget",
            "for folder in ('/dev/shm', '/tmp', '/run', '/var/tmp', '/dev'):",
            "    for n in range(5): attempt(lambda: open(f'{folder}/{MARK}{n}', 'wb').write(bytes(12 << 20)))",
            "time.sleep(0.3)",
        ),
    ),
    "files in the way": Attack(
        RAN | STOPPED | LEFT,
        (
            "for n in range(300):",
            "    attempt(lambda: os.makedirs('/'.join(str(n)) + '/' + 'd' * 200, exist_ok=True))",
            "for name in (b'new\\nline', b'\\xff\\xfe', b'-rf', b'n' * 255): os.close(os.open(name, os.O_CREAT, 0))",
            "with open('sparse', 'wb') as f: attempt(lambda: f.truncate(1 << 50), lambda: f.truncate(1 << 23))",
        ),
        limits=quick(files=2000),
        slow=True,
    ),
    "result files that are something else": Attack(
        RAN | LEFT | {"load_error"},
        (
            "os.unlink('log'); os.symlink('/dev/zero', 'log')",
            "os.unlink('tests.json'); os.mkfifo('tests.json')",
            "attempt(lambda: socket.socket(socket.AF_UNIX).bind('tests.json.tmp'))",
            "os.unlink('testbench.py'); os.link('log', 'testbench.py', follow_symlinks=False)",
        ),
    ),
    "files that travel through a socket": Attack(
        RAN,
        (
            "left, right = socket.socketpair()",
            "for n in range(60):",
            "    f = open(f'{n}', 'wb'); os.unlink(f'{n}'); f.write(bytes(1 << 20)); f.flush()",
            "    attempt(lambda: socket.send_fds(left, [b'x'], [f.fileno()])); f.close()",
        ),
        says="refused: PermissionError",
    ),
    "output without end": Attack(
        frozenset({"resource_limit"}),
        ("while True: os.write(1, b'\\x1b[2J\\xff\\x00' * 4096)",),
        limits=quick(output_bytes=4 << 20),
    ),
    "recursion without end": Attack(
        RAN | LEFT,
        ("sys.setrecursionlimit(1 << 30)", "class A: __getattr__ = lambda s, n: getattr(s, n + 'x')", "A().x"),
        limits=quick(memory_mb=128),
    ),
    "results that no reader expects": Attack(
        RAN | LEFT | {"load_error"},
        (
            "import session",
            "session._write = lambda: None",
            "row = dict(type='\\ud800', message='x' * 100000, line=10**400, file=['/etc/passwd'])",
            "import json",
            "told = dict(loaded=True, total=1, passed=1, failed=0, skipped=0, errors=[row] * 5)",
            "open('tests.json', 'w').write(json.dumps(told).replace('1' + '0' * 400, '9' * 4000))",
        ),
    ),
    "a crash in native code": Attack(
        frozenset({"crashed"}), ("signal.signal(signal.SIGSEGV, signal.SIG_DFL)", "ctypes.memset(64, 0, 1 << 20)")
    ),
    "a heap that is destroyed": Attack(
        frozenset({"crashed", "timeout"}),
        ("ctypes.memset(id(dut), 255, 4096)", "del dut", "import gc", "gc.collect()"),
        limits=quick(wall_s=3),
    ),
}

MACHINE = {
    "the network": Attack(
        RAN,
        (
            "socket.setdefaulttimeout(1)",
            "attempt(lambda: socket.create_connection(('1.1.1.1', 80)), lambda: socket.getaddrinfo('example.org', 80))",
            "attempt(lambda: socket.create_connection(('127.0.0.1', 22)))",
            "attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', 53)))",
            "attempt(*(lambda f=f: socket.socket(f, socket.SOCK_RAW) for f in (socket.AF_PACKET, 16, 40)))",
            "names = ('/run/dbus/system_bus_socket', '/var/run/docker.sock', '/run/systemd/private', '\\0dbus')",
            "attempt(*(lambda n=n: socket.socket(socket.AF_UNIX).connect(n) for n in names))",
        ),
    ),
    "argument lists and environments": Attack(
        RAN,
        (
            "for process in filter(str.isdecimal, os.listdir('/proc')):",
            "    if int(process) != os.getpid():",
            "        attempt(*(lambda n=n: open(f'/proc/{process}/{n}').read() for n in ('environ', 'fd/0')))",
            "attempt(*(lambda p=p: os.listdir(p) for p in ('/root', '/home', os.path.expanduser('~root'), '../..')))",
        ),
    ),
    "the clock and the name of the machine": Attack(
        RAN,
        (
            "attempt(lambda: time.clock_settime(time.CLOCK_REALTIME, 0), lambda: socket.sethostname('pwned'))",
            "libc = ctypes.CDLL(None)",
            "for function in ('settimeofday', 'adjtimex'):",
            "    print(function, libc[function](ctypes.create_string_buffer(b'\\1' * 512), None))",
        ),
        says="settimeofday -1\nadjtimex -1",
    ),
    "namespaces and mounts": Attack(
        RAN,
        (
            "attempt(*(lambda f=f: system_call(272, f) for f in (0x10000000, 0x20000, 0x40000000, 0x80)))  # unshare",
            "attempt(lambda: system_call(165, b'none', b'/tmp', b'tmpfs', 0, None), lambda: os.chroot('.'))  # mount",
            "attempt(lambda: system_call(56, 0x10000000 | 17, 0, 0, 0, 0), lambda: system_call(435, None, 0))  # clone",
            "attempt(lambda: os.mknod(MARK, 0o600 | 0o20000, os.makedev(1, 1)))",
        ),
    ),
    "settings of the kernel": Attack(
        RAN,
        (
            "for path in ('core_pattern', 'hostname', 'pid_max', 'ns_last_pid', 'threads-max', 'modprobe'):",
            "    path = '/proc/sys/kernel/' + path",
            "    attempt(lambda: print(open(path).read()), lambda: open(path, 'w').write('9'))",
            "attempt(lambda: open('/proc/sysrq-trigger', 'w').write('b'), lambda: open('/dev/mem', 'rb'))",
            "attempt(lambda: open('/proc/self/uid_map', 'w').write('0 0 1'), lambda: os.setuid(0))",
        ),
    ),
    "the terminal and what others wait for": Attack(
        RAN,
        (
            "import fcntl",
            "attempt(*(lambda c=c: fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), 0x5412, c) for c in (b'i', b'd')))",
            "attempt(lambda: fcntl.flock(open(cocotb.__file__), fcntl.LOCK_EX))",
            "attempt(lambda: fcntl.lockf(open(cocotb.__file__), fcntl.LOCK_SH))",
            "attempt(lambda: fcntl.fcntl(open(cocotb.__file__), fcntl.F_SETLEASE, fcntl.F_RDLCK))",
        ),
    ),
}

ATTACKS = {
    f"{kind}: {name}": attack
    for kind, attacks in (
        ("internals", INTERNALS),
        ("record", RECORD),
        ("claims", CLAIMS),
        ("imports", IMPORTS),
        ("processes", PROCESSES),
        ("resources", RESOURCES),
        ("machine", MACHINE),
    )
    for name, attack in attacks.items()
}
