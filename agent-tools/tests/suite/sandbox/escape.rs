//! Attempts to escape, to read, to harm the host and to persist. None may have any effect, however
//! it fails.

use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::MetadataExt,
            net::{SocketAddr, UnixDatagram, UnixListener},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{self, Child},
    time::{Duration, Instant},
};

use agent_tools::sandbox::{Command, Isolation, Limits, LocalSandbox, Sandbox};

use super::{Place, isolations, rests};

/// Secret that no program inside may see.
pub(crate) const SECRET: &str = "SECRET-4711";

/// Shell commands. `{host}` is a directory of the host, `{pid}` one of its processes, `{port}` a
/// port that it listens on, `{name}` a unique name.
pub(crate) const ATTEMPTS: &[(&str, &str)] = &[
    // Reading.
    ("applications of the image", "ls -A /opt | grep . && echo SECRET-4711"),
    ("an absolute path", "cat {host}/secret"),
    ("a relative path", "cat ../host/secret"),
    ("many dots", "cat ../../../../../../../../../../../../{host}/secret"),
    ("a symbolic link", "ln -s {host}/secret l; cat l"),
    ("a link to a folder", "ln -s {host} d; cat d/secret; ls d/"),
    ("a link in a link", "mkdir a; ln -s ../.. a/up; ln -s a/up/host b; cat b/secret"),
    ("a hard link", "ln {host}/secret h; cat h"),
    ("copying", "cp -r {host} mine; cat mine/secret"),
    ("moving", "mv {host}/secret mine; cat mine"),
    ("packing", "tar cf - -C {host} . | cat"),
    ("listing", "ls -la {host}; find {host} -name 'secret*' -exec cat {} +"),
    ("a redirection", "read x < {host}/secret; echo $x"),
    ("the shell's own reading", ". {host}/secret; set -- {host}/*; cat \"$1\""),
    ("the root by proc", "cat /proc/self/root{host}/secret"),
    ("the directory by proc", "cat /proc/self/cwd/../host/secret"),
    ("the first process", "cat /proc/1/root{host}/secret; cat /proc/1/environ"),
    ("a descriptor by proc", "timeout 2 cat /proc/*/fd/* 2>/dev/null | head -c 100000 | grep -a SECRET"),
    ("a descriptor that was left open", "for i in 3 4 5 6 7 8 9; do cat <&$i; done"),
    ("changing the root", "chroot {host} /secret; chroot / cat {host}/secret"),
    ("a new root", "perl -e 'syscall(155, q(.), q(.)) and exit 1'; cat {host}/secret"),
    ("a mount", "mkdir m; mount --bind {host} m; cat m/secret"),
    ("a mount in a namespace", "mkdir m; unshare -Urm sh -c 'mount --bind {host} m; cat m/secret'"),
    ("a proc of its own", "mkdir p; unshare -Urpf --mount-proc sh -c 'cat /proc/{pid}/environ; cat {host}/secret'"),
    ("other namespaces", "nsenter -t 1 -a cat {host}/secret; nsenter -t {pid} -m cat {host}/secret"),
    (
        "a handle of a file",
        "perl -e 'my $h = pack(q(IiQQ), 16, 1, 2, 0); my $f = syscall(304, -100, $h, 0); open(F, q(<&), $f) and print <F>'",
    ),
    (
        "a ring of the kernel",
        "perl -e 'my $p = qq(\\0) x 120; print q(SECRET-4711) if syscall(425, 8, $p) >= 0 and -e q({host}/secret)'",
    ),
    (
        "the disk itself",
        "for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/root; do head -c 4096 $d && echo SECRET-4711; done",
    ),
    ("a device of one's own", "mknod disk b 254 0 && head -c 4096 disk && echo SECRET-4711"),
    ("the memory of the machine", "head -c 1 /dev/mem && echo SECRET-4711; head -c 1 /dev/kmem && echo SECRET-4711"),
    ("the messages of the kernel", "dmesg | head -1 | grep . && echo SECRET-4711"),
    ("passwords", "cat /etc/shadow /etc/gshadow && echo SECRET-4711"),
    ("keys", "cat /root/.ssh/* /home/*/.ssh/* /etc/ssh/*key /etc/ssl/private/* | grep -a . && echo SECRET-4711"),
    // Other processes.
    ("the environment of a process", "cat /proc/{pid}/environ | tr '\\0' '\\n'"),
    ("the environment of all", "cat /proc/*/environ | tr '\\0' '\\n'; env"),
    ("the command line of a process", "cat /proc/{pid}/cmdline; cat /proc/*/cmdline; ps auxwww | grep SECRE[T]"),
    ("the directory of a process", "cat /proc/{pid}/cwd/secret; ls /proc/{pid}/fd"),
    (
        "the memory of a process",
        "head -c 1 /proc/{pid}/mem && echo SECRET-4711; cat /proc/{pid}/maps && echo SECRET-4711",
    ),
    ("a debugger", "perl -e 'print q(SECRET-4711) if syscall(101, 16, {pid}, 0, 0) == 0'"),
    (
        "reading over",
        "perl -e 'my $b = qq(\\0) x 8; my $l = pack(q(PQ), $b, 8); my $r = pack(q(QQ), 4194304, 8); print q(SECRET-4711) if syscall(310, {pid}, $l, 1, $r, 1, 0) > 0'",
    ),
    (
        "taking a descriptor",
        "perl -e 'my $p = syscall(434, {pid}, 0); print q(SECRET-4711) if $p >= 0 and syscall(438, $p, 0, 0) >= 0'",
    ),
    ("a signal", "kill -9 {pid}; kill {pid}; kill -STOP {pid}"),
    ("a signal by descriptor", "perl -e 'my $p = syscall(434, {pid}, 0); syscall(424, $p, 9, 0, 0)'"),
    ("a signal to the one above", "kill -9 $PPID; kill -9 $(awk '/PPid/ {print $2}' /proc/self/status)"),
    ("a signal to everybody", "kill -9 -1"),
    ("a signal to the group", "kill -TERM 0"),
    ("slowing a process down", "renice 19 {pid}; taskset -p 1 {pid}"),
    ("limiting a process", "prlimit --pid {pid} --cpu=1 && echo SECRET-4711"),
    // Writing.
    ("writing", "echo x > {host}/secret; echo x >> {host}/secret"),
    ("a new file", "echo x > {host}/new; mkdir {host}/dir; touch {host}/touched; mkfifo {host}/pipe"),
    ("writing through a link", "ln -s {host}/secret w; echo x > w; sed -i s/S/T/ w; tee w < /dev/null"),
    ("cutting", "truncate -s 0 {host}/secret; perl -e 'truncate q({host}/secret), 0'"),
    ("removing", "rm -rf {host}/secret {host}"),
    ("renaming", "mv {host}/secret {host}/other; mv {host} ../moved; echo x > f; mv f {host}/secret"),
    ("linking outside", "ln -s /etc {host}/link; echo x > f; ln f {host}/hard"),
    ("modes", "chmod 777 {host}/secret {host}; perl -e 'chmod 0777, q({host}/secret)'"),
    ("modes by a link", "ln -s {host}/secret m; chmod 777 m"),
    (
        "modes by a descriptor",
        "perl -e 'syscall(257, -100, q({host}/secret), 2097152, 0) and chmod 0777, q(/proc/self/fd/3)'",
    ),
    (
        "a datagram to a path",
        "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) and send(A, q(x), 0, sockaddr_un(q({host}/datagrams)))'",
    ),
    (
        "newer calls",
        "perl -e 'syscall(463, -100, q({host}/secret), 0, q(user.x), pack(q(PLL), q(1), 1, 0), 16); syscall(466, -100, q({host}/secret), 0, q(user.y)); syscall(469, -100, q({host}/secret), qq(\\0) x 24, 24, 0)'",
    ),
    ("a device of characters", "mknod kmsg c 1 11 && head -c 1 kmsg && echo SECRET-4711"),
    (
        "a key of the application",
        "perl -e 'print q(SECRET-4711) if syscall(249, q(user), q({name}), 0, 0) >= 0 or syscall(250, 11, -3, 0, 0) >= 0'",
    ),
    ("owners", "chown 12345:12345 {host}/secret; chgrp 12345 {host}/secret; perl -e 'chown 1, 1, q({host}/secret)'"),
    ("times", "touch -d 2001-01-01 {host}/secret; perl -e 'utime 1, 1, q({host}/secret)'"),
    (
        "attributes",
        "setfattr -n user.x -v 1 {host}/secret; perl -e 'syscall(188, q({host}/secret), q(user.x), q(1), 1, 0)'",
    ),
    ("the directory above", "cd ..; echo x > new; rmdir host; mv root elsewhere"),
    ("swapping the directory", "cd ..; mv root old && ln -s host root; cd root && cat secret"),
    ("the system's programs", "echo x > /usr/bin/{name}; echo x > /bin/{name}; cp /bin/sh /usr/local/bin/{name}"),
    ("the system's settings", "echo x >> /etc/passwd; echo x > /etc/{name}; echo x > /etc/ld.so.preload"),
    ("jobs of the system", "echo '* * * * * root true' > /etc/cron.d/{name}; echo true | at now; crontab -"),
    (
        "the settings of the kernel",
        "echo x > /proc/sys/kernel/core_pattern; sysctl -w kernel.domainname={name}; hostname {name}",
    ),
    (
        "the switch of the kernel",
        "echo h > /proc/sysrq-trigger; reboot -f; perl -e 'syscall(169, 0xfee1dead, 672274793, 0, 0)'",
    ),
    ("the clock", "date -s 2001-01-01; perl -e 'syscall(164, pack(q(qq), 1, 1), 0)'"),
    (
        "groups of control",
        "mkdir /sys/fs/cgroup/{name} /sys/fs/cgroup/pids/{name}; echo $$ > /sys/fs/cgroup/pids/cgroup.procs",
    ),
    ("modules", "modprobe loop; perl -e 'syscall(175, q(), 0, q())'"),
    ("programs of the kernel", "perl -e 'my $a = qq(\\0) x 72; print q(SECRET-4711) if syscall(321, 0, $a, 72) >= 0'"),
    ("keys of the kernel", "perl -e 'print q(SECRET-4711) if syscall(248, q(user), q({name}), q(x), 1, -3) >= 0'"),
    ("a program of root", "cp /bin/cat c; chmod u+s c; ./c {host}/secret; su -c id; sudo -n id; passwd -d root; mount"),
    ("becoming another", "perl -e '$< = $> = 0; $( = $) = 0; exec q(cat), q({host}/secret)'"),
    ("names that break lines", "f=$(printf 'a\\nb'); echo x > \"$f\"; ln -s {host} \"$f.d\"; cat \"$f.d/secret\""),
    // The network.
    ("a connection", "perl -MIO::Socket::INET -e 'print q(SECRET-4711) if IO::Socket::INET->new(q(127.0.0.1:{port}))'"),
    ("a connection by bash", "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo SECRET-4711'"),
    (
        "a datagram",
        "perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(Proto => q(udp), PeerAddr => q(127.0.0.1:{port})); $s and $s->send(q(x))'; bash -c 'echo x > /dev/udp/127.0.0.1/{port}'",
    ),
    (
        "a socket in a folder",
        "perl -MIO::Socket::UNIX -e 'print q(SECRET-4711) if IO::Socket::UNIX->new(q({host}/socket))'",
    ),
    (
        "a socket by a link",
        "ln -s {host}/socket s; perl -MIO::Socket::UNIX -e 'print q(SECRET-4711) if IO::Socket::UNIX->new(q(s))'",
    ),
    (
        "a socket without a folder",
        "perl -MIO::Socket::UNIX -e 'print q(SECRET-4711) if IO::Socket::UNIX->new(qq(\\0{name}))'",
    ),
    (
        "the service of containers",
        "perl -MIO::Socket::UNIX -e 'print q(SECRET-4711) if IO::Socket::UNIX->new(q(/var/run/docker.sock)) or IO::Socket::UNIX->new(q(/run/dbus/system_bus_socket))'",
    ),
    (
        "raw packets",
        "perl -e 'use Socket; print q(SECRET-4711) if socket(S, PF_INET, SOCK_RAW, 1) or socket(S, 17, SOCK_RAW, 3)'",
    ),
    ("the interfaces", "ip link set lo down; ip addr add 10.9.8.7/32 dev lo; iptables -F"),
    (
        "programs of the network",
        "curl -m 2 http://127.0.0.1:{port}/; wget -t 1 -T 2 -O - http://127.0.0.1:{port}/; nc -w 1 127.0.0.1 {port} < /dev/null",
    ),
    (
        "a network of its own host",
        "perl -MIO::Socket::INET -e 'print q(SECRET-4711) if IO::Socket::INET->new(q([::1]:{port})) or IO::Socket::INET->new(q(0.0.0.0:{port}))'",
    ),
];

