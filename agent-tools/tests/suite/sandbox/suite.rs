//! Properties of every sandbox; some are specific to remote ones.

#![cfg_attr(
    not(all(feature = "container", feature = "e2b")),
    allow(dead_code, reason = "what is elsewhere is a feature each")
)]

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    time::{Duration, Instant},
};

use agent_core::ErrorKind;
use agent_tools::sandbox::{Command, EntryKind, Exit, Sandbox};
use tokio::time::{sleep, timeout};

use super::run;

/// Requires a sandbox with the variable `MINE` set to `yes`.
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
    // A command that kills its wrapper is found nevertheless.
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
    // An orphaned process also writes.
    let orphan = "(setsid sh -c 'while :; do echo; sleep 0.05; done' &); sleep 1000";
    let mut beats = sandbox.start(Command::shell(orphan)).await.expect("starts");
    beats.output().await.expect("writes");
    sandbox.pause().await.expect("pauses");
    assert!(sandbox.start(Command::new("true")).await.is_err(), "nothing starts meanwhile");
    // Output in transit still arrives.
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

/// Parameter `keeps_modes`: a sandbox in memory has no file modes.
pub(crate) async fn folders_are_copied_in_and_out(sandbox: &dyn Sandbox, keeps_modes: bool) {
    let host = tempfile::tempdir().expect("a directory");
    let (from, to) = (host.path().join("from"), host.path().join("to"));
    let long = format!("{}/{}/{}", "l".repeat(90), "o".repeat(90), "n".repeat(90));
    let large = vec![b'x'; 3 << 20];
    for (path, content) in [("-a b", &b"1"[..]), ("deep/er/run.sh", b"#!/bin/sh"), ("large", &large), (&long, b"2")] {
        let path = from.join(path);
        fs::create_dir_all(path.parent().expect("is below")).expect("creates");
        fs::write(path, content).expect("writes");
    }
    fs::set_permissions(from.join("deep/er/run.sh"), fs::Permissions::from_mode(0o4750)).expect("sets");
    fs::write(host.path().join("secret"), "SECRET").expect("writes");
    symlink("../secret", from.join("link")).expect("links");
    sandbox.write("kept/-a b", "old".into()).await.expect("writes");
    sandbox.write("kept/other", "stays".into()).await.expect("writes");
    let copied = sandbox.upload(&from, "kept").await.expect("copies");
    assert_eq!((copied.files, copied.bytes, copied.left_out), (4, 11 + large.len() as u64, 1));
    assert_eq!(sandbox.read("kept/-a b").await.expect("reads"), "1");
    assert_eq!(sandbox.read("kept/other").await.expect("reads"), "stays");
    assert_eq!(sandbox.read(&format!("kept/{long}")).await.expect("reads"), "2");
    assert_eq!(sandbox.read("kept/large").await.expect("reads").len(), large.len());
    assert_eq!(sandbox.stat("kept/link").await.expect("is told"), None);
    if keeps_modes {
        let line = "ln -s /etc/passwd kept/out; mkfifo kept/pipe; stat -c %a kept/deep/er/run.sh";
        assert_eq!(run(sandbox, Command::shell(line)).await.0, "750\n");
    }
    fs::create_dir_all(to.join("deep")).expect("creates");
    fs::write(to.join("mine"), "stays").expect("writes");
    let copied = sandbox.download("kept", &to).await.expect("copies");
    assert_eq!((copied.files, copied.left_out), (5, if keeps_modes { 2 } else { 0 }));
    let content = |path: &str| fs::read(to.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    assert_eq!(
        (content("-a b"), content(&long), content("large"), content("mine")),
        (b"1".into(), b"2".into(), large, b"stays".into())
    );
    let mode = fs::metadata(to.join("deep/er/run.sh")).expect("is there").mode();
    assert_eq!(mode & 0o7777, if keeps_modes { 0o750 } else { 0o644 });
    assert!(to.join("out").symlink_metadata().is_err() && to.join("pipe").symlink_metadata().is_err());
    let temp = format!("{}/copied", sandbox.temp_dir());
    assert_eq!(sandbox.upload(&to.join("deep"), &temp).await.expect("copies").files, 1);
    assert_eq!(sandbox.read(&format!("{temp}/er/run.sh")).await.expect("reads"), "#!/bin/sh");
    for (wrong, error) in [
        (sandbox.download("gone", &to).await, "gone"),
        (sandbox.upload(Path::new("/no/such/folder"), "x").await, "/no/such/folder"),
        (sandbox.upload(&from, "kept/other").await, "kept/other"),
    ] {
        let wrong = wrong.expect_err(error);
        assert!(wrong.kind() == ErrorKind::Tool, "{wrong}");
    }
}
