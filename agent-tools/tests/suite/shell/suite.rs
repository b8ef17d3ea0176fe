// Properties of the tools over every sandbox with a shell: included once per `PLACE`.

#[tokio::test]
async fn a_command_gives_what_it_writes_and_how_it_ended() {
    let shell = Called::new(PLACE).await;
    assert_eq!(shell.bash("echo out; echo err >&2").await, "out\nerr");
    assert_eq!(shell.bash("true").await, "[no output]");
    assert_eq!(shell.bash("printf nothing-more; exit 3").await, "nothing-more\n[exit code 3]");
    assert!(shell.bash("kill -9 $$").await.ends_with("[exit code 137]"), "128 and the number of the signal");
}

#[tokio::test]
async fn programs_get_the_code_the_output_and_the_file() {
    let shell = Called::new(PLACE).await;
    let output = shell.try_call(shell.run.cx(), "bash", json!({"command": "echo x; exit 1"})).await.expect("gives");
    assert_eq!(output.as_value(), Some(&json!({"exit_code": 1, "output": "x\n[exit code 1]", "file": null})));
    assert!(!output.is_error(), "a code is the command's answer: grep gives 1 for nothing found");
}

#[tokio::test]
async fn each_call_is_a_shell_of_its_own_and_input_is_at_its_end() {
    let shell = Called::new(PLACE).await;
    shell.bash("mkdir d; cd d; X=1").await;
    assert_eq!(shell.bash("ls; echo [$X]; cat").await, "d\n[]");
}

async fn fixture_len(shell: &Called, file: &str) -> usize {
    shell.sandbox.read(file).await.expect("is there").len()
}