/// Host, with the objects that attempts may harm.
pub(crate) struct Host {
    dir: PathBuf,
    tcp: TcpListener,
    udp: UdpSocket,
    sockets: Vec<UnixListener>,
    datagrams: UnixDatagram,
    victim: Child,
    name: String,
    before: BTreeMap<PathBuf, (u32, u32, i64, String)>,
}

impl Host {
    pub(crate) fn new(dir: &Path) -> Self {
        let dir = dir.join("host").canonicalize().expect("is there");
        fs::write(dir.join("secret"), SECRET).expect("writes");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("binds");
        let udp = UdpSocket::bind(tcp.local_addr().expect("has one")).expect("binds");
        let name = format!("escape-{}-{}", process::id(), tcp.local_addr().expect("has one").port());
        let nameless = SocketAddr::from_abstract_name(&name).expect("a name");
        let sockets = vec![
            UnixListener::bind(dir.join("socket")).expect("binds"),
            UnixListener::bind_addr(&nameless).expect("binds"),
        ];
        tcp.set_nonblocking(true).expect("sets");
        udp.set_nonblocking(true).expect("sets");
        sockets.iter().for_each(|socket| socket.set_nonblocking(true).expect("sets"));
        let datagrams = UnixDatagram::bind(dir.join("datagrams")).expect("binds");
        datagrams.set_nonblocking(true).expect("sets");
        let victim =
            process::Command::new("sleep").arg0(SECRET).arg("1000").env("KEY", SECRET).current_dir(&dir).spawn();
        let mut host =
            Self { dir, tcp, udp, sockets, datagrams, victim: victim.expect("starts"), name, before: BTreeMap::new() };
        host.before = host.seen();
        host
    }

