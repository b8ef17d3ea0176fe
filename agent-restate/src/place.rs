//! Blob stores by configuration string.

use std::sync::Arc;

use agent_core::Result;

use crate::blobs::{BlobStore, FileBlobs};

/// Opens the blob store that a configuration names: a folder that all processes share, or a bucket
/// as `s3://BUCKET/FOLDER` (feature `s3`, see `S3Blobs::from_env`).
///
/// # Errors
/// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the bucket's URL is invalid or the
/// program was built without the feature `s3`.
///
/// ```
/// use agent_restate::{AgentEndpoint, open_blobs};
///
/// let builder = AgentEndpoint::builder().blobs(open_blobs("/mnt/shared/blobs")?);
/// # drop(builder);
/// # Ok::<(), agent_core::Error>(())
/// ```
pub fn open_blobs(place: &str) -> Result<Arc<dyn BlobStore>> {
    if !place.starts_with("s3://") {
        return Ok(Arc::new(FileBlobs::new(place)));
    }
    #[cfg(feature = "s3")]
    return Ok(Arc::new(crate::s3::S3Blobs::from_env(place)?));
    #[cfg(not(feature = "s3"))]
    Err(agent_core::Error::config("this program was built without S3 support: enable the feature s3, or use a folder"))
}
