//! Server with the actor.

use agent_server::{Server, ServerBuilder};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::scenes::actor;

/// Server of one test.
pub(crate) struct Served {
    address: String,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Served {
    pub(crate) async fn start() -> Self {
        Self::of(Server::builder().agent(actor())).await
    }

    pub(crate) async fn of(server: ServerBuilder) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let router = server.build().expect("builds").router();
        let task = tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, task }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, "content-type: application/json\r\n", &body.to_string()).await
    }

    /// Posts, reads until the response contains this text, and disconnects.
    pub(crate) async fn leave_at(&self, path: &str, body: &Value, at: &str) -> String {
        let mut stream = self.begin("POST", path, "content-type: application/json\r\n", &body.to_string()).await;
        let (mut text, mut piece) = (String::new(), [0; 4096]);
        while !text.contains(at) {
            let read = stream.read(&mut piece).await.expect("more");
            assert_ne!(read, 0, "it ended before: {text}");
            text.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        text
    }

    /// Sends a request on its own connection, and reads the response to its end.
    pub(crate) async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = self.begin(method, path, headers, body).await;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    async fn begin(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).await.expect("connects");
        // HTTP/1.0: the body is not chunked, and ends with the connection.
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nhost: {}\r\n{headers}content-length: {length}\r\n\r\n{body}",
            self.address
        );
        stream.write_all(request.as_bytes()).await.expect("sends");
        stream
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// Returns the data of a stream's frames.
    pub(crate) fn frames(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).expect("JSON")).collect()
    }
}

/// For third-party clients: `checks/protocols.sh` runs this test with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "serves until it is killed"]
async fn until_it_is_killed() {
    let listener = TcpListener::bind("127.0.0.1:19112").await.expect("the port is free");
    let router = Server::builder().agent(actor()).build().expect("builds").router();
    axum::serve(listener, router).await.expect("serves");
}