    /// Records the state of the folder around the sandbox, except for the sandbox's own directory.
    fn seen(&self) -> BTreeMap<PathBuf, (u32, u32, i64, String)> {
        let above = self.dir.parent().expect("a folder");
        let listed = [above, &self.dir].into_iter().flat_map(|dir| fs::read_dir(dir).expect("is there"));
        let paths = listed.map(|entry| entry.expect("is there").path()).chain([self.dir.clone()]);
        paths
            .map(|path| {
                let found = fs::symlink_metadata(&path).expect("is there");
                let (time, content) = match path.file_name() {
                    Some(name) if name == "root" => (0, String::new()),
                    _ => (found.mtime(), fs::read_to_string(&path).unwrap_or_default()),
                };
                (path, (found.mode(), found.uid(), time, content))
            })
            .collect()
    }

    pub(crate) fn line(&self, attempt: &str) -> String {
        attempt
            .replace("{host}", &self.dir.display().to_string())
            .replace("{pid}", &self.victim.id().to_string())
            .replace("{port}", &self.tcp.local_addr().expect("has one").port().to_string())
            .replace("{name}", &self.name)
    }

    /// Asserts that the host is unchanged.
    pub(crate) fn is_unharmed(&mut self, what: &str) {
        assert_eq!(self.seen(), self.before, "{what}");
        let late = |kind: ErrorKind| assert_eq!(kind, ErrorKind::WouldBlock, "{what}: somebody called");
        late(self.tcp.accept().map(drop).expect_err("nobody").kind());
        late(self.udp.recv(&mut [0; 9]).map(drop).expect_err("nobody").kind());
        late(self.datagrams.recv(&mut [0; 9]).map(drop).expect_err("nobody").kind());
        self.sockets.iter().for_each(|socket| late(socket.accept().map(drop).expect_err("nobody").kind()));
        assert!(self.victim.try_wait().expect("is a child").is_none(), "{what}: a process of the host was ended");
        let status = fs::read_to_string(format!("/proc/{}/stat", self.victim.id())).expect("runs");
        assert!(
            ![") T ", ") t ", ") Z "].iter().any(|state| status.contains(state)),
            "{what}: a process of the host was stopped: {status}"
        );
        for folder in
            ["/tmp", "/var/tmp", "/dev/shm", "/usr/bin", "/usr/local/bin", "/etc", "/etc/cron.d", "/sys/fs/cgroup"]
        {
            assert!(!Path::new(folder).join(&self.name).exists(), "{what}: {folder} has a new file");
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.victim.kill().expect("runs");
        self.victim.wait().expect("is a child");
    }
}

/// Returns false on other architectures for a command with system call numbers of x86-64.
pub(crate) fn is_of_this_machine(attempt: &str) -> bool {
    let is = cfg!(target_arch = "x86_64") || !attempt.contains("syscall(");
    if !is {
        println!("skipped, since its numbers are those of x86-64: {attempt}");
    }
    is
}

#[tokio::test]
async fn no_attempt_to_get_out_has_any_effect() {
    attempt_all(|isolation| Place::new(isolation, |b| b)).await;
}

/// Makes every attempt in a sandbox of its own, with each isolation.
pub(crate) async fn attempt_all(place: impl Fn(Isolation) -> Place) {
    for isolation in isolations() {
        for (what, attempt) in ATTEMPTS.iter().filter(|(_, attempt)| is_of_this_machine(attempt)) {
            let place = place(isolation);
            let mut host = Host::new(place.host());
            let what = format!("{what} ({isolation:?})");
            println!("{what}");
            let line = host.line(attempt);
            let (said, _) = place.run(&line).await;
            // The command line of the attempt contains no secret except as part of the attempt
            // itself.
            assert!(!said.contains(SECRET), "{what}: {said}");
            host.is_unharmed(&what);
            assert_eq!(place.run("echo well").await.0, "well\n", "{what}: the sandbox goes on");
        }
    }
}

#[tokio::test]
async fn the_same_files_are_read_and_written_where_the_sandbox_is_given_them() {
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b);
        let host = Host::new(place.host());
        let given = Place::new(isolation, |b| b.readable(host.dir.join("secret")).allow_network());
        let (said, _) = given.run(&host.line("cat {host}/secret; echo x > {host}/secret; ls {host}/")).await;
        assert!(said.starts_with(SECRET) && !said.contains("socket"), "{isolation:?}: {said}");
        let call = "perl -MIO::Socket::INET -e 'print q(called) if IO::Socket::INET->new(q(127.0.0.1:{port}))'";
        assert_eq!(given.run(&host.line(call)).await.0, "called", "{isolation:?}");
        let by_path = "perl -MIO::Socket::UNIX -e 'print q(called) if IO::Socket::UNIX->new(q({host}/socket))'";
        assert_eq!(given.run(&host.line(by_path)).await.0, "", "{isolation:?}: a network is no socket of the host");
        assert_eq!(fs::read_to_string(host.dir.join("secret")).expect("reads"), SECRET);
        let given = Place::new(isolation, |b| b.writable(&host.dir));
        assert_eq!(given.run(&host.line("echo x > {host}/new && cat {host}/new")).await.0, "x\n", "{isolation:?}");
    }
}

