//! What holds of every sandbox that is elsewhere.

use std::time::{Duration, Instant};

use agent_core::ErrorKind;
use agent_tools::sandbox::{Command, EntryKind, Exit, Sandbox};
use tokio::time::{sleep, timeout};

use crate::run;

/// Of a sandbox with the variable `MINE`, which is `yes`.
pub(crate) async fn programs_run_and_files_are_theirs(sandbox: &dyn Sandbox) {
    let root = sandbox.root();
    sandbox.write("src/in.txt", "3\n1\n2\n".into()).await.expect("writes");
    let sorted = run(sandbox, Command::shell("sort src/in.txt > out.txt; pwd; echo bad >&2; echo $MINE; exit 3")).await;
    assert_eq!(sorted, (format!("{root}\nbad\nyes\n"), Exit::code(3)));
    assert_eq!(sandbox.read("out.txt").await.expect("reads"), "1\n2\n3\n");
    let there = run(sandbox, Command::shell("pwd; echo $WHO").dir("src").env("WHO", "me")).await.0;
    assert_eq!(there, format!("{root}/src\nme\n"));
    let args = Command::new("printf").arg("%s,").arg("a b").arg("$X").arg("it's").arg("").arg("-n");
    assert_eq!(run(sandbox, args).await.0, "a b,$X,it's,,-n,");
    assert_eq!(run(sandbox, Command::new("no-such-program")).await.1, Exit::code(127));
    assert_eq!(run(sandbox, Command::shell("kill -9 $$")).await.1, Exit::code(137));
    let refused = sandbox.start(Command::new("true").dir("nowhere")).await.expect_err("is refused");
    assert_eq!(refused.kind(), ErrorKind::Tool, "{refused}");
    let env = run(sandbox, Command::shell("env")).await.0;
    assert!(!env.contains("CARGO_MANIFEST_DIR"), "{env}");
    sandbox.write("tmp", "x".into()).await.expect("writes");
    let temp = format!("{}/passing", sandbox.temp_dir());
    sandbox.write(&temp, "1".into()).await.expect("writes");
    assert_eq!(sandbox.read(&temp).await.expect("reads"), "1");
    assert_eq!(sandbox.stat("src").await.expect("is told").expect("is there").kind, EntryKind::Folder);
    assert!(sandbox.read("src").await.expect_err("is none").message().contains("is a directory"));
    assert!(sandbox.read("gone").await.expect_err("is none").message().contains("does not exist"));
    assert!(sandbox.list("out.txt").await.is_err() && sandbox.remove("src").await.is_err());
    sandbox.remove("out.txt").await.expect("removes");
    assert_eq!(sandbox.stat("out.txt").await.expect("is told"), None);
    assert_eq!(sandbox.stat("out.txt/x/y").await.expect("is told"), None);
}

pub(crate) async fn input_is_read_as_it_comes_and_a_flood_waits_for_its_reader(sandbox: &dyn Sandbox) {
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

pub(crate) async fn a_kill_and_an_end_leave_nothing_running(sandbox: &dyn Sandbox) {
    let beats = "(trap '' TERM HUP; while :; do date +%s%N > beat; echo >> beats; sleep 0.05; done) &";
    let still = async || {
        let count = async || run(sandbox, Command::shell("wc -l < beats")).await.0;
        let before = count().await;
        sleep(Duration::from_millis(300)).await;
        (before, count().await)
    };
    let mut loops = sandbox.start(Command::shell(format!("{beats} echo on; wait"))).await.expect("starts");
    assert_eq!(loops.output().await.expect("writes"), "on\n");
    loops.kill();
    assert!(!loops.exit().await.expect("ends").is_success());
    let (before, after) = still().await;
    assert_eq!(before, after, "it still beats");
    let began = Instant::now();
    let (said, exit) = run(sandbox, Command::shell(format!("{beats} setsid sleep 50 & echo done"))).await;
    assert_eq!((said.as_str(), exit), ("done\n", Exit::code(0)));
    assert!(began.elapsed() < Duration::from_secs(40));
    let (before, after) = still().await;
    assert_eq!(before, after, "it still beats");
    // One that kills what watches it is found all the same.
    let line = format!("{beats} echo on; kill -9 $PPID; sleep 50");
    let mut orphan = sandbox.start(Command::shell(line)).await.expect("starts");
    assert_eq!(orphan.output().await.expect("writes"), "on\n");
    orphan.kill();
    drop(orphan.exit().await);
    let (before, after) = still().await;
    assert_eq!(before, after, "it still beats");
}

pub(crate) async fn what_is_paused_halts_and_goes_on(sandbox: &dyn Sandbox) {
    let line = "while read -r word; do echo $word; done";
    let mut echo = sandbox.start(Command::shell(line)).await.expect("starts");
    let input = echo.take_input().expect("is there");
    let mut beats = sandbox.start(Command::shell("while :; do echo; sleep 0.05; done")).await.expect("starts");
    beats.output().await.expect("writes");
    sandbox.pause().await.expect("pauses");
    assert!(sandbox.start(Command::new("true")).await.is_err(), "nothing starts meanwhile");
    // What was on its way still comes.
    let quiet = async { while timeout(Duration::from_millis(500), beats.output()).await.is_ok() {} };
    timeout(Duration::from_secs(20), quiet).await.expect("it halts");
    sandbox.resume().await.expect("resumes");
    timeout(Duration::from_secs(20), beats.output()).await.expect("goes on").expect("writes");
    beats.kill();
    input.write("still there\n").await.expect("reads");
    assert_eq!(echo.output().await.expect("writes"), "still there\n");
    drop(input);
    assert_eq!(echo.output().await, None);
    assert!(echo.exit().await.expect("ends").is_success());
}
