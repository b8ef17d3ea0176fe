//! Containers, where an engine is there.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    process::Stdio,
    time::{Duration, Instant},
};

use agent_core::ErrorKind;
use agent_tools::sandbox::{Command, ContainerSandbox, EntryKind, Exit, Limits, Sandbox};

use crate::{
    containers::sandbox,
    escape::{ATTEMPTS, Host, SECRET, is_of_this_machine},
    run,
};

#[tokio::test]
async fn programs_run_in_a_container_as_they_do_elsewhere() {
    let Some(sandbox) = sandbox(|b| b.env("MINE", "yes")).await else { return };
    println!("{}", sandbox.guarantees());
    sandbox.write("src/in.txt", "3\n1\n2\n".into()).await.expect("writes");
    let sorted =
        run(&sandbox, Command::shell("sort src/in.txt > out.txt; pwd; echo bad >&2; echo $MINE; exit 3")).await;
    assert_eq!(sorted, ("/workspace\nbad\nyes\n".to_owned(), Exit::code(3)));
    assert_eq!(sandbox.read("out.txt").await.expect("reads"), "1\n2\n3\n");
    let there = run(&sandbox, Command::shell("pwd; echo $WHO").dir("src").env("WHO", "me")).await.0;
    assert_eq!(there, "/workspace/src\nme\n");
    assert_eq!(run(&sandbox, Command::new("no-such-program")).await.1, Exit::code(127));
    assert_eq!(run(&sandbox, Command::shell("kill -9 $$")).await.1, Exit::code(137));
    let refused = sandbox.start(Command::new("true").dir("nowhere")).await.expect_err("is refused");
    assert_eq!(refused.kind(), ErrorKind::Tool, "{refused}");
    let env = run(&sandbox, Command::shell("env")).await.0;
    assert!(!env.contains("CARGO_MANIFEST_DIR"), "{env}");
    sandbox.write("tmp", "x".into()).await.expect("writes");
    let temp = format!("{}/passing", sandbox.temp_dir());
    sandbox.write(&temp, "1".into()).await.expect("writes");
    assert_eq!(sandbox.read(&temp).await.expect("reads"), "1");
    assert_eq!(sandbox.stat("src").await.expect("is told").expect("is there").kind, EntryKind::Folder);
    sandbox.close().await.expect("is removed");
    assert!(sandbox.start(Command::new("true")).await.is_err());
    sandbox.close().await.expect("is gone already");
}

#[tokio::test]
async fn input_is_read_as_it_comes_and_a_flood_waits_for_its_reader() {
    let Some(sandbox) = sandbox(|b| b).await else { return };
    let mut cat = sandbox.start(Command::new("cat")).await.expect("starts");
    let input = cat.take_input().expect("is there");
    for word in ["one\n", "two\n"] {
        input.write(word).await.expect("reads");
        assert_eq!(cat.output().await.expect("writes"), word);
    }
    drop(input);
    assert_eq!(cat.output().await, None);
    assert_eq!(cat.exit().await.expect("ends"), Exit::code(0));
    let mut yes = sandbox.start(Command::new("yes")).await.expect("starts");
    let mut read = 0;
    while read < 4 << 20 {
        read += yes.output().await.expect("goes on").len();
    }
    yes.kill();
    assert!(!yes.exit().await.expect("ends").is_success());
}

#[tokio::test]
async fn a_kill_and_an_end_leave_nothing_of_a_command_running() {
    let Some(sandbox) = sandbox(|b| b).await else { return };
    let beats = "(trap '' TERM HUP; while :; do date +%s%N > beat; echo >> beats; sleep 0.05; done) &";
    let still = async || {
        let count = async || run(&sandbox, Command::shell("wc -l < beats")).await.0;
        let before = count().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        (before, count().await)
    };
    let mut loops = sandbox.start(Command::shell(format!("{beats} echo on; wait"))).await.expect("starts");
    assert_eq!(loops.output().await.expect("writes"), "on\n");
    loops.kill();
    assert!(!loops.exit().await.expect("ends").is_success());
    let (before, after) = still().await;
    assert_eq!(before, after, "it still beats");
    let began = Instant::now();
    let (said, exit) = run(&sandbox, Command::shell(format!("{beats} setsid sleep 50 & echo done"))).await;
    assert_eq!((said.as_str(), exit), ("done\n", Exit::code(0)));
    assert!(began.elapsed() < Duration::from_secs(40));
    let (before, after) = still().await;
    assert_eq!(before, after, "it still beats");
}

#[tokio::test]
async fn a_container_is_paused_and_goes_on_and_its_files_begin_another_one() {
    let Some(first) = sandbox(|b| b).await else { return };
    first.write("kept", "1".into()).await.expect("writes");
    let mut beats = first.start(Command::shell("while :; do echo; sleep 0.05; done")).await.expect("starts");
    beats.output().await.expect("writes");
    first.pause().await.expect("pauses");
    assert!(first.start(Command::new("true")).await.is_err(), "nothing starts meanwhile");
    // What was on its way still comes.
    let quiet = async { while tokio::time::timeout(Duration::from_millis(500), beats.output()).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(20), quiet).await.expect("it halts");
    first.resume().await.expect("resumes");
    tokio::time::timeout(Duration::from_secs(20), beats.output()).await.expect("goes on").expect("writes");
    beats.kill();
    let image = first.snapshot().await.expect("is kept");
    first.write("kept", "2".into()).await.expect("writes");
    let second = ContainerSandbox::builder(&image).build().await.expect("starts");
    assert_eq!(second.read("kept").await.expect("reads"), "1");
    assert_eq!(first.read("kept").await.expect("reads"), "2");
    for sandbox in [first, second] {
        sandbox.close().await.expect("is removed");
    }
}

