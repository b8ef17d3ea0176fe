//! Cloud identities of the machine: access tokens and signatures instead of API keys.

#[cfg(feature = "bedrock")]
mod aws;
#[cfg(feature = "entra")]
mod entra;
#[cfg(feature = "gcp")]
mod google;

#[cfg(feature = "bedrock")]
pub use self::aws::AwsIdentity;
#[cfg(feature = "bedrock")]
pub(crate) use self::aws::region as aws_region;
#[cfg(feature = "entra")]
pub use self::entra::EntraIdentity;
#[cfg(feature = "gcp")]
pub use self::google::GoogleIdentity;