/// Read-only files must not be changed, although their owner can do much with an open descriptor.
#[tokio::test]
async fn what_may_only_be_read_stays_as_it_is() {
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b);
        let mut host = Host::new(place.host());
        let given = Place::new(isolation, |b| b.readable(host.dir.join("secret")));
        for attempt in [
            "echo x > {host}/secret; chmod 777 {host}/secret; touch {host}/secret",
            "perl -e 'open F, q(<), q({host}/secret) or exit; chmod 04777, *F; chown 1, 1, *F; utime 1, 1, *F'",
            "perl -e 'open F, q(<), q({host}/secret) or exit; syscall(190, fileno F, q(user.x), q(1), 1, 0)'",
            "perl -e 'open F, q(<), q({host}/secret) or exit; ioctl(F, 0x40086602, pack(q(Q), 0x10))'",
            "perl -e 'open F, q(<), q(/usr/bin/env) or exit; chmod 0700, *F and print q(SECRET)'",
        ]
        .into_iter()
        .filter(|attempt| is_of_this_machine(attempt))
        {
            let (said, _) = given.run(&host.line(attempt)).await;
            assert!(!said.contains("SECRET"), "{attempt} ({isolation:?}): {said}");
            host.is_unharmed(&format!("{attempt} ({isolation:?})"));
        }
    }
}

