//! Well-behaved programs.

use std::time::{Duration, Instant};

use agent_core::ErrorKind;
use agent_tools::sandbox::{Command, Exit, Isolation, LocalSandbox, MemorySandbox, Sandbox};

use super::{Place, isolations, rests, run};

#[tokio::test]
async fn a_line_of_shell_works_in_the_directory_and_its_files_are_read_and_written() {
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b);
        place.sandbox.write("src/in.txt", "3\n1\n2\n".into()).await.expect("writes");
        let (said, exit) = place.run("sort src/in.txt > out.txt && pwd && echo bad >&2; exit 3").await;
        assert_eq!(exit, Exit::code(3), "{isolation:?}: {said}");
        assert_eq!(said, format!("{}\nbad\n", place.sandbox.path().display()), "{isolation:?}");
        assert_eq!(place.sandbox.read("out.txt").await.expect("reads"), "1\n2\n3\n");
        let (said, _) = run(&place.sandbox, Command::shell("pwd; echo $WHO").dir("src").env("WHO", "me")).await;
        assert_eq!(said, format!("{}/src\nme\n", place.sandbox.path().display()), "{isolation:?}");
    }
}

#[tokio::test]
async fn what_passes_goes_to_the_temporary_directory_which_goes_with_the_sandbox() {
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b);
        let (said, exit) = place.run("echo x > $TMPDIR/a && mktemp && cd && pwd").await;
        assert!(exit.is_success(), "{isolation:?}: {said}");
        let temp = place.sandbox.temp_dir().to_owned();
        assert_eq!(place.sandbox.read(&format!("{temp}/a")).await.expect("reads"), "x\n");
        assert!(said.ends_with(&format!("{temp}\n")), "{said}");
        drop(place);
        assert!(!std::path::Path::new(&temp).exists());
    }
}

#[tokio::test]
async fn input_is_read_as_it_comes() {
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b);
        let mut cat = place.sandbox.start(Command::new("cat")).await.expect("starts");
        let input = cat.take_input().expect("is there");
        for word in ["one\n", "two\n"] {
            input.write(word).await.expect("reads");
            assert_eq!(cat.output().await.expect("writes"), word, "{isolation:?}");
        }
        drop(input);
        assert_eq!(cat.output().await, None);
        assert_eq!(cat.exit().await.expect("ends"), Exit::code(0));
        assert!(cat.take_input().is_none());
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_ends_with_127_and_a_directory_that_is_not_there_is_an_error() {
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b);
        let (said, exit) = place.run("no-such-program").await;
        assert_eq!(exit, Exit::code(127), "{said}");
        let (said, exit) = run(&place.sandbox, Command::new("no-such-program")).await;
        assert_eq!(exit, Exit::code(127), "{said}");
        let (_, exit) = run(&place.sandbox, Command::shell("kill -9 $$")).await;
        assert_eq!(exit, Exit::code(137), "128 and the signal's number");
        for dir in ["nowhere", "..", "/etc"] {
            let refused = place.sandbox.start(Command::new("true").dir(dir)).await.expect_err("is refused");
            assert_eq!(refused.kind(), ErrorKind::Tool, "{refused}");
        }
    }
}

#[tokio::test]
async fn a_kill_ends_all_that_a_command_started() {
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b);
        let line = "(trap '' TERM HUP; while :; do date +%N > beat; sleep 0.01; done) & echo on; wait";
        let mut loops = place.sandbox.start(Command::shell(line)).await.expect("starts");
        assert_eq!(loops.output().await.expect("writes"), "on\n", "{isolation:?}");
        loops.kill();
        assert!(!loops.exit().await.expect("ends").is_success());
        rests(&place.host().join("root/beat"), &format!("{isolation:?}"));
    }
}

#[tokio::test]
async fn a_command_ends_with_its_shell_whatever_holds_its_output_open() {
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b);
        let began = Instant::now();
        let (said, exit) = place.run("sleep 50 & setsid sleep 50 & echo done").await;
        assert_eq!((said.as_str(), exit), ("done\n", Exit::code(0)), "{isolation:?}");
        assert!(began.elapsed() < Duration::from_secs(40));
    }
}

