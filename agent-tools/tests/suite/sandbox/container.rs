//! Containers, if an engine is available.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    process::Stdio,
    time::{Duration, Instant},
};

use agent_core::ErrorKind;
use agent_tools::sandbox::{Command, ContainerSandbox, Limits, Sandbox};

use super::{
    containers::sandbox,
    escape::{ATTEMPTS, Host, SECRET, is_of_this_machine},
    run, suite,
};

#[tokio::test]
async fn programs_run_in_a_container_as_they_do_elsewhere() {
    let Some(sandbox) = sandbox(|b| b.env("MINE", "yes")).await else { return };
    println!("{}", sandbox.guarantees());
    suite::programs_run_and_files_are_theirs(&sandbox).await;
    assert_eq!(run(&sandbox, Command::shell("pwd")).await.0, "/workspace\n");
    sandbox.close().await.expect("is removed");
    assert!(sandbox.start(Command::new("true")).await.is_err());
    sandbox.close().await.expect("is gone already");
}

#[tokio::test]
async fn input_is_read_as_it_comes_and_a_flood_waits_for_its_reader() {
    let Some(sandbox) = sandbox(|b| b).await else { return };
    suite::input_is_read_as_it_comes_and_a_flood_waits_for_its_reader(&sandbox).await;
}

#[tokio::test]
async fn a_kill_and_an_end_leave_nothing_of_a_command_running() {
    let Some(sandbox) = sandbox(|b| b).await else { return };
    suite::a_kill_and_an_end_leave_nothing_running(&sandbox).await;
}

#[tokio::test]
async fn a_container_is_paused_and_goes_on_and_its_files_begin_another_one() {
    let Some(first) = sandbox(|b| b).await else { return };
    suite::what_is_paused_halts_and_goes_on(&first).await;
    first.write("kept", "1".into()).await.expect("writes");
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
async fn folders_are_copied_in_and_out_of_a_container() {
    let Some(sandbox) = sandbox(|b| b).await else { return };
    suite::folders_are_copied_in_and_out(&sandbox, true).await;
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
        // Whichever process the kernel kills, the last one then counts fewer bytes.
        (guarantees.memory, "memory", "[ $(head -c 200000000 /dev/zero | tail -c 190000000 | wc -c) -eq 190000000 ]"),
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

/// Environment variable of the process that is killed: its action before that.
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
    for role in ["running", "paused"] {
        let test =
            "sandbox::container::a_container_ends_with_an_application_that_is_killed_and_one_that_was_paused_is_swept";
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
        // Some engines remove a paused container themselves after a moment.
        let longest = Duration::from_secs(if role == "running" { 50 } else { 5 });
        while exists(&id) && began.elapsed() < longest {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let stays = exists(&id);
        assert!(role == "paused" || !stays, "it stays");
        // Sweeping may remove containers of other dead owners, but none in use. The number is not
        // asserted: an engine may report a container as already gone.
        ContainerSandbox::builder("").sweep().await.expect("is told");
        assert!(!exists(&id), "{role}");
    }
    assert_eq!(run(&here, Command::shell("echo well")).await.0, "well\n");
}

/// Queries the engine directly, which must listen on a socket.
fn exists(id: &str) -> bool {
    let address = std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned());
    let mut engine = UnixStream::connect(address.trim_start_matches("unix://")).expect("connects");
    write!(engine, "GET /containers/{id}/json HTTP/1.0\r\nHost: engine\r\n\r\n").expect("writes");
    let mut status = String::new();
    BufReader::new(engine).read_line(&mut status).expect("answers");
    status.contains(" 200 ")
}
