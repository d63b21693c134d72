import { systemErrorCode } from '../../core/index.ts'

const notTrusted = 'its certificate is not of a CA that we trust'

const inWords: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  // Node.js ends a connection without an alert when it does not trust a client's certificate.
  ECONNRESET: 'it cut the connection, as servers do that do not trust our certificate',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  ENOTFOUND: 'no such host',
  ETIMEDOUT: 'no answer in time',
  SELF_SIGNED_CERT_IN_CHAIN: notTrusted,
  DEPTH_ZERO_SELF_SIGNED_CERT: notTrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: notTrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: notTrusted,
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet: are the clocks right?',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'it asks for a client certificate',
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: 'it does not trust the CA of our certificate',
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: 'it does not accept our certificate',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: 'our certificate has expired',
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'it does not speak HTTP/2',
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: 'our key is not the one of our certificate',
  ERR_OSSL_PEM_NO_START_LINE: 'our certificate, key or CA is not in PEM form',
  ERR_OSSL_UNSUPPORTED: 'our key cannot be read: it must be in PEM form, without a passphrase',
}

/** Why a connection could not be opened, for people; OpenSSL's own words name its source files. */
export function unreachableWords(error: Error): string {
  const code = systemErrorCode(error) ?? ''
  const known = inWords[code]
  if (known !== undefined) return known
  return code.startsWith('ERR_SSL_') || code.startsWith('ERR_OSSL_')
    ? `TLS failed (${code})`
    : error.message
}