#[tokio::test]
async fn a_program_that_floods_waits_for_its_reader() {
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b);
        let mut yes = place.sandbox.start(Command::new("yes")).await.expect("starts");
        let mut read = 0;
        while read < 10 << 20 {
            read += yes.output().await.expect("goes on").len();
        }
        yes.kill();
        assert!(!yes.exit().await.expect("ends").is_success());
    }
}

#[tokio::test]
async fn programs_have_no_variable_of_the_application() {
    for isolation in isolations() {
        let place =
            Place::new(isolation, |b| b.env("MINE", "yes").inherit_env(&["CARGO_MANIFEST_DIR", "NOT_SET_ANYWHERE"]));
        let (said, _) = place.run("env | cut -d= -f1 | sort | tr '\\n' ' '").await;
        let names: Vec<_> =
            said.split_whitespace().filter(|name| !["_", "PWD", "SHLVL", "OLDPWD"].contains(name)).collect();
        assert_eq!(names, ["CARGO_MANIFEST_DIR", "HOME", "LANG", "MINE", "PATH", "TERM", "TMPDIR"], "{isolation:?}");
    }
}

#[test]
fn a_sandbox_that_cannot_hold_is_refused_and_says_what_to_do() {
    let refused = LocalSandbox::builder("/no/such/place").build().expect_err("is refused");
    assert_eq!(refused.kind(), ErrorKind::Config);
    let place = Place::new(Isolation::None, |b| b);
    let guarantees = place.sandbox.guarantees();
    assert!(!guarantees.files && !guarantees.network && !guarantees.processes);
    assert!(guarantees.to_string().contains("NO  files outside"), "{guarantees}");
}

#[tokio::test]
async fn a_sandbox_in_memory_runs_functions_and_keeps_files_by_one_name() {
    let sandbox = MemorySandbox::new().program("sh", |command| (format!("ran {}\n", command.args[1]), Exit::code(2)));
    assert_eq!(run(&sandbox, Command::shell("x")).await, ("ran x\n".to_owned(), Exit::code(2)));
    assert_eq!(run(&sandbox, Command::new("gone")).await.1, Exit::code(127));
    sandbox.write("/a/../b/./c", "1".into()).await.expect("writes");
    assert_eq!(sandbox.read("b/c").await.expect("reads"), "1");
    assert!(sandbox.read("../b/c").await.is_err());
}

