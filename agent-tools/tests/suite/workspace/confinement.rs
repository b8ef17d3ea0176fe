//! No path leads out of the directory.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use agent_tools::Workspace;
use serde_json::json;

use super::{Fixture, fixture};

/// Returns every kind of path to a file outside.
fn escapes(fixture: &Fixture) -> Vec<String> {
    let (root, outside) = (fixture.root(), fixture.dir.path().join("secret"));
    fs::create_dir(root.join("sub")).expect("creates");
    symlink(&outside, root.join("link")).expect("links");
    symlink("../secret", root.join("relative")).expect("links");
    symlink("link", root.join("chain")).expect("links");
    symlink(fixture.dir.path(), root.join("folder")).expect("links");
    symlink("..", root.join("sub/up")).expect("links");
    fs::hard_link(&outside, root.join("hard")).expect("links");
    let absolute = outside.display().to_string();
    let through = root.join("../secret").display().to_string();
    let named = ["../secret", "sub/../../secret", "./../secret", "link", "relative", "chain", "folder/secret"];
    let more = ["sub/up/../secret", "folder/root/../secret", "hard", &absolute, &through, "/etc/passwd", "..//secret"];
    named.into_iter().chain(more).map(str::to_owned).collect()
}

#[tokio::test]
async fn no_path_reads_or_writes_outside() {
    let fixture = fixture();
    for path in escapes(&fixture) {
        let read = fixture.call("read_file", json!({"path": path})).await;
        let why = if path == "hard" { "may be a file from outside" } else { "is outside the workspace" };
        assert!(read.starts_with("ERROR") && read.contains(why) && !read.contains("SECRET"), "{path}: {read}");
        let edited = fixture.call("edit_file", json!({"path": path, "old_text": "SECRET", "new_text": "X"})).await;
        assert!(edited.starts_with("ERROR"), "{path}: {edited}");
        let listed = fixture.call("list_files", json!({"path": Path::new(&path).parent()})).await;
        assert!(!listed.contains("secret"), "{path}: {listed}");
        fixture.call("write_file", json!({"path": path, "content": "X"})).await;
        let secret = fs::read_to_string(fixture.dir.path().join("secret")).expect("still there");
        assert_eq!(secret, "SECRET\n", "{path}");
    }
    for path in ["../new", "folder/new", "sub/up/../new", "sub/../../new", "/tmp/new-of-workspace"] {
        let written = fixture.call("write_file", json!({"path": path, "content": "X"})).await;
        assert!(written.contains("is outside the workspace"), "{path}: {written}");
        let patch = |body: &str| json!({"input": format!("*** Begin Patch\n{body}\n*** End Patch")});
        for body in [format!("*** Add File: {path}\n+X"), format!("*** Update File: hard\n*** Move to: {path}\n+X")] {
            let patched = fixture.call("apply_patch", patch(&body)).await;
            assert!(patched.starts_with("ERROR"), "{body}: {patched}");
        }
    }
    assert_eq!(fs::read_dir(fixture.dir.path()).expect("reads").count(), 2, "nothing was made outside");
}

