//! The same tools over a directory and over sandboxes.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command as Host, sync::Arc, time::Duration};

use agent_core::{Resources, Result, async_trait, engine::RunDriver};
use agent_tools::{
    Workspace,
    sandbox::{Command, EntryKind, Exit, Guarantees, Isolation, LocalSandbox, MemorySandbox, Process, Sandbox},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::support::{call_in, run};

/// Sandbox that only implements starting programs: file operations use its shell.
#[derive(Debug)]
struct StartsOnly(LocalSandbox);

#[async_trait]
impl Sandbox for StartsOnly {
    async fn start(&self, command: Command) -> Result<Process> {
        self.0.start(command).await
    }

    fn root(&self) -> &str {
        self.0.root()
    }

    fn temp_dir(&self) -> &str {
        self.0.temp_dir()
    }

    fn guarantees(&self) -> &Guarantees {
        self.0.guarantees()
    }
}

/// Storage, and an agent that works there.
struct Tried {
    what: &'static str,
    workspace: Workspace,
    /// Direct access to the same files.
    sandbox: Arc<dyn Sandbox>,
    run: RunDriver,
    _dir: TempDir,
}

fn local(dir: &Path) -> LocalSandbox {
    let builder = LocalSandbox::builder(dir);
    builder.clone().build().or_else(|_| builder.isolation(Isolation::None).build()).expect("a sandbox")
}

/// Workspace, and the sandbox with the same files.
type Made = (Workspace, Arc<dyn Sandbox>);

async fn places() -> Vec<Tried> {
    let tried = |what, make: &dyn Fn(&Path) -> Made| {
        let dir = tempfile::tempdir().expect("a directory");
        let (workspace, sandbox) = make(dir.path());
        Tried { what, workspace, sandbox, run: run(Resources::default()), _dir: dir }
    };
    let over = |sandbox: Arc<dyn Sandbox>| (Workspace::shared(sandbox.clone()), sandbox);
    #[cfg_attr(not(any(feature = "container", feature = "e2b")), expect(unused_mut, reason = "there is no more"))]
    let mut all = vec![
        tried("a directory", &|dir| (Workspace::open(dir).expect("opens"), Arc::new(local(dir)))),
        tried("memory", &|_| over(Arc::new(MemorySandbox::new()))),
        tried("this machine", &|dir| over(Arc::new(local(dir)))),
        tried("a shell alone", &|dir| over(Arc::new(StartsOnly(local(dir))))),
    ];
    #[cfg(feature = "container")]
    if let Some(container) = super::containers::sandbox(|b| b).await {
        let container: Arc<dyn Sandbox> = Arc::new(container);
        all.push(tried("a container", &|_| over(container.clone())));
    }
    #[cfg(feature = "e2b")]
    {
        // The sandbox continues while it is in use.
        let far: Arc<dyn Sandbox> = Arc::new(super::service::Service::start().await.sandbox().await);
        all.push(tried("a service", &|_| over(far.clone())));
    }
    all
}

impl Tried {
    async fn call(&self, tool: &str, args: Value) -> String {
        let tool = self.workspace.tools().named(&[tool]).expect("exists").into_iter().next().expect("one");
        match call_in(self.run.cx(), &tool, args).await {
            Ok(output) => output.to_text(),
            Err(error) => format!("ERROR {}", error.message()),
        }
    }

    async fn put(&self, path: &str, content: &'static str) {
        self.sandbox.write(path, content.into()).await.expect("writes");
    }

    async fn content(&self, path: &str) -> String {
        String::from_utf8(self.sandbox.read(path).await.expect("reads").into()).expect("text")
    }
}

#[tokio::test]
async fn files_are_written_read_edited_and_patched_wherever_they_lie() {
    for place in places().await {
        let what = place.what;
        let patch = "*** Begin Patch\n*** Update File: src/a.rs\n-two\n+2\n*** Add File: b\n+new\n*** Delete File: old\n*** Update File: m\n*** Move to: n/m\n-x\n+y\n*** End Patch";
        place.put("old", "gone").await;
        place.put("m", "x\n").await;
        for (tool, args, expected) in [
            ("write_file", json!({"path": "src/a.rs", "content": "one\ntwo\n"}), "created src/a.rs (2 lines)"),
            ("read_file", json!({"path": "./src/a.rs"}), "src/a.rs (lines 1-2 of 2)\n    1| one\n    2| two"),
            (
                "edit_file",
                json!({"path": "src/a.rs", "old_text": "one", "new_text": "1"}),
                "edited src/a.rs: 1 replacement at line 1",
            ),
            ("read_file", json!({"path": "old"}), "old (lines 1-1 of 1)\n    1| gone"),
        ] {
            assert_eq!(place.call(tool, args).await, expected, "{what}: {tool}");
        }
        place.run.next_step();
        let patched = place.call("apply_patch", json!({"input": patch})).await;
        let done = "changed src/a.rs at line 2\ncreated b\nremoved old\nmoved m to n/m at line 1";
        assert_eq!(patched, done, "{what}");
        assert_eq!(place.content("src/a.rs").await, "1\n2\n", "{what}");
        assert_eq!(place.content("n/m").await, "y\n", "{what}");
        assert_eq!(place.sandbox.stat("old").await.expect("is told"), None, "{what}");
        let both =
            json!({"path": "b", "edits": [{"old_text": "n", "new_text": "N"}, {"old_text": "w", "new_text": "W"}]});
        assert_eq!(place.call("multi_edit", both).await, "edited b: 2 replacements at line 1", "{what}");
        assert_eq!(place.content("b").await, "NeW\n", "{what}");
        place.put("n.ipynb", "{\"cells\": [], \"nbformat\": 4, \"nbformat_minor\": 4}").await;
        let cell = json!({"path": "n.ipynb", "mode": "insert", "source": "1"});
        assert_eq!(place.call("edit_notebook", cell).await, "inserted cell 0 of n.ipynb", "{what}");
        assert!(place.content("n.ipynb").await.contains("\"source\": ["), "{what}");
    }
}

#[tokio::test]
async fn files_are_listed_found_and_searched_wherever_they_lie() {
    for mut place in places().await {
        let what = place.what;
        place.workspace = place.workspace.search_timeout(Duration::from_secs(60));
        for (path, content) in [
            (".gitignore", "out/\n"),
            (".hidden", "hit"),
            ("a b.txt", "hit\n"),
            ("out/c", "hit"),
            ("src/d.rs", "no\nhit\n"),
        ] {
            place.put(path, content).await;
        }
        for (tool, args, expected) in [
            ("list_files", json!({}), "a b.txt (4 bytes)\nsrc/"),
            ("list_files", json!({"path": "src"}), "src/d.rs (7 bytes)"),
            ("glob", json!({"pattern": "**/*.rs"}), "src/d.rs"),
            ("grep", json!({"pattern": "^hit$"}), "a b.txt:1: hit\nsrc/d.rs:2: hit"),
            (
                "read_many_files",
                json!({"paths": ["*.txt", "src/d.rs"]}),
                "a b.txt (lines 1-1 of 1)\n    1| hit\n\nsrc/d.rs (lines 1-2 of 2)\n    1| no\n    2| hit",
            ),
        ] {
            assert_eq!(place.call(tool, args).await, expected, "{what}: {tool}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_used_is_told_in_the_same_words_wherever_it_lies() {
    for mut place in places().await {
        let what = place.what;
        place.workspace = place.workspace.max_file_bytes(10);
        place.put("src/main.rs", "x").await;
        place.put("big", "more than ten").await;
        for (tool, args, expected) in [
            (
                "read_file",
                json!({"path": "src/mian.rs"}),
                "ERROR 'src/mian.rs' does not exist; did you mean src/main.rs?",
            ),
            ("read_file", json!({"path": "src"}), "ERROR 'src' cannot be used: it is a directory: use list_files"),
            (
                "read_file",
                json!({"path": "big"}),
                "ERROR 'big' cannot be used: it has 13 bytes, more than the limit of 10",
            ),
            (
                "write_file",
                json!({"path": "src", "content": ""}),
                "ERROR 'src' cannot be used: it is a directory: use list_files",
            ),
            ("list_files", json!({"path": "nowhere"}), "ERROR 'nowhere' does not exist"),
        ] {
            let said = place.call(tool, args).await;
            // If each folder needs a program, the time for a hint may end before it is found.
            let hint = "; did you mean src/main.rs?";
            let is_far = matches!(what, "a shell alone" | "a container");
            assert!(
                said == expected || is_far && Some(&*said) == expected.strip_suffix(hint),
                "{what}: {tool}: {said}"
            );
        }
    }
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_overwritten_wherever_it_lies() {
    for place in places().await {
        let what = place.what;
        let write = json!({"path": "f", "content": "mine"});
        place.put("f", "theirs").await;
        let unread = place.call("write_file", write.clone()).await;
        assert!(unread.contains("you have not read all of it"), "{what}: {unread}");
        // A file has one identity, however its path is spelled.
        let path = Path::new(place.sandbox.root()).join("f");
        place.call("read_file", json!({"path": path})).await;
        place.run.next_step();
        place.put("f", "theirs again").await;
        let changed = place.call("write_file", write.clone()).await;
        assert!(changed.contains("has changed since you read it"), "{what}: {changed}");
        assert_eq!(place.content("f").await, "theirs again", "{what}");
        place.call("read_file", json!({"path": "f"})).await;
        place.run.next_step();
        assert_eq!(place.call("write_file", write).await, "replaced f (1 line)", "{what}");
    }
}

/// Returns a sandbox whose file operations use its shell, and its directory on the host.
fn by_shell() -> (TempDir, StartsOnly) {
    let dir = tempfile::tempdir().expect("a directory");
    let sandbox = StartsOnly(local(dir.path()));
    (dir, sandbox)
}

#[tokio::test]
async fn a_shell_keeps_modes_and_links_and_takes_any_name_and_any_byte() {
    let (dir, sandbox) = by_shell();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for name in ["-rf", "a b", "$(touch x)", "it's", "d/\"q\"", "ä\\n"] {
        sandbox.write(name, bytes.clone().into()).await.expect("writes");
        assert_eq!(sandbox.read(name).await.expect("reads"), bytes, "{name}");
        let entry = sandbox.stat(name).await.expect("is told").expect("is there");
        assert_eq!((entry.kind, entry.size), (EntryKind::File, Some(300_000)), "{name}");
    }
    let mut names: Vec<_> = sandbox.list("").await.expect("lists").into_iter().map(|entry| entry.name).collect();
    names.sort();
    assert_eq!(names, ["$(touch x)", "-rf", "a b", "d", "it's", "ä\\n"], "no draft is left, and nothing was run");
    let made =
        Host::new("sh").current_dir(dir.path()).arg("-c").arg("echo 1 > s; chmod 750 s; ln -s s l; mkfifo p").status();
    assert!(made.expect("runs").success());
    sandbox.write("l", "2".into()).await.expect("writes");
    assert_eq!(fs::read_to_string(dir.path().join("s")).expect("reads"), "2");
    assert!(fs::symlink_metadata(dir.path().join("l")).expect("is there").is_symlink());
    let mode = fs::metadata(dir.path().join("s")).expect("is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert_eq!(sandbox.stat("l").await.expect("is told").expect("is there").kind, EntryKind::Link);
    assert_eq!(sandbox.stat("p").await.expect("is told").expect("is there").kind, EntryKind::Other);
    assert!(sandbox.read("p").await.expect_err("is refused").message().contains("not a regular file"));
    assert!(sandbox.remove("d").await.is_err() && sandbox.remove("nowhere").await.is_err());
    sandbox.remove("-rf").await.expect("removes");
    assert!(!dir.path().join("-rf").exists());
}

#[tokio::test]
async fn an_answer_of_a_shell_that_is_none_is_an_error_and_no_file() {
    for said in ["", "5\nabc", "3\nabcd", "many\nabc", "-1\n", "99999999999999999999\n"] {
        let sandbox = Says(said);
        assert!(sandbox.read("f").await.is_err(), "{said:?}");
        assert!(sandbox.stat("f").await.is_err(), "{said:?}");
        assert_eq!(sandbox.list("d").await.expect("is told").len(), 0, "{said:?}");
    }
    let sandbox = Says("81a4 3 ./../../etc\n41ed 1 ./d\n81a4 x ./y\n81a4 3 ./ok\n");
    let listed = Workspace::over(sandbox);
    let tool = listed.tools().named(&["list_files"]).expect("exists").into_iter().next().expect("one");
    let run = run(Resources::default());
    assert_eq!(call_in(run.cx(), &tool, json!({})).await.expect("lists").to_text(), "d/\nok (3 bytes)");
}

/// Sandbox whose shell always has the same output.
#[derive(Debug)]
struct Says(&'static str);

#[async_trait]
impl Sandbox for Says {
    async fn start(&self, command: Command) -> Result<Process> {
        let said = self.0;
        MemorySandbox::new().program("sh", move |_| (said.to_owned(), Exit::code(0))).start(command).await
    }

    fn root(&self) -> &str {
        "/"
    }

    fn temp_dir(&self) -> &str {
        "/tmp"
    }

    fn guarantees(&self) -> &Guarantees {
        unreachable!("nobody asks")
    }
}

#[tokio::test]
async fn what_a_sandbox_cannot_do_it_says() {
    let (_dir, sandbox) = by_shell();
    for cannot in [sandbox.pause().await.err(), sandbox.resume().await.err(), sandbox.snapshot().await.err()] {
        let cannot = cannot.expect("it cannot");
        assert_eq!(cannot.kind(), agent_core::ErrorKind::Config);
        assert!(cannot.message().starts_with("this sandbox cannot "), "{cannot}");
    }
    sandbox.close().await.expect("nothing is to be done");
}