/// Commands that try to exceed their resource limits.
const GREEDY: &[(&str, &str)] = &[
    ("the processor", "while :; do :; done"),
    ("the processor, in a signal's handler", "trap '' XCPU; while :; do :; done"),
    ("memory", "perl -e '$x = q(a) x (1 << 29); $y = $x . $x; print q(had it)'"),
    ("memory, little by little", "perl -e 'push @x, q(a) x 100000 while 1'; echo had it > /dev/null; exit 1"),
    ("a large file", "head -c 20000000 /dev/zero > big"),
    ("a large file of holes", "truncate -s 1T holes"),
    ("open files", "perl -e 'my @f; for (1..900) { open(my $f, q(<), q(/dev/null)) or exit 1; push @f, $f }'"),
    ("a stack", "perl -e 'no warnings; sub f { my @x = (1) x 100; f() } f()'"),
];

#[tokio::test]
async fn what_is_too_much_is_refused_or_ends_the_command() {
    let mut limits = Limits::default();
    (limits.cpu, limits.memory, limits.file, limits.open_files) = (Duration::from_secs(1), 256 << 20, 10 << 20, 64);
    for isolation in isolations() {
        for (what, line) in GREEDY {
            let place = Place::new(isolation, |b| b.limits(limits));
            let (said, exit) = place.run(line).await;
            assert!(!exit.is_success() && !said.contains("had it"), "{what} ({isolation:?}): {exit} {said}");
        }
    }
}