#[tokio::test]
async fn limits_of_a_container_hold() {
    let mut limits = Limits::default();
    (limits.memory, limits.processes, limits.file, limits.cpu) = (128 << 20, 40, 10 << 20, Duration::from_secs(1));
    let Some(sandbox) = sandbox(|b| b.limits(limits)).await else { return };
    let guarantees = sandbox.guarantees();
    assert!(guarantees.files && guarantees.network && guarantees.processes && !guarantees.no_survivors);
    for (holds, what, line) in [
        (true, "a large file", "head -c 20000000 /dev/zero > big"),
        (true, "the processor", "while :; do :; done"),
        (guarantees.memory, "memory", "head -c 200000000 /dev/zero | tail -c 190000000 > /dev/null; exit $(($? + 0))"),
        (
            guarantees.process_count,
            "processes",
            "i=0; while [ $i -lt 60 ]; do sleep 20 & i=$((i+1)); done; [ $(ls -d /proc/[0-9]* | wc -l) -ge 60 ]",
        ),
    ] {
        if !holds {
            println!("skipped: {what}: {guarantees}");
            continue;
        }
        let (said, exit) = run(&sandbox, Command::shell(line)).await;
        assert!(!exit.is_success(), "{what}: {said}");
    }
}

#[tokio::test]
async fn no_attempt_to_get_out_of_a_container_has_any_effect() {
    let Some(sandbox) = sandbox(|b| b).await else { return };
    if run(&sandbox, Command::shell("perl -e 'print 1' 2>/dev/null && bash -c 'echo 2'")).await.0 != "12\n" {
        println!("skipped in part: the image has no perl, or no bash, which some attempts need");
    }
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["root", "host"] {
        std::fs::create_dir(dir.path().join(name)).expect("creates");
    }
    let mut host = Host::new(dir.path());
    for (what, attempt) in ATTEMPTS.iter().filter(|(_, attempt)| is_of_this_machine(attempt)) {
        println!("{what}");
        let (said, _) = run(&sandbox, Command::shell(host.line(attempt))).await;
        assert!(!said.contains(SECRET), "{what}: {said}");
        host.is_unharmed(what);
        assert_eq!(run(&sandbox, Command::shell("echo well")).await.0, "well\n", "{what}: the sandbox goes on");
    }
}

#[tokio::test]
async fn what_cannot_be_a_container_is_refused_and_says_why() {
    let nowhere = ContainerSandbox::builder("x").engine("unix:///nowhere.sock").build().await.expect_err("is refused");
    assert_eq!(nowhere.kind(), ErrorKind::Config);
    assert!(nowhere.message().contains("answers at 'unix:///nowhere.sock'"), "{nowhere}");
    let relative = ContainerSandbox::builder("x").root("here").build().await.expect_err("is refused");
    assert!(relative.message().contains("must begin with '/'"), "{relative}");
    if sandbox(|b| b).await.is_some() {
        let missing = ContainerSandbox::builder("localhost/no-such-image:1").build().await.expect_err("is refused");
        assert!(missing.message().contains("pull it first"), "{missing}");
    }
    let secret = format!("{:?}", ContainerSandbox::builder("x").env("KEY", "s3cret"));
    assert!(secret.contains("KEY") && !secret.contains("s3cret"), "{secret}");
}

/// Set in the process that is killed: what it does before.
const ROLE: &str = "CONTAINER_TEST_ROLE";

#[tokio::test]
async fn a_container_ends_with_an_application_that_is_killed_and_one_that_was_paused_is_swept() {
    if let Ok(role) = std::env::var(ROLE) {
        let sandbox = sandbox(|b| b).await.expect("works here");
        if role == "paused" {
            sandbox.pause().await.expect("pauses");
        }
        println!("\nid {}", sandbox.id());
        std::thread::sleep(Duration::from_secs(60));
        unreachable!("this process is killed");
    }
    let Some(here) = sandbox(|b| b).await else { return };
    let sweep = async || ContainerSandbox::builder("").sweep().await.expect("is told");
    for role in ["running", "paused"] {
        let test = "container::a_container_ends_with_an_application_that_is_killed_and_one_that_was_paused_is_swept";
        let mut application = std::process::Command::new(std::env::current_exe().expect("is there"))
            .args(["--exact", test, "--nocapture"])
            .env(ROLE, role)
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(application.stdout.take().expect("is piped")).lines().map_while(Result::ok);
        let id = lines.find_map(|line| Some(line.strip_prefix("id ")?.to_owned())).expect("says it");
        assert!(exists(&id), "{role}: it runs");
        application.kill().expect("runs");
        application.wait().expect("is a child");
        let began = Instant::now();
        while role == "running" && exists(&id) {
            assert!(began.elapsed() < Duration::from_secs(50), "it stays");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // What others have left may go, too; none that is used.
        let swept = sweep().await;
        assert!(role == "running" || swept >= 1, "{swept}");
        assert!(!exists(&id), "{role}");
    }
    assert_eq!(run(&here, Command::shell("echo well")).await.0, "well\n");
}

/// Asks the engine itself, which must listen at a socket.
fn exists(id: &str) -> bool {
    let address = std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned());
    let mut engine = UnixStream::connect(address.trim_start_matches("unix://")).expect("connects");
    write!(engine, "GET /containers/{id}/json HTTP/1.0\r\nHost: engine\r\n\r\n").expect("writes");
    let mut status = String::new();
    BufReader::new(engine).read_line(&mut status).expect("answers");
    status.contains(" 200 ")
}
