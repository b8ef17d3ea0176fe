//! The program `agent`: runs, chats with, inspects and serves agents in a terminal.

fn main() -> std::process::ExitCode {
    agent_cli::run(std::env::args_os())
}
