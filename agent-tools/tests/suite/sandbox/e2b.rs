//! Sandboxes of a service, simulated by a server that runs programs for real.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    process::Stdio,
    time::Duration,
};

use agent_core::ErrorKind;
use agent_tools::sandbox::{Command, E2bSandbox, Sandbox};
use tokio::time::{Instant, sleep, timeout};

use super::{
    run,
    service::{KEY, Service},
    suite,
};

/// Waits until a condition holds.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(50), "{what}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn programs_run_in_a_machine_of_a_service_as_they_do_elsewhere() {
    let service = Service::start().await;
    let sandbox = service.builder("base").env("MINE", "yes").build().await.expect("starts");
    println!("{}", sandbox.guarantees());
    suite::programs_run_and_files_are_theirs(&sandbox).await;
    sandbox.close().await.expect("is removed");
    assert_eq!(service.is_paused(sandbox.id()), None);
    assert!(sandbox.start(Command::new("true")).await.is_err());
    sandbox.close().await.expect("is gone already");
}

#[tokio::test]
async fn input_is_read_as_it_comes_and_a_flood_waits_for_its_reader() {
    let service = Service::start().await;
    suite::input_is_read_as_it_comes_and_a_flood_waits_for_its_reader(&service.sandbox().await).await;
}

#[tokio::test]
async fn a_kill_and_an_end_leave_nothing_of_a_command_running() {
    let service = Service::start().await;
    suite::a_kill_and_an_end_leave_nothing_running(&service.sandbox().await).await;
}

#[tokio::test]
async fn folders_are_copied_in_and_out_of_a_machine() {
    let service = Service::start().await;
    suite::folders_are_copied_in_and_out(&service.sandbox().await, true).await;
}

#[tokio::test]
async fn a_machine_is_paused_and_goes_on_and_its_files_begin_another_one() {
    let service = Service::start().await;
    let first = service.sandbox().await;
    suite::what_is_paused_halts_and_goes_on(&first).await;
    first.write("kept", "1".into()).await.expect("writes");
    let snapshot = first.snapshot().await.expect("is kept");
    first.write("kept", "2".into()).await.expect("writes");
    let second = service.builder(&snapshot).build().await.expect("starts");
    assert_eq!(second.read("kept").await.expect("reads"), "1");
    assert_eq!(first.read("kept").await.expect("reads"), "2");
}

#[tokio::test]
async fn a_command_that_is_killed_while_its_machine_is_paused_is_gone_when_that_goes_on() {
    let service = Service::start().await;
    let sandbox = service.sandbox().await;
    let line = "while :; do echo >> beats; echo; sleep 0.05; done";
    let mut beats = sandbox.start(Command::shell(line)).await.expect("starts");
    beats.output().await.expect("writes");
    sandbox.pause().await.expect("pauses");
    sandbox.pause().await.expect("is paused already");
    drop(beats);
    sandbox.resume().await.expect("resumes");
    let count = async || run(&sandbox, Command::shell("wc -l < beats")).await.0;
    let began = Instant::now();
    let mut before = count().await;
    loop {
        sleep(Duration::from_millis(300)).await;
        let after = count().await;
        if before == after {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "it still beats");
        before = after;
    }
}

#[tokio::test]
async fn files_have_any_name_and_any_bytes_and_are_replaced_at_once() {
    let service = Service::start().await;
    let sandbox = service.sandbox().await;
    let bytes: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    for name in ["-rf", "a b", "$(touch x)", "it's", "d/\"q\"", "ä\\n", "100%&x=?#+"] {
        sandbox.write(name, bytes.clone().into()).await.expect("writes");
        assert_eq!(sandbox.read(name).await.expect("reads"), bytes, "{name}");
        assert_eq!(sandbox.stat(name).await.expect("is told").expect("is there").size, Some(3_000_000), "{name}");
    }
    let names: BTreeSet<_> = sandbox.list("").await.expect("lists").into_iter().map(|entry| entry.name).collect();
    let expected = ["-rf", "a b", "$(touch x)", "it's", "d", "ä\\n", "100%&x=?#+"].map(str::to_owned);
    assert_eq!(names, expected.into(), "no draft is left, and nothing was run");
    run(&sandbox, Command::shell("echo 1 > s; chmod 750 s; ln -s s l")).await;
    sandbox.write("l", "2".into()).await.expect("writes");
    let told = run(&sandbox, Command::shell("cat s; stat -c %a s; readlink l; ls $TMPDIR | wc -l")).await.0;
    assert_eq!(told, "2750\ns\n0\n");
    sandbox.write("empty", "".into()).await.expect("writes");
    assert_eq!(sandbox.read("empty").await.expect("reads"), "");
}

