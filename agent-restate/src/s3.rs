//! Blob store in an S3 bucket: [`S3Blobs`].

use std::{fmt, sync::Arc};

use agent_core::{Error, ErrorKind, Result};
use async_trait::async_trait;
use bytes::Bytes;
use object_store::{
    ClientOptions, ObjectStore, ObjectStoreExt,
    aws::AmazonS3Builder,
    client::{HttpClient, HttpConnector},
    path::Path,
};

use crate::{
    blobs::{BlobStore, checked},
    http,
};

/// Blob store that keeps each blob as an object of a bucket of Amazon S3 or an S3-compatible
/// server.
#[derive(Clone)]
pub struct S3Blobs {
    bucket: Arc<dyn ObjectStore>,
    folder: Path,
}

impl S3Blobs {
    /// Uses the bucket and folder of `s3://BUCKET/FOLDER`. Credentials and region come from the
    /// environment variables of AWS's own tools (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
    /// `AWS_REGION`) or the machine's role. `AWS_ENDPOINT_URL` selects a server other than AWS's,
    /// and `AWS_ALLOW_HTTP=true` allows it to be called without TLS. Does not connect before the
    /// first blob is stored or read.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the URL or the environment's settings are invalid.
    ///
    /// ```
    /// use agent_restate::{AgentEndpoint, S3Blobs};
    ///
    /// let builder = AgentEndpoint::builder().blobs(S3Blobs::from_env("s3://results/agents")?);
    /// # drop(builder);
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn from_env(url: &str) -> Result<Self> {
        Self::of(AmazonS3Builder::from_env(), url)
    }

    fn of(builder: AmazonS3Builder, url: &str) -> Result<Self> {
        let place = url.strip_prefix("s3://").filter(|place| !place.is_empty() && !place.starts_with('/'));
        let place =
            place.ok_or_else(|| Error::config(format!("invalid bucket URL '{url}': expected s3://BUCKET/FOLDER")))?;
        let (bucket, folder) = place.split_once('/').unwrap_or((place, ""));
        let builder = builder.with_bucket_name(bucket).with_http_connector(Connector);
        let bucket = builder.build().map_err(|e| Error::config("invalid S3 settings").with_source(e))?;
        let folder =
            Path::parse(folder).map_err(|e| Error::config("invalid folder name in the bucket URL").with_source(e))?;
        Ok(Self { bucket: Arc::new(bucket), folder })
    }

    fn path(&self, name: &str) -> Result<Path> {
        Ok(self.folder.clone().join(checked(name)?))
    }
}

#[async_trait]
impl BlobStore for S3Blobs {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        let put = self.bucket.put(&self.path(name)?, bytes.into()).await;
        put.map(drop).map_err(|e| failed("stored", e))
    }

    async fn get(&self, name: &str) -> Result<Bytes> {
        let path = self.path(name)?;
        let get = async { self.bucket.get(&path).await?.bytes().await };
        get.await.map_err(|e| failed("read", e))
    }
}

fn failed(what: &str, e: object_store::Error) -> Error {
    Error::new(ErrorKind::Store, format!("a blob could not be {what} in its bucket")).with_source(e)
}

/// HTTP connector that uses the same client settings as the rest of this crate.
#[derive(Debug)]
struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = http::client();
        client.map(HttpClient::new).map_err(|e| object_store::Error::Generic { store: "S3", source: Box::new(e) })
    }
}

impl fmt::Debug for S3Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Blobs").field("folder", &self.folder).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use object_store::memory::InMemory;

    use super::*;
    use crate::blobs::conformance;

    /// S3-compatible server with a bucket, which runs until it is dropped.
    struct Moto(Child);

    impl Moto {
        /// Starts a server; none where it is not installed.
        async fn start() -> Option<(Self, String)> {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
            let port = listener.local_addr().expect("an address").port();
            drop(listener);
            let mut command = Command::new("moto_server");
            let child =
                command.args(["-H", "127.0.0.1", "-p", &port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
            let Ok(child) = child.spawn() else {
                println!("skipped: no moto_server");
                return None;
            };
            let (server, url) = (Self(child), format!("http://127.0.0.1:{port}"));
            let client = http::client().expect("a client");
            for _ in 0..600 {
                if client.put(format!("{url}/results")).send().await.is_ok_and(|said| said.status().is_success()) {
                    return Some((server, url));
                }
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            panic!("the server does not come up");
        }
    }

    impl Drop for Moto {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[tokio::test]
    async fn objects_are_as_good_as_files() {
        let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        conformance::check(Arc::new(S3Blobs { bucket, folder: Path::from("agents") })).await;
    }

    #[tokio::test]
    async fn a_bucket_of_a_server_is_as_good_as_files() {
        let Some((_server, url)) = Moto::start().await else { return };
        let builder = AmazonS3Builder::new().with_access_key_id("key").with_secret_access_key("secret");
        let builder = builder.with_region("us-east-1").with_endpoint(url).with_allow_http(true);
        let blobs = S3Blobs::of(builder, "s3://results/agents").expect("a bucket");
        conformance::check(Arc::new(blobs)).await;
    }

    #[test]
    fn what_is_no_bucket_is_refused_with_what_one_is_like() {
        for bad in ["/mnt/blobs", "s3://", "s3:///folder", "http://a/b"] {
            let error = S3Blobs::from_env(bad).expect_err(bad);
            assert!(error.message().contains("s3://BUCKET/FOLDER"), "{error}");
        }
    }
}