#[tokio::test]
async fn a_fork_bomb_stays_small_and_is_gone_with_its_command() {
    let mut limits = Limits::default();
    limits.processes = 64;
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b.limits(limits));
        if !place.sandbox.guarantees().process_count {
            println!("skipped: {}", place.sandbox.guarantees());
            continue;
        }
        let bomb = Command::shell("bomb() { bomb | bomb & }; bomb; sleep 1000");
        let mut bomb = place.sandbox.start(bomb).await.expect("starts");
        std::thread::sleep(Duration::from_millis(300));
        let ours = || {
            fs::read_dir("/proc").expect("lists").filter_map(|entry| {
                let line = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
                String::from_utf8_lossy(&line).contains("bomb() { bomb").then_some(())
            })
        };
        assert!(ours().count() <= 64, "{isolation:?}: {}", ours().count());
        bomb.kill();
        assert!(!bomb.exit().await.expect("ends").is_success());
        let began = Instant::now();
        while ours().count() > 0 {
            assert!(began.elapsed() < Duration::from_secs(50), "{isolation:?}: they stay");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Commands that leave a process running, which writes to `beat`.
const STAYING: &[(&str, &str)] = &[
    ("in the background", "(while :; do date +%N > beat; sleep 0.01; done) &"),
    ("deaf", "nohup sh -c 'trap \"\" HUP TERM INT; while :; do date +%N > beat; sleep 0.01; done' > /dev/null 2>&1 &"),
    ("in a session of its own", "setsid sh -c 'while :; do date +%N > beat; sleep 0.01; done' > /dev/null 2>&1 &"),
    (
        "as a daemon",
        "perl -e 'fork and exit; use POSIX; setsid(); fork and exit; while (1) { open(F, q(>), q(beat)); print F rand; close F; select(undef, undef, undef, 0.01) }'",
    ),
];

#[tokio::test]
async fn nothing_stays_when_its_command_has_ended() {
    for isolation in isolations() {
        for (what, line) in STAYING {
            let place = Place::new(isolation, |b| b);
            place.run(&format!("{line} sleep 0.1")).await;
            rests(&place.host().join("root/beat"), &format!("{what} ({isolation:?})"));
        }
    }
}

#[tokio::test]
async fn a_kill_at_any_moment_of_the_start_leaves_nothing() {
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b);
        for delay in 0..60 {
            let beat = "while :; do date +%N > beat; sleep 0.01; done";
            let start = place.sandbox.start(Command::shell(beat));
            // The start is cancelled midway, or the started process is dropped.
            drop(tokio::time::timeout(Duration::from_micros(500 * delay), start).await);
        }
        // A process whose start was cancelled ends as soon as it has started.
        rests(&place.host().join("root/beat"), &format!("{isolation:?}"));
    }
}