#[tokio::test]
async fn of_a_long_output_both_ends_are_shown_and_the_whole_is_a_file() {
    let shell = Called::set(PLACE, |shell| shell.max_output_bytes(200)).await;
    let output = shell.try_call(shell.run.cx(), "bash", json!({"command": "seq 10000"})).await.expect("gives");
    let shown = output.to_text();
    assert!(shown.starts_with("1\n2\n") && shown.ends_with("9999\n10000") && shown.len() < 400, "{shown}");
    let file = output.as_value().expect("a value")["file"].as_str().expect("a file").to_owned();
    assert!(shown.contains(&file), "{shown}");
    let flood =
        shell.try_call(shell.run.cx(), "bash", json!({"command": "yes | head -c 20000000"})).await.expect("gives");
    let kept = flood.as_value().expect("a value")["file"].as_str().expect("a file").to_owned();
    assert_eq!(fixture_len(&shell, &kept).await, 8 << 20, "{flood:?}");
    let whole: String = (1..=10_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(shell.sandbox.read(&file).await.expect("is there"), whole);
    assert_eq!(shell.bash(&format!("sed -n 5000p {file}")).await, "5000");
}

#[tokio::test]
async fn shells_over_one_sandbox_keep_their_long_outputs_apart() {
    let shell = Called::set(PLACE, |shell| shell.max_output_bytes(200)).await;
    let file = async |tools: &[Arc<dyn Tool>], command: &str| {
        let bash = tools.iter().find(|tool| tool.spec().name == "bash").expect("is there");
        let output = call_in(shell.run.cx(), bash, json!({"command": command})).await.expect("gives");
        output.as_value().expect("a value")["file"].as_str().expect("a file").to_owned()
    };
    let other = Shell::shared(shell.sandbox.clone()).max_output_bytes(200).tools().expect("builds");
    let other: Vec<_> = other.into_iter().collect();
    let (first, second) = (file(&shell.tools, "seq 1 1000").await, file(&other, "seq 1001 2000").await);
    assert!(shell.sandbox.read(&first).await.expect("is there").starts_with(b"1\n2\n"));
    assert!(shell.sandbox.read(&second).await.expect("is there").starts_with(b"1001\n"));
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_what_it_wrote_until_then() {
    let shell = Called::new(PLACE).await;
    let args = json!({"command": "echo begun; sleep 1000", "timeout": 3000});
    let output = shell.try_call(shell.run.cx(), "bash", args).await.expect("gives");
    assert!(output.is_error());
    assert!(output.to_text().starts_with("begun\n[ended after 3000 ms: it took too long; "), "{output:?}");
    assert_eq!(output.as_value().expect("a value")["exit_code"], Value::Null);
    let shell = Called::set(PLACE, |shell| shell.timeout(Duration::from_millis(100)).max_timeout(Duration::from_millis(200))).await;
    let output = shell.call("bash", json!({"command": "sleep 1000", "timeout": 1_000_000})).await;
    assert!(output.starts_with("[ended after 200 ms"), "{output}");
}

#[tokio::test]
async fn a_command_in_the_background_is_read_given_input_and_ended() {
    let shell = Called::new(PLACE).await;
    let line = "while read -r word; do echo \"got $word\"; done; echo over; sleep 1000";
    let id = shell.background(line).await;
    assert_eq!(shell.call("bash_output", json!({"bash_id": id})).await, "[it runs]");
    for word in ["one", "two"] {
        let text = format!("{word}\n");
        assert_eq!(shell.call("bash_input", json!({"bash_id": id, "text": text})).await, "written");
        let said = shell.call("bash_output", json!({"bash_id": id, "wait": 60_000})).await;
        assert_eq!(said, format!("got {word}\n[it runs]"));
    }
    shell.call("bash_input", json!({"bash_id": id, "text": "", "end": true})).await;
    assert_eq!(shell.call("bash_output", json!({"bash_id": id, "wait": 60_000})).await, "over\n[it runs]");
    let ended = shell.call("kill_bash", json!({"bash_id": id})).await;
    assert!(ended.starts_with("[ended by signal 9") || ended.starts_with("[exit code 137"), "{ended}");
    let gone = shell.try_call(shell.run.cx(), "bash_output", json!({"bash_id": id})).await.expect_err("is gone");
    assert!(gone.message().contains("there is none"), "{gone}");
}

#[tokio::test]
async fn one_that_reads_no_input_is_told_of_and_can_still_be_ended() {
    let shell = Called::new(PLACE).await;
    let id = shell.background("exec <&-; sleep 1000").await;
    let text = "x".repeat(1 << 20);
    let mut refused = None;
    for _ in 0..20 {
        let args = json!({"bash_id": id, "text": text});
        refused = refused.or(shell.try_call(shell.run.cx(), "bash_input", args).await.err());
    }
    assert!(refused.expect("is refused").message().contains("input"));
    assert!(shell.call("kill_bash", json!({"bash_id": id})).await.starts_with("[e"));
}

#[tokio::test]
async fn one_that_ended_by_itself_is_told_once_with_its_code() {
    let shell = Called::new(PLACE).await;
    let id = shell.background("echo done; exit 4").await;
    let mut said = String::new();
    while !said.contains("exit code") {
        said += &shell.call("bash_output", json!({"bash_id": id, "wait": 60_000})).await;
    }
    assert!(said.starts_with("done\n") && said.ends_with("[exit code 4]"), "{said}");
}

#[tokio::test]
async fn a_session_has_commands_of_its_own_and_no_more_than_it_may() {
    let shell = Called::set(PLACE, |shell| shell.max_tasks(1)).await;
    let background = json!({"command": "sleep 1000", "run_in_background": true});
    let id = shell.background("sleep 1000").await;
    let full = shell.try_call(shell.run.cx(), "bash", background).await.expect_err("is full");
    assert!(full.message().contains("kill_bash"), "{full}");
    let parts = RunParts::new(
        Arc::new(RunIds::root("other", "another session")),
        shell.run.engine().emitter().clone(),
        shell.run.engine().log().clone(),
    );
    let other = RunDriver::new(parts);
    let foreign = shell.try_call(other.cx(), "kill_bash", json!({"bash_id": id})).await.expect_err("is not its own");
    assert!(foreign.message().contains("there is none"), "{foreign}");
    for tool in &shell.tools {
        tool.close().await.expect("closes");
    }
    assert!(shell.try_call(shell.run.cx(), "bash_output", json!({"bash_id": id})).await.is_err());
}
