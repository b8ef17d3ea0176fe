//! What the builders of models, embedders and rerankers have in common.

/// The setters of a builder with the fields `wanted`, `http` and `auth`.
macro_rules! connection_setters {
    () => {
        /// Sets the address up to, and without, the path of the API. Default: the provider's.
        ///
        /// At the address of another known provider, it is that one. Any other address is that of a server of your own, named
        /// after its host, unless the provider has no address of its own (one with places in it, or on your machine). Such a server
        /// is shown no key from the environment.
        pub fn base_url(mut self, url: impl Into<String>) -> Self {
            self.wanted.base_url = Some(url.into());
            self
        }

        /// Sets the key. Default: what the environment has in one of the provider's variables.
        pub fn api_key(mut self, key: impl Into<String>) -> Self {
            self.http.api_key = Some(secrecy::SecretString::from(key.into()));
            self
        }

        /// Asks for the key before every request: for one that does not last. It takes the place of `api_key`.
        pub fn credentials(mut self, credentials: impl $crate::Credentials) -> Self {
            self.http.credentials = Some(std::sync::Arc::new(credentials));
            self
        }

        /// Has every request signed, in place of a key from the environment: see [`Signer`](crate::Signer). Default: as the
        /// provider wants it; requests to Amazon Bedrock are signed with AWS's keys where no key of Bedrock's own is set.
        pub fn signer(mut self, signer: impl $crate::Signer) -> Self {
            self.http.signer = Some(std::sync::Arc::new(signer));
            self
        }

        /// Sets how the key is shown to the provider. Default: as its profile says; a codec's, [`Auth::Bearer`](crate::Auth).
        pub fn auth(mut self, auth: $crate::Auth) -> Self {
            self.auth = Some(auth);
            self
        }

        /// Sends this header with every request.
        pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.http.headers.push((name.into(), secrecy::SecretString::from(value.into())));
            self
        }

        /// Sets how requests travel. Default: one [`HttpTransport`](crate::HttpTransport) that the whole process shares.
        ///
        /// With a transport of your own no key must be there: it may bring one, or be a recording.
        pub fn transport(mut self, transport: impl $crate::Transport) -> Self {
            self.http.transport = Some(std::sync::Arc::new(transport));
            self.http.may_bring_key = true;
            self
        }

        /// Sets how requests travel, as [`transport`](Self::transport) does, where keys are found as without it and must be there.
        #[cfg(feature = "http")]
        pub fn network(mut self, transport: $crate::HttpTransport) -> Self {
            self.http.transport = Some(std::sync::Arc::new(transport));
            self.http.may_bring_key = false;
            self
        }

        /// Sets the longest wait until the answer begins. One that is not streamed begins when it is complete. Default: as
        /// the longest silence.
        pub fn first_timeout(mut self, longest: std::time::Duration) -> Self {
            self.http.first_timeout = Some(longest);
            self
        }

        /// Sets the longest silence between any two pieces of the answer. Default: 300 s.
        pub fn idle_timeout(mut self, longest: std::time::Duration) -> Self {
            self.http.idle_timeout = longest;
            self
        }

        /// Sets the most bytes that one answer may have on the wire, streamed or not. Default: 64 MiB.
        pub fn max_answer(mut self, bytes: usize) -> Self {
            self.http.max_answer = bytes;
            self
        }
    };
}

pub(super) use connection_setters;
