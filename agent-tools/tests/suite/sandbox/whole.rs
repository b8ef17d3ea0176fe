//! Operations on a whole sandbox: pausing, bulk copies.

use std::time::Duration;

use agent_tools::sandbox::{Command, Isolation, MemorySandbox, Sandbox};
use tokio::time::timeout;

use super::{LONGEST, Place, isolations, suite};

#[tokio::test]
async fn programs_of_this_machine_are_paused_and_go_on() {
    for isolation in isolations() {
        println!("{isolation:?}");
        let place = Place::new(isolation, |b| b);
        suite::what_is_paused_halts_and_goes_on(&place.sandbox).await;
        // The application can access files at any time.
        place.sandbox.pause().await.expect("pauses");
        place.sandbox.write("file", "1".into()).await.expect("writes");
        place.sandbox.resume().await.expect("resumes");
        assert_eq!(place.run("cat file").await.0, "1");
    }
}

#[tokio::test]
async fn what_is_killed_while_it_is_paused_ends_and_what_had_stopped_stays_so() {
    for isolation in isolations() {
        println!("{isolation:?}");
        let place = Place::new(isolation, |b| b);
        let line = "sh -c 'kill -STOP $$; echo went on' & sleep 0.3; echo ready; cat; kill -KILL $!";
        let mut own = place.sandbox.start(Command::shell(line)).await.expect("starts");
        let input = own.take_input().expect("is there");
        assert_eq!(own.output().await.expect("writes"), "ready\n");
        let mut other = place.sandbox.start(Command::shell("echo on; sleep 1000")).await.expect("starts");
        assert_eq!(other.output().await.expect("writes"), "on\n");
        place.sandbox.pause().await.expect("pauses");
        place.sandbox.pause().await.expect("is paused already");
        other.kill();
        let exit = timeout(LONGEST, other.exit()).await.expect("ends").expect("is told");
        assert!(!exit.is_success());
        place.sandbox.resume().await.expect("resumes");
        place.sandbox.resume().await.expect("runs already");
        input.write("said\n").await.expect("reads");
        drop(input);
        let mut said = String::new();
        while let Some(piece) = timeout(LONGEST, own.output()).await.expect("ends") {
            said.push_str(&String::from_utf8_lossy(&piece));
        }
        assert_eq!(said, "said\n", "what a program has stopped itself is its own matter");
    }
}

#[tokio::test]
async fn a_crowd_that_keeps_starting_programs_is_paused_as_a_whole() {
    for isolation in isolations() {
        println!("{isolation:?}");
        let place = Place::new(isolation, |b| b);
        let line = "for i in 1 2 3 4; do (while :; do sh -c 'echo x >> grown'; done) & done; echo on; wait";
        let mut crowd = place.sandbox.start(Command::shell(line)).await.expect("starts");
        assert_eq!(crowd.output().await.expect("writes"), "on\n");
        for _ in 0..5 {
            place.sandbox.pause().await.expect("pauses");
            let before = place.sandbox.read("grown").await.map_or(0, |grown| grown.len());
            tokio::time::sleep(Duration::from_millis(100)).await;
            let after = place.sandbox.read("grown").await.map_or(0, |grown| grown.len());
            assert_eq!(before, after, "it still grows");
            place.sandbox.resume().await.expect("resumes");
        }
        let grown = async || place.sandbox.read("grown").await.map_or(0, |grown| grown.len());
        let before = grown().await;
        let more = async {
            while grown().await == before {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LONGEST, more).await.expect("goes on");
        crowd.kill();
    }
}

#[tokio::test]
async fn folders_are_copied_in_and_out_of_a_directory_and_of_memory() {
    for isolation in isolations().into_iter().chain([Isolation::None]) {
        let place = Place::new(isolation, |b| b);
        suite::folders_are_copied_in_and_out(&place.sandbox, true).await;
    }
    suite::folders_are_copied_in_and_out(&MemorySandbox::new(), false).await;
}

#[tokio::test]
async fn a_link_that_leads_out_of_the_sandbox_is_no_folder_to_copy() {
    let place = Place::new(Isolation::None, |b| b);
    std::fs::write(place.host().join("host/secret"), "SECRET").expect("writes");
    std::os::unix::fs::symlink(place.host().join("host"), place.sandbox.path().join("out")).expect("links");
    let (to, from) = (place.host().join("to"), place.host().join("root"));
    for path in ["out", "../host", "/etc"] {
        assert!(place.sandbox.download(path, &to).await.is_err(), "{path}");
        assert!(place.sandbox.upload(&from, path).await.is_err(), "{path}");
    }
    assert_eq!(std::fs::read_dir(place.host().join("host")).expect("is there").count(), 1);
}
