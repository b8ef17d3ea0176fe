//! Environment variables of programs: no shell outside the sandbox sees one, and programs get each
//! value unchanged.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Stdio,
};

use agent_core::ErrorKind;
use agent_tools::sandbox::{Command, Isolation, LocalSandbox, Sandbox};
use tempfile::TempDir;

use super::{
    Place,
    escape::{Host, SECRET, attempt_all},
    isolations, run,
};

/// Names that make a shell or the dynamic linker execute or load something.
const REFUSED: &[&str] = &[
    "BASH_FUNC_read%%",
    "BASH_FUNC_exec%%",
    "BASH_FUNC_printf%%",
    "BASH_FUNC_ulimit%%",
    "BASH_FUNC_exit%%",
    "BASH_FUNC_eval%%",
    "BASH_FUNC_read()",
    "BASH_FUNC_export%%",
    "BASH_ENV",
    "BASH_XTRACEFD",
    "BASH_COMPAT",
    "BASH_LOADABLES_PATH",
    "ENV",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "",
    "A B",
    "A=B",
    "1A",
    "A-B",
    "A;touch {host}/new",
    "A$(touch {host}/new)",
    "A`touch {host}/new`",
    "A\ntouch {host}/new\nB",
    "A' touch {host}/new '",
    "Ä",
    "read()",
    "A[$(touch {host}/new)]",
    "A%%",
];

/// Names that programs may have, including those that a shell or the gates use.
const ALLOWED: &[&str] = &[
    "A",
    "_A",
    "a1",
    "go",
    "__newline",
    "read",
    "exec",
    "IFS",
    "PATH",
    "CDPATH",
    "HOME",
    "PWD",
    "OLDPWD",
    "PS1",
    "PS2",
    "PROMPT_COMMAND",
    "SHELL",
    "SHLVL",
    "MAIL",
    "MAILPATH",
    "OPTIND",
    "OPTARG",
    "UID",
    "EUID",
    "PPID",
    "RANDOM",
    "SECONDS",
    "LINENO",
    "GROUPS",
    "FUNCNAME",
    "TMOUT",
    "HISTFILE",
    "HISTSIZE",
    "COLUMNS",
    "POSIXLY_CORRECT",
    "LC_ALL",
    "LC_CTYPE",
    "LANG",
    "TZ",
    "GCONV_PATH",
    "LOCPATH",
    "TMPDIR",
    "PERL5OPT",
    "FPATH",
    "ZDOTDIR",
    "INPUTRC",
];

/// Values that execute something if a shell evaluates them. `{host}` is a directory outside.
const VALUES: &[&str] = &[
    "() { touch {host}/new; builtin read \"$@\"; }",
    "() { :; }; touch {host}/new",
    "$(touch {host}/new)",
    "`touch {host}/new`",
    "'; touch {host}/new; '",
    "'\"; touch {host}/new; \"'",
    "x\ntouch {host}/new\n",
    "x\n'\ntouch {host}/new\n'",
    "\\'; touch {host}/new; \\'",
    "xtrace",
    "{host}/script",
];

/// Environment variable of the process whose `sh` is another one.
const ROLE: &str = "SANDBOX_TEST_SHELL";

/// Runs a test again in a child process whose `PATH` starts with a folder. Returns true in that
/// process.
fn is_within(test: &str, folder: &Path) -> bool {
    if env::var_os(ROLE).is_some() {
        return true;
    }
    let path =
        env::join_paths([folder.to_owned()].into_iter().chain(env::split_paths(&env::var_os("PATH").expect("is set"))));
    // An open descriptor makes the sandbox use another shell.
    let closed = "for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ $fd -lt 3 ] || eval \"exec $fd<&-\"; done; exec \"$@\"";
    let output = std::process::Command::new("/bin/bash")
        .args(["-c", closed, "bash"])
        .arg(env::current_exe().expect("is there"))
        .args(["--exact", &format!("sandbox::variables::{test}"), "--nocapture"])
        .env("PATH", path.expect("a path"))
        .env(ROLE, folder)
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    println!("{said}");
    false
}

/// Returns the first folder in `PATH`, in the process of [`is_within`].
fn first() -> PathBuf {
    env::var_os(ROLE).expect("is set").into()
}

/// Creates a folder in which `sh` is the given program.
fn folder_with(sh: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a directory");
    symlink(sh, folder.path().join("sh")).expect("links");
    folder
}