#[tokio::test]
async fn a_machine_is_removed_with_its_last_clone_and_renewed_until_then() {
    let service = Service::start().await;
    let sandbox = service.builder("base").lease(Duration::from_secs(15)).build().await.expect("starts");
    let id = sandbox.id().to_owned();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(6)).await;
    tokio::time::resume();
    until("it is renewed", || service.seen().iter().any(|line| line.contains(&format!("/{id}/timeout")))).await;
    let clone = sandbox.clone();
    drop(sandbox);
    assert_eq!(run(&clone, Command::shell("echo well")).await.0, "well\n");
    drop(clone);
    until("it is removed", || service.is_paused(&id).is_none()).await;
}

#[tokio::test]
async fn one_that_is_kept_is_paused_in_the_end_and_another_application_goes_on_with_it() {
    let service = Service::start().await;
    let build = || service.builder("base").keep().lease(Duration::from_secs(15));
    let first = build().build().await.expect("starts");
    first.write("kept", "1".into()).await.expect("writes");
    let line = "while :; do echo >> beats; echo; sleep 0.05; done";
    let mut left = first.start(Command::shell(line)).await.expect("starts");
    left.output().await.expect("writes");
    let (id, root) = (first.id().to_owned(), first.root().to_owned());
    // As if its application were killed, and nothing renewed the lease.
    service.end_lease(&id);
    until("it is paused", || service.is_paused(&id) == Some(true)).await;
    let second = build().root(&root).attach(&id).await.expect("is there");
    assert_eq!(second.read("kept").await.expect("reads"), "1");
    let count = async || run(&second, Command::shell("wc -l < beats")).await.0;
    let before = count().await;
    sleep(Duration::from_millis(300)).await;
    assert_eq!(before, count().await, "what the first one left running is ended");
    second.close().await.expect("is removed");
    let gone = build().attach(&id).await.expect_err("is gone");
    assert!(gone.message().contains("it was removed, or its lease has ended"), "{gone}");
}

/// Environment variable of the process that is killed: the port of the service.
const PORT: &str = "E2B_TEST_PORT";

