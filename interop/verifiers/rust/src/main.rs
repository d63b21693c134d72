//! Reads a token per line and says of each, in a line of JSON, whether the crate openidconnect believes it.

use std::error::Error;
use std::io::BufRead;
use std::str::FromStr;
use std::sync::Arc;

use openidconnect::core::{
    CoreIdToken, CoreIdTokenVerifier, CoreJsonWebKeySet, CoreProviderMetadata,
};
use openidconnect::{
    ClaimsVerificationError, ClientId, IssuerUrl, Nonce, SignatureVerificationError,
};
use rustls::pki_types::{pem::PemObject, CertificateDer};
use serde_json::{json, Value};

type Failure = Box<dyn Error>;

/// The crate leaves it to its user when to fetch the key set again.
struct Verifier {
    client: ureq::Agent,
    audience: ClientId,
    metadata: CoreProviderMetadata,
    keys: CoreJsonWebKeySet,
}

impl Verifier {
    fn discover(issuer: String, audience: String, client: ureq::Agent) -> Result<Self, Failure> {
        let metadata = CoreProviderMetadata::discover(&IssuerUrl::new(issuer)?, &client)?;
        let keys = metadata.jwks().clone();
        Ok(Self {
            client,
            audience: ClientId::new(audience),
            metadata,
            keys,
        })
    }

    fn subject(&self, token: &CoreIdToken) -> Result<String, ClaimsVerificationError> {
        let issuer = self.metadata.issuer().clone();
        let verifier = CoreIdTokenVerifier::new_public_client(
            self.audience.clone(),
            issuer,
            self.keys.clone(),
        );
        // No nonce: nobody logged in.
        let claims = token.claims(&verifier, |_: Option<&Nonce>| Ok(()))?;
        Ok(claims.subject().to_string())
    }

    fn judge(&mut self, text: &str) -> Result<String, Failure> {
        let token = CoreIdToken::from_str(text)?;
        match self.subject(&token) {
            Err(ClaimsVerificationError::SignatureVerification(
                SignatureVerificationError::NoMatchingKey,
            )) => {
                self.keys = CoreJsonWebKeySet::fetch(self.metadata.jwks_uri(), &self.client)?;
                Ok(self.subject(&token)?)
            }
            outcome => Ok(outcome?),
        }
    }
}

fn client_trusting(ca: &str) -> Result<ureq::Agent, Failure> {
    let mut roots = rustls::RootCertStore::empty();
    for root in CertificateDer::pem_file_iter(ca)? {
        roots.add(root?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(ureq::AgentBuilder::new()
        .tls_config(Arc::new(config))
        .redirects(0)
        .build())
}

/// An error with all its causes.
fn words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(each) = cause {
        words = format!("{words}: {each}");
        cause = each.source();
    }
    words
}

fn serve() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [issuer, audience, ca] = arguments.as_slice() else {
        return Err("usage: openidconnect ISSUER AUDIENCE CA_FILE".into());
    };
    let mut verifier = Verifier::discover(issuer.clone(), audience.clone(), client_trusting(ca)?)?;
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let answer: Value = match verifier.judge(&line?) {
            Ok(subject) => json!({ "ok": true, "sub": subject }),
            Err(refused) => json!({ "ok": false, "why": words(refused.as_ref()) }),
        };
        println!("{answer}");
    }
    Ok(())
}

fn main() {
    if let Err(failure) = serve() {
        eprintln!("verify: {}", words(failure.as_ref()));
        std::process::exit(1);
    }
}