#[tokio::test]
async fn a_snapshot_of_a_directory_begins_another_one_and_neither_changes_the_other() {
    let kept = tempfile::tempdir().expect("a directory");
    let first = Place::new(Isolation::None, |b| b.snapshots(kept.path()));
    std::fs::write(first.host().join("host/secret"), "SECRET").expect("writes");
    let line = "mkdir -p a/b && echo 1 > a/b/f && chmod 750 a/b/f && ln -s f a/b/l && ln -s ../host/secret out && ln -s ../host up && mkfifo p && chmod 500 a";
    assert!(first.run(line).await.1.is_success());
    let name = first.sandbox.snapshot().await.expect("is kept");
    first.sandbox.write("a/b/f", "2".into()).await.expect("writes");
    let second = Place::new(Isolation::None, |b| b.snapshots(kept.path()).restored(&name));
    let told = second.run("cat a/b/l; stat -c %a a/b/f a; readlink out; ls; cat out 2>/dev/null").await.0;
    assert_eq!(told, "1\n750\n500\n../host/secret\na\nout\nup\n", "links are links, and a pipe is none");
    second.sandbox.write("a/b/f", "3".into()).await.expect("writes");
    let third = Place::new(Isolation::None, |b| b.snapshots(kept.path()).restored(&name));
    assert_eq!(third.sandbox.read("a/b/f").await.expect("reads"), "1\n");
    assert_eq!(first.sandbox.read("a/b/f").await.expect("reads"), "2");
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_is_refused_and_leaves_nothing() {
    let kept = tempfile::tempdir().expect("a directory");
    let dir = tempfile::tempdir().expect("a directory");
    let builder = || LocalSandbox::builder(dir.path()).isolation(Isolation::None);
    let no_folder = builder().build().expect("works").snapshot().await.expect_err("has no folder");
    assert!(no_folder.message().contains(".snapshots(folder)"), "{no_folder}");
    let inside = builder().snapshots(dir.path().join("s")).build().expect_err("is refused");
    assert!(inside.message().contains("could change its snapshots"), "{inside}");
    std::fs::remove_dir(dir.path().join("s")).expect("is there");
    for name in ["", "..", "../x", "gone", "."] {
        let missing = builder().snapshots(kept.path()).restored(name).build().expect_err("is refused");
        assert!(missing.message().contains("there is no snapshot"), "{missing}");
    }
    let deep = vec!["d"; 300].join("/");
    std::fs::create_dir_all(dir.path().join(deep)).expect("creates");
    let sandbox = builder().snapshots(kept.path()).build().expect("works");
    let refused = sandbox.snapshot().await.expect_err("is refused");
    assert!(refused.message().contains("200 deep"), "{refused}");
    assert_eq!(std::fs::read_dir(kept.path()).expect("is there").count(), 0);
    std::fs::remove_dir_all(dir.path().join("d")).expect("removes");
    let name = sandbox.snapshot().await.expect("is kept");
    sandbox.write("f", "1".into()).await.expect("writes");
    let full = builder().snapshots(kept.path()).restored(&name).build().expect_err("is refused");
    assert!(full.message().contains("not empty"), "{full}");
}

#[tokio::test]
async fn a_snapshot_in_memory_begins_another_sandbox_with_the_same_programs() {
    let first = MemorySandbox::new().program("sh", |_| ("ran\n".to_owned(), Exit::code(0)));
    first.write("f", "1".into()).await.expect("writes");
    let name = first.snapshot().await.expect("is kept");
    first.write("f", "2".into()).await.expect("writes");
    let second = first.restored(&name).expect("is there");
    assert_eq!(second.read("f").await.expect("reads"), "1");
    second.write("f", "3".into()).await.expect("writes");
    assert_eq!(first.read("f").await.expect("reads"), "2");
    assert_eq!(run(&second, Command::shell("x")).await.0, "ran\n");
    assert!(first.restored("gone").is_err());
}

/// Environment variable of the process that is killed.
const ROLE: &str = "SANDBOX_TEST_ISOLATION";

#[tokio::test]
async fn a_program_ends_with_the_application_that_started_it_even_if_that_is_killed() {
    let wanted = std::env::var(ROLE).ok();
    for isolation in
        isolations().into_iter().filter(|one| wanted.as_ref().is_none_or(|name| *name == format!("{one:?}")))
    {
        let place = Place::new(isolation, |b| b);
        if wanted.is_some() {
            let line = "date +%N > beat; echo on; while :; do date +%N > beat; sleep 0.01; done";
            let mut beats = place.sandbox.start(Command::shell(line)).await.expect("starts");
            beats.output().await.expect("writes");
            println!("{}", place.sandbox.path().display());
            std::thread::sleep(Duration::from_secs(60));
            unreachable!("this process is killed");
        }
        let test = "sandbox::running::a_program_ends_with_the_application_that_started_it_even_if_that_is_killed";
        let mut application = std::process::Command::new(std::env::current_exe().expect("is there"))
            .args(["--exact", test, "--nocapture"])
            .env(ROLE, format!("{isolation:?}"))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("starts");
        let lines = std::io::BufReader::new(application.stdout.take().expect("is piped"));
        let root = std::io::BufRead::lines(lines).map(|line| line.expect("reads")).find(|line| line.starts_with('/'));
        let beat = std::path::Path::new(&root.expect("says it")).join("beat");
        application.kill().expect("runs");
        application.wait().expect("is a child");
        assert!(beat.exists(), "it was written");
        rests(&beat, &format!("{isolation:?}"));
    }
}