#[tokio::test]
async fn what_a_killed_application_had_ends_by_itself_or_is_swept() {
    if let Ok(port) = std::env::var(PORT) {
        let url = format!("http://127.0.0.1:{port}");
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().to_str().expect("is text");
        let builder = E2bSandbox::builder("base", KEY).api_url(&url).sandbox_url(&url).root(root);
        let passing = builder.clone().build().await.expect("starts");
        let kept = builder.keep().build().await.expect("starts");
        println!("\nids {} {}", passing.id(), kept.id());
        std::thread::sleep(Duration::from_secs(60));
        unreachable!("this process is killed");
    }
    let service = Service::start().await;
    let mine = service.sandbox().await;
    let test = "sandbox::e2b::what_a_killed_application_had_ends_by_itself_or_is_swept";
    let mut application = std::process::Command::new(std::env::current_exe().expect("is there"))
        .args(["--exact", test, "--nocapture"])
        .env(PORT, service.port.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let lines = BufReader::new(application.stdout.take().expect("is piped")).lines().map_while(Result::ok);
    let ids = tokio::task::spawn_blocking(move || {
        let mut lines = lines;
        lines.find_map(|line| Some(line.strip_prefix("ids ")?.to_owned())).expect("says it")
    });
    let ids = ids.await.expect("reads");
    let (passing, kept) = ids.split_once(' ').expect("are two");
    assert_eq!(service.builder("").sweep().await.expect("is told"), 0, "its application is there");
    application.kill().expect("runs");
    application.wait().expect("is a child");
    assert_eq!(service.builder("").sweep().await.expect("is told"), 1);
    assert_eq!((service.is_paused(passing), service.is_paused(kept)), (None, Some(false)));
    assert_eq!(run(&mine, Command::shell("echo well")).await.0, "well\n");
}

#[tokio::test]
async fn the_tools_of_a_shell_work_in_a_machine_of_a_service() {
    let service = Service::start().await;
    let sandbox = service.sandbox().await;
    let mut sleeps = sandbox.start(Command::shell("echo begun; sleep 1000")).await.expect("starts");
    assert_eq!(sleeps.output().await.expect("writes"), "begun\n");
    assert!(timeout(Duration::from_millis(300), sleeps.exit()).await.is_err(), "it runs");
    sleeps.kill();
    assert!(!sleeps.exit().await.expect("ends").is_success());
    assert!(sandbox.guarantees().network && sandbox.guarantees().files && !sandbox.guarantees().no_survivors);
    let open = service.builder("base").allow_network().build().await.expect("starts");
    assert!(!open.guarantees().network);
}

#[tokio::test]
async fn what_cannot_be_a_machine_is_refused_and_says_why() {
    let service = Service::start().await;
    for (what, builder, expected) in [
        ("the template", service.builder("nowhere"), "the template 'nowhere' makes no sandbox"),
        ("the lease", service.builder("base").lease(Duration::from_secs(1)), "15 seconds at least"),
        ("the address", service.builder("base").api_url("ftp://x"), "not the address of a service"),
        ("a password", service.builder("base").api_url("http://u:s3cret@x"), "not the address of a service"),
        ("the root is a file", service.builder("base").root("/etc/passwd"), "its user may not write into"),
    ] {
        let refused = builder.build().await.expect_err(what);
        assert_eq!(refused.kind(), ErrorKind::Config, "{what}: {refused}");
        assert!(refused.message().contains(expected), "{what}: {refused}");
        assert!(!format!("{refused:?}").contains("s3cret"), "{what}");
    }
    let key = E2bSandbox::builder("base", "wrong").api_url(service.url()).build().await.expect_err("is refused");
    assert_eq!(key.kind(), ErrorKind::Authentication, "{key}");
    let none = E2bSandbox::builder("base", "\n").api_url(service.url()).build().await.expect_err("is refused");
    assert_eq!(none.kind(), ErrorKind::Config, "{none}");
    let id = service.builder("base").attach("../x").await.expect_err("is refused");
    assert!(id.message().contains("letters, digits"), "{id}");
    let builder = format!("{:?}", service.builder("base").env("KEY", "s3cret"));
    assert!(builder.contains("KEY") && !builder.contains("s3cret") && !builder.contains(KEY), "{builder}");
    let sandbox = format!("{:?}", service.sandbox().await);
    assert!(!sandbox.contains("token") && !sandbox.contains(KEY), "{sandbox}");
}

#[tokio::test]
async fn calls_go_through_connections_that_are_kept() {
    let service = Service::start().await;
    let sandbox = service.sandbox().await;
    let (before, asked) = (service.connections(), service.seen().len());
    for n in 0..10 {
        sandbox.write("file", format!("{n}").into()).await.expect("writes");
        assert_eq!(sandbox.read("file").await.expect("reads"), n.to_string());
        assert_eq!(run(&sandbox, Command::shell("cat file")).await.0, n.to_string());
    }
    let (connected, asked) = (service.connections() - before, service.seen().len() - asked);
    // A running program uses one connection, and its input another one; some are opened before the
    // last one is returned to the pool.
    assert!(connected <= asked / 3 && asked >= 40, "{connected} connections for {asked} requests");
}