#[tokio::test]
async fn searching_and_finding_do_not_follow_links() {
    let fixture = fixture().with("inside", "SECRET of the inside");
    escapes(&fixture);
    let found = fixture.call("grep", json!({"pattern": "SECRET"})).await;
    assert_eq!(found, "inside:1: SECRET of the inside\n[1 file could not be read, or too large]");
    assert!(!fixture.call("glob", json!({"pattern": "**/secret"})).await.contains("secret\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_swapped_between_check_and_use_leads_nowhere() {
    let fixture = fixture().with("a/file", "inside").with("b/file", "inside");
    let (root, outside) = (fixture.root(), fixture.dir.path().join("outside"));
    fs::create_dir(&outside).expect("creates");
    fs::write(outside.join("file"), "SECRET").expect("writes");
    symlink("b", root.join("link")).expect("links");
    let over = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let over = over.clone();
        move || {
            while !over.load(Ordering::Relaxed) {
                // `a` is a folder, then nothing, then a link that leads out; `link` leads in, then
                // out.
                fs::rename(root.join("a"), root.join("kept")).expect("moves");
                for target in [&*outside, Path::new("b")] {
                    symlink(target, root.join("a")).expect("links");
                    symlink(target, root.join("new")).expect("links");
                    fs::rename(root.join("new"), root.join("link")).expect("swaps");
                    fs::remove_file(root.join("a")).expect("removes");
                }
                fs::rename(root.join("kept"), root.join("a")).expect("moves back");
            }
        }
    });
    for _ in 0..300 {
        for path in ["a/file", "link/file"] {
            let read = fixture.call("read_file", json!({"path": path})).await;
            assert!(!read.contains("SECRET"), "{read}");
        }
        let searched = fixture.call("grep", json!({"pattern": "SECRET|inside"})).await;
        assert!(!searched.contains("SECRET"), "{searched}");
        fixture.call("write_file", json!({"path": "link/file", "content": "inside"})).await;
    }
    over.store(true, Ordering::Relaxed);
    swapper.join().expect("swaps");
    assert_eq!(fs::read_to_string(fixture.dir.path().join("outside/file")).expect("reads"), "SECRET");
    assert_eq!(fs::read_dir(fixture.dir.path().join("outside")).expect("reads").count(), 1);
}

#[tokio::test]
async fn what_is_not_a_regular_file_is_refused_without_waiting() {
    let fixture = fixture();
    let made = std::process::Command::new("mkfifo").arg(fixture.root().join("pipe")).status().expect("runs");
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(fixture.root().join("socket")).expect("binds");
    for path in ["pipe", "socket"] {
        let read = fixture.call("read_file", json!({"path": path})).await;
        assert!(read.starts_with(&format!("ERROR '{path}' cannot be used")), "{read}");
        let written = fixture.call("write_file", json!({"path": path, "content": "x"})).await;
        assert_eq!(written, format!("ERROR '{path}' cannot be used: it is not a regular file"));
    }
    assert_eq!(fixture.call("list_files", json!({})).await, "pipe (not a regular file)\nsocket (not a regular file)");
    assert_eq!(fixture.call("grep", json!({"pattern": "."})).await, "no line matches '.'");
}

#[tokio::test]
async fn a_hard_link_is_read_if_that_is_allowed_and_never_written_through() {
    let fixture = fixture().limited(Workspace::allow_hard_links);
    fs::hard_link(fixture.dir.path().join("secret"), fixture.root().join("hard")).expect("links");
    assert!(fixture.call("read_file", json!({"path": "hard"})).await.contains("SECRET"));
    fixture.call("edit_file", json!({"path": "hard", "old_text": "SECRET", "new_text": "X"})).await;
    assert_eq!(fixture.content("hard"), "X\n");
    assert_eq!(fs::read_to_string(fixture.dir.path().join("secret")).expect("reads"), "SECRET\n");
}

#[tokio::test]
async fn links_within_the_workspace_work_and_stay_links() {
    let fixture = fixture().with("real/file", "old");
    symlink("real", fixture.root().join("folder")).expect("links");
    symlink("real/file", fixture.root().join("link")).expect("links");
    assert!(fixture.call("read_file", json!({"path": "folder/file"})).await.ends_with("    1| old"));
    fixture.next_step();
    fixture.call("write_file", json!({"path": "link", "content": "new"})).await;
    assert!(fixture.root().join("link").is_symlink());
    assert_eq!(fixture.content("real/file"), "new");
    assert_eq!(fixture.call("list_files", json!({"path": "folder"})).await, "real/file (3 bytes)");
}

#[tokio::test]
async fn an_absolute_path_below_the_root_is_the_same_file() {
    let fixture = fixture().with("a.txt", "text");
    for root in [fixture.root(), fixture.workspace.path().to_owned()] {
        let read = fixture.call("read_file", json!({"path": root.join("a.txt")})).await;
        assert_eq!(read, "a.txt (lines 1-1 of 1)\n    1| text");
    }
}