#[tokio::test]
async fn no_variable_runs_anything_outside_where_sh_is_bash() {
    let bash = folder_with("/bin/bash");
    if !is_within("no_variable_runs_anything_outside_where_sh_is_bash", bash.path()) {
        return;
    }
    for isolation in isolations() {
        let place = Place::new(isolation, |b| b.readable(first()));
        fs::write(place.host().join("host/script"), "touch new").expect("writes");
        let mut host = Host::new(place.host());
        for name in REFUSED {
            for value in VALUES {
                let (name, value) = (host.line(name), host.line(value));
                let what = format!("{name:?}: {value:?} ({isolation:?})");
                let given = Command::shell("echo ran").env(&name, &value);
                let refused = match place.sandbox.start(given).await {
                    Ok(mut process) => {
                        process.exit().await.expect("ends");
                        None
                    }
                    Err(refused) => Some(refused),
                };
                host.is_unharmed(&what);
                assert_eq!(refused.expect(&what).kind(), ErrorKind::Config, "{what}");
                let built = LocalSandbox::builder(place.sandbox.path()).isolation(isolation).env(&name, &value).build();
                assert_eq!(built.expect_err(&what).kind(), ErrorKind::Config);
            }
        }
        for name in ALLOWED {
            for value in VALUES {
                let value = host.line(value);
                let what = format!("{name:?}: {value:?} ({isolation:?})");
                let print = Command::new("/usr/bin/printenv").arg(*name).env(*name, &value);
                let (said, exit) = run(&place.sandbox, print).await;
                host.is_unharmed(&what);
                assert!(exit.is_success() && !said.contains(SECRET), "{what}: {said}");
                assert_eq!(said, format!("{value}\n"), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn no_attempt_to_get_out_has_any_effect_where_sh_is_bash() {
    let bash = folder_with("/bin/bash");
    if is_within("no_attempt_to_get_out_has_any_effect_where_sh_is_bash", bash.path()) {
        attempt_all(|isolation| Place::new(isolation, |b| b.readable(first()))).await;
    }
}

/// Shell that appends its initial environment to a file where both gates can write.
const RECORDING: &str = "#!/bin/dash\n/usr/bin/env -0 >> {record}\nexec /bin/dash \"$@\"\n";

#[tokio::test]
async fn the_shells_around_a_program_have_none_of_its_variables() {
    let folder = tempfile::tempdir().expect("a directory");
    if !is_within("the_shells_around_a_program_have_none_of_its_variables", folder.path()) {
        return;
    }
    for isolation in isolations().into_iter().chain([Isolation::None]) {
        // The script must name the file, whose folder is created with the sandbox.
        let dash = first().join("sh");
        let _ = fs::remove_file(&dash);
        symlink("/bin/dash", &dash).expect("links");
        let place = Place::new(isolation, |b| b.readable(first()).env("OF_ALL", SECRET));
        let record = place.sandbox.path().join("record");
        fs::remove_file(&dash).expect("is there");
        fs::write(&dash, RECORDING.replace("{record}", &record.display().to_string())).expect("writes");
        fs::set_permissions(&dash, fs::Permissions::from_mode(0o755)).expect("sets");
        let (said, exit) =
            run(&place.sandbox, Command::new("/usr/bin/printenv").arg("OF_ONE").env("OF_ONE", SECRET)).await;
        assert!(exit.is_success() && said == format!("{SECRET}\n"), "{isolation:?}: {said}");
        let recorded = fs::read_to_string(&record).expect("was written");
        let names: Vec<_> = recorded.split_terminator('\0').filter_map(|one| one.split('=').next()).collect();
        assert_eq!(names.iter().filter(|name| **name == "PATH").count(), 2, "{isolation:?}: two gates: {names:?}");
        let unknown = names.iter().find(|name| !["PATH", "PWD", "OLDPWD", "SHLVL", "_"].contains(name));
        assert_eq!(unknown, None, "{isolation:?}");
        assert!(!recorded.contains(SECRET), "{isolation:?}");
    }
}

#[tokio::test]
async fn programs_get_each_value_as_it_was_given_with_any_shell() {
    let folder = folder_with("/bin/bash");
    if !is_within("programs_get_each_value_as_it_was_given_with_any_shell", folder.path()) {
        return;
    }
    let odd: String = (1..0x500).filter_map(char::from_u32).collect();
    let long = "it's long\n".repeat(9_000);
    let values = [
        ("EMPTY", ""),
        ("ODD", &odd),
        ("LONG", &long),
        ("LINES", "\n\n a\n\n"),
        ("SLASHES", "\\n\\\\\\"),
        ("__newline", "\n"),
        ("IFS", "abc/"),
        ("UID", "4711"),
        ("LC_ALL", "xx_YY"),
    ];
    for shell in ["/bin/bash", "/bin/dash", "/bin/busybox"].map(Path::new).into_iter().filter(|shell| shell.exists()) {
        let link = first().join("sh");
        fs::remove_file(&link).expect("is there");
        symlink(shell, &link).expect("links");
        for isolation in isolations().into_iter().chain([Isolation::None]) {
            let place = Place::new(isolation, |b| b.readable(first()));
            let command =
                values.iter().fold(Command::new("/usr/bin/env").arg("-0"), |c, (name, value)| c.env(*name, *value));
            let (said, exit) = run(&place.sandbox, command).await;
            assert!(exit.is_success(), "{isolation:?}: {said}");
            let seen: BTreeMap<_, _> = said.split_terminator('\0').filter_map(|one| one.split_once('=')).collect();
            for (name, value) in values {
                assert_eq!(seen.get(name).copied(), Some(value), "{name} with {} ({isolation:?})", shell.display());
            }
            for own in ["HOME", "TMPDIR", "TERM", "LANG", "PATH"] {
                assert!(seen.contains_key(own), "{own} with {} ({isolation:?})", shell.display());
            }
        }
    }
}