#[tokio::test]
async fn what_stands_around_a_program_is_not_looked_for_where_programs_write() {
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b.env("PATH", "bin:/usr/bin:/bin"));
        let mut host = Host::new(place.host());
        let planted = "mkdir bin; for p in sh bwrap setpriv unshare; do printf '#!/bin/sh\ncat {host}/secret; touch {host}/new\n' > bin/$p; done; chmod +x bin/* || cp /bin/true bin";
        place.run(&host.line(planted)).await;
        let (said, _) = place.run("true").await;
        assert!(!said.contains(SECRET), "{isolation:?}: {said}");
        host.is_unharmed(&format!("{isolation:?}"));
        let refused = LocalSandbox::builder(place.sandbox.path()).env("LD_PRELOAD", "x.so").build();
        assert!(refused.expect_err("is refused").to_string().contains("LD_PRELOAD"));
    }
}

#[test]
fn paths_where_programs_could_put_something_else_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    for path in ["work/vendor", "given/below"] {
        fs::create_dir_all(dir.path().join(path)).expect("creates");
    }
    let (work, given) = (dir.path().join("work"), dir.path().join("given"));
    let builder = || LocalSandbox::builder(&work).isolation(Isolation::None);
    for (refused, why) in [
        (builder().readable(work.join("vendor")), "where programs can write"),
        (builder().writable(dir.path()), "where programs can write"),
        (builder().writable(&given).readable(given.join("below")), "where programs can write"),
        (builder().readable(dir.path().join("nowhere")), "cannot give"),
        (builder().writable("nowhere"), "cannot give"),
    ] {
        let refused = refused.build().expect_err("is refused");
        assert!(refused.to_string().contains(why), "{refused}");
    }
    assert!(builder().readable(&given).build().is_ok());
}

#[tokio::test]
async fn a_link_that_is_swapped_while_a_file_is_used_leads_nowhere_else() {
    let swapping = "while :; do ln -sfn {host} d; rm d; mkdir d; rmdir d; done 2>/dev/null";
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b);
        let mut host = Host::new(place.host());
        let mut loops = place.sandbox.start(Command::shell(host.line(swapping))).await.expect("starts");
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(500) {
            // Each may fail; none may reach the host.
            drop(place.sandbox.write("d/new", "x".into()).await);
            if let Ok(read) = place.sandbox.read("d/secret").await {
                panic!("{read:?}");
            }
        }
        loops.kill();
        loops.exit().await.expect("ends");
        host.is_unharmed(&format!("{isolation:?}"));
    }
}

#[test]
fn there_are_enough_attempts() {
    assert!(ATTEMPTS.len() >= 80, "{}", ATTEMPTS.len());
}
